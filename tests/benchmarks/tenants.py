"""What tenants that others have cost each: the server's processor time a small call.

Two servers, one with a single tenant in its file and one with a thousand, each with all
quotas, are asked by turns. Ratios are those of neighbouring runs.

    build/venv/bin/python tests/benchmarks/tenants.py [PAIRS]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
SERVER = Path(os.environ.get("TENSORD_SERVER", REPOSITORY / "build/release/bin/tensord"))
MIX = REPOSITORY / "tests/benchmarks/mixes/small.toml"
QUOTAS = """device_bytes = "1GiB"
reserved_bytes = 1000
host_bytes = "1GiB"
staging_bytes = "1GiB"
tensors = 100_000
queued = 1000
running = 100
search_seconds = 100
"""


class Server(NamedTuple):
    process: subprocess.Popen[bytes]
    address: str
    token: str

    def cpu_us(self) -> float:
        """Processor time of all threads so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e3

    def us_a_call(self) -> float:
        before = self.cpu_us()
        load = [f"{SERVER}-load", f"--address={self.address}", f"--mix={MIX}"]
        ran = subprocess.run(
            [*load, "--closed=1", "--seconds=1", "--warm-up=0", "--json=-"],
            env={**os.environ, "TENSORD_TOKEN": self.token},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return (self.cpu_us() - before) / int(json.loads(ran.stdout)["ok"])


def serve(folder: Path, tenants: int) -> Server:
    """Starts a server with so many tenants in its file."""
    folder.mkdir()
    new = ["token", "new", "--tenant=t0", "--role=user", f"--tokens={folder}/tokens"]
    made = subprocess.run(
        [SERVER.with_name("tensorctl"), *new], stdout=subprocess.PIPE, text=True, check=True
    )
    shares = "".join(f"[tenant.t{i}]\n{QUOTAS}" for i in range(tenants))
    (folder / "tenants").write_text(shares)
    address = f"unix:{folder}/socket"
    flags = [f"--listen={address}", "--threads=1", f"--tokens={folder}/tokens"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([SERVER, *flags, f"--tenants={folder}/tenants"], stderr=log)
    while "listening" not in (folder / "log").read_text():
        time.sleep(0.05)
    return Server(process, address, made.stdout.splitlines()[-1])


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as name:
        servers = [serve(Path(name) / str(count), count) for count in (1, 1000)]
        try:
            runs: list[list[float]] = [[], []]
            for server in servers:
                server.us_a_call()
            for i in range(pairs):
                for which in (0, 1) if i % 2 == 0 else (1, 0):
                    runs[which].append(servers[which].us_a_call())
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait()
    print(f"least of each    {min(runs[0]):.1f} and {min(runs[1]):.1f} us")
    ratios = sorted(many / one for one, many in zip(*runs))
    print(f"one tenant       {statistics.median(runs[0]):.1f} us a call")
    print(f"a thousand       {statistics.median(runs[1]):.1f} us a call")
    low, high = ratios[pairs // 4], ratios[-1 - pairs // 4]
    print(f"ratio            {statistics.median(ratios):.3f} [{low:.3f} - {high:.3f}], {pairs} pairs")


if __name__ == "__main__":
    main()
