"""How much clients of one server take from each other, by tensord-load.

    build/venv/bin/python tests/benchmarks/sharing.py [--build build/dev] [--seconds 10]

Prints a Markdown table: small operations (50 a second, open loop, a process of their
own) alone, beside eight sessions of 1000^3 products, and beside a reduction of 8e12
elements; what the products reach alone and beside them; how two owners of weights 3
and 1 share the device; and how long the server takes to end beside that reduction.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MIXES = Path(__file__).parent / "mixes"


class Bench:
    """A server, and loads on it."""

    def __init__(self, build: Path, seconds: float) -> None:
        self.build = build
        self.seconds = seconds
        self.folder = Path(tempfile.mkdtemp(prefix="tensord-sharing-"))
        self.address = f"unix:{self.folder}/socket"

    @contextmanager
    def server(self, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
        socket = self.folder / "socket"
        server = subprocess.Popen(
            [
                self.build / "bin/tensord",
                f"--listen={self.address}",
                "--devices=cpu",
                "--drain-timeout-seconds=3",
                "--max-operation-seconds=100000",
                *flags,
            ],
            stderr=subprocess.DEVNULL,
        )
        while not socket.exists():
            if server.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.05)
        try:
            yield server
        finally:
            server.terminate()
            server.wait()
            socket.unlink(missing_ok=True)

    def start(self, mix: str, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
        """Starts a load; its numbers go to the file."""
        file = self.folder / f"{mix}-{time.monotonic_ns()}.json"
        load = subprocess.Popen(
            [
                self.build / "bin/tensord-load",
                f"--address={self.address}",
                f"--mix={MIXES / mix}.toml",
                f"--json={file}",
                "--quiet",
                *options,
            ],
            stdout=subprocess.DEVNULL,
        )
        return load, file

    def run(self, mix: str, *options: str) -> dict[str, Any]:
        load, file = self.start(mix, *options)
        if load.wait() != 0:
            raise SystemExit(f"tensord-load --mix {mix} ended with {load.returncode}")
        return json.loads(file.read_text())

    def small(self) -> dict[str, Any]:
        return self.run("small", "--rate=50", f"--seconds={self.seconds}")

    @contextmanager
    def beside(self, mix: str, *options: str) -> Iterator[None]:
        """A load that has begun when this does, and is interrupted at the end."""
        load, _ = self.start(mix, "--seconds=1000", *options)
        time.sleep(3)
        try:
            yield
        finally:
            load.send_signal(signal.SIGINT)
            time.sleep(0.1)
            load.send_signal(signal.SIGINT)
            load.wait()


def row(name: str, result: dict[str, Any]) -> None:
    print(
        f"| {name} | {result['p50_ms']:.3g} | {result['p99_ms']:.3g} "
        f"| {result['throughput_per_s']:.4g} | {result['errors']} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/dev"))
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    bench = Bench(options.build, options.seconds)
    print("| load | p50 ms | p99 ms | a second | errors |")
    print("| --- | --- | --- | --- | --- |")
    with bench.server():
        row("small alone", bench.small())
        row("heavy alone", bench.run("heavy", "--closed=8", f"--seconds={bench.seconds}"))
        small, file = bench.start("small", "--rate=50", f"--seconds={bench.seconds}")
        row(
            "heavy beside small",
            bench.run("heavy", "--closed=8", f"--seconds={bench.seconds}"),
        )
        small.wait()
        row("small beside heavy", json.loads(file.read_text()))
        with bench.beside("endless", "--closed=1"):
            row("small beside 8e12 elements", bench.small())
    with bench.server("--job-weights=a=3,b=1") as server:
        loads = [
            bench.start("heavy", f"--job={job}", "--closed=4", f"--seconds={bench.seconds}")
            for job in ("a", "b")
        ]
        rates = []
        for load, file in loads:
            load.wait()
            rates.append(json.loads(file.read_text())["throughput_per_s"])
        print(f"\nweights 3:1: {rates[0]:.3g} and {rates[1]:.3g} a second, "
              f"ratio {rates[0] / rates[1]:.3g}")
        with bench.beside("endless", "--closed=1"):
            begun = time.monotonic()
            os.kill(server.pid, signal.SIGTERM)
            status = server.wait()
            print(f"SIGTERM beside 8e12 elements, drain 3 s: status {status} after "
                  f"{time.monotonic() - begun:.2f} s")


if __name__ == "__main__":
    main()
