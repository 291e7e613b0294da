"""Where the time of small calls goes, by side and by part, as perf sees it.

    tests/benchmarks/call_profile.py --build=build/dev [--seconds=4]

Makes calls of each kind with `rpc_bench --only`, all on one processor, samples both sides
and prints a table of microseconds a call. Wants perf (Debian: linux-perf) and the right to
use it.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KINDS = {"single": "empty", "waited": "inline 8x8x8", "streamed": "streamed"}
# Libraries by what they are part of; what is none of them is "other".
PARTS = {
    "kernel": r"\[kernel",
    "gRPC": r"libgrpc|libgpr|libupb|libaddress_sorting|libcares",
    "protobuf": r"libprotobuf",
    "memory": r"libc\.so",
    "Abseil": r"libabsl",
    "tensord": r"^tensord$|^rpc_bench$",
}


def children(pid: int) -> list[int]:
    """The processes that a process has started, by their numbers."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def server_of(bench: int) -> int:
    """The process of tensord that a bench has started, when it is there."""
    for _ in range(200):
        for child in children(bench):
            command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if b"--log-level=error" in command:
                return child
        time.sleep(0.05)
    raise RuntimeError("rpc_bench has started no server")


def profile(build: Path, kind: str, seconds: float) -> tuple[float, dict[tuple[str, str], float]]:
    """Returns microseconds a call, and of those what each side and part takes."""
    first = min(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        with subprocess.Popen(
            ["taskset", "-c", str(first), build / "bin/rpc_bench", f"--server={build}/bin/tensord",
             f"--only={kind}", f"--seconds={seconds}"],
            stdout=subprocess.PIPE, text=True,
        ) as bench:
            # Both are there, and the calls have begun.
            pids = f"{bench.pid},{server_of(bench.pid)}"
            time.sleep(seconds / 4)
            subprocess.run(
                ["perf", "record", "-q", "-F", "9000", "-o", data, "-p", pids, "--",
                 "sleep", str(seconds / 2)],
                check=True, stderr=subprocess.DEVNULL,
            )
            assert bench.stdout is not None
            said = bench.stdout.read()
        listed = subprocess.run(
            ["perf", "script", "-i", data, "-F", "comm,pid,dso,ip"],
            check=True, capture_output=True, text=True,
        ).stdout
    rate = re.search(r": ([\d.]+) thousand/s", said)
    if rate is None:
        raise RuntimeError(f"rpc_bench said {said!r}")
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    server = pids.split(",")[1]
    for line in listed.splitlines():
        sample = re.match(r"\s*.+?\s+(\d+)\s+[0-9a-f]+ \((.+)\)$", line)
        if sample is None:
            continue
        side = "server" if sample[1] == server else "client"
        library = sample[2] if sample[2].startswith("[") else Path(sample[2]).name
        part = next((name for name, what in PARTS.items() if re.search(what, library)), "other")
        counts[side, part] += 1
    total = sum(counts.values())
    if total == 0:
        raise RuntimeError("perf has seen nothing")
    microseconds = 1e3 / float(rate[1])
    return microseconds, {key: microseconds * count / total for key, count in counts.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--build", type=Path, default=Path("build/dev"))
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    profiles = {kind: profile(arguments.build, kind, arguments.seconds) for kind in KINDS}
    print("| us a call, on one processor | " + " | ".join(KINDS.values()) + " |")
    print("|---" * (len(KINDS) + 1) + "|")
    for side in ("client", "server"):
        for part in [*PARTS, "other"]:
            times = [profiles[kind][1].get((side, part), 0.0) for kind in KINDS]
            print(f"| {side}: {part} | " + " | ".join(f"{each:.1f}" for each in times) + " |")
    print("| all | " + " | ".join(f"{profiles[kind][0]:.1f}" for kind in KINDS) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
