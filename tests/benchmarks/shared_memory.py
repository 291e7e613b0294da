"""Shared memory beside a copy here: uploads, downloads, operands in place, from Python.

Rounds by turns against a server of its own; regions are warm, as everything is done
twice before. A copy is one of NumPy's here, between arrays whose pages are there.

    build/venv/bin/python tests/benchmarks/shared_memory.py [ROUNDS] [--write]

`--write` leaves the table in tests/benchmarks/results.
"""

from __future__ import annotations

import datetime
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tensord

MEBIBYTE = 1 << 20
SIZES = (4 * MEBIBYTE, 256 * MEBIBYTE)
RESULTS = Path(__file__).parent / "results"


def seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    result = run()
    took = time.perf_counter() - begun
    if isinstance(result, tensord.RemoteTensor):
        result.delete()
    return took


def moved_bytes(session: tensord.Session) -> float:
    stats = session.stats()
    return stats.uploaded_bytes + stats.downloaded_bytes


def rates(
    shared: tensord.Session, streamed: tensord.Session, size: int, rounds: int
) -> dict[str, list[float]]:
    """Bytes a second of each way, a round each."""
    source = np.random.default_rng(1).random(size // 8)
    target = np.empty_like(source)
    resident = shared.upload(source)
    elsewhere = streamed.upload(source)

    ways: dict[str, Callable[[], object]] = {
        "copy": lambda: np.copyto(target, source),
        "upload": lambda: shared.upload(source),
        "download": resident.numpy,
        "upload, gRPC": lambda: streamed.upload(source),
        "download, gRPC": elsewhere.numpy,
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + 2):
        for way, run in ways.items():
            took = seconds(run)
            if turn >= 2:
                times[way].append(size / took)
    return times


def in_place(shared: tensord.Session, rounds: int) -> tuple[float, float, float]:
    """Moved bytes, and seconds of a product: in place, and of resident operands."""
    a, b, c = (shared.empty((1000, 1000)) for _ in range(3))
    a[...], b[...] = 1, 1
    x, y = shared.upload(np.ones((1000, 1000))), shared.upload(np.ones((1000, 1000)))
    z = shared.einsum("ij,jk->ik", x, y)
    shared.einsum("ij,jk->ik", a, b, out=c)
    before = moved_bytes(shared)
    here, there = [], []
    for _ in range(rounds):
        here.append(seconds(lambda: shared.einsum("ij,jk->ik", a, b, out=c).shape))
        there.append(seconds(lambda: shared.einsum("ij,jk->ik", x, y, out=z).shape))
    assert (c == 1000).all()
    moved = moved_bytes(shared) - before
    return moved, statistics.median(here), statistics.median(there)


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(": ")[1] for line in lines if line.startswith("model name"))


def table(rounds: int) -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    load = os.getloadavg()[0]
    lines = [
        f"{os.cpu_count()} cores of {processor()}; commit {commit}; "
        f"{load:.1f} others ran at the start.",
        "",
        f"`build/venv/bin/python tests/benchmarks/shared_memory.py {rounds}`, a private "
        "server on a Unix socket; medians [quartiles] of rounds by turns.",
        "",
        "| | MiB | GB/s | of a copy here |",
        "| --- | --- | --- | --- |",
    ]
    with tensord.serve() as address:
        with (
            tensord.connect(address, transport="shm") as shared,
            tensord.connect(address, transport="grpc") as streamed,
        ):
            for size in SIZES:
                measured = rates(shared, streamed, size, rounds)
                for way, each in measured.items():
                    low, middle, high = statistics.quantiles(each, n=4)
                    ratio = statistics.median(
                        x / y for x, y in zip(each, measured["copy"])
                    )
                    lines.append(
                        f"| {way} | {size // MEBIBYTE} | {middle / 1e9:.2f} "
                        f"[{low / 1e9:.2f} - {high / 1e9:.2f}] | {ratio:.2f} |"
                    )
            moved, here, there = in_place(shared, rounds)
    lines += [
        "",
        f"A product of two matrices of 1000 x 1000 doubles: {here * 1e3:.2f} ms where "
        f"operands and output are arrays of `session.empty`, {there * 1e3:.2f} ms where "
        f"they are resident; {moved:.0f} bytes were moved.",
    ]
    return "\n".join(lines)


def main() -> None:
    arguments = [each for each in sys.argv[1:] if each != "--write"]
    rounds = int(arguments[0]) if arguments else 20
    measured = table(rounds)
    print(measured)
    if "--write" in sys.argv:
        today = datetime.date.today().isoformat()
        name = "epyc" if "EPYC" in processor() else "xeon"
        path = RESULTS / f"{today}-cpu-{name}-shared-memory.md"
        path.write_text(f"# Shared memory, {today}\n\n{measured}\n")


if __name__ == "__main__":
    main()
