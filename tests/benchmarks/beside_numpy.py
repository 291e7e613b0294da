"""What the benchmarks share that compare one operation with NumPy's."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tensord
import tensord.array as xp

SERVER = Path(__file__).resolve().parents[2] / "build/dev/bin/tensord"


def arguments(description: str | None) -> argparse.Namespace:
    """Reads `--threads` and `--runs`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--threads", type=int, default=1, help="of the server")
    parser.add_argument("--runs", type=int, default=21)
    return parser.parse_args()


@contextmanager
def session(threads: int) -> Iterator[tensord.Session]:
    """A session of a private server ($TENSORD_SERVER, or build/dev/bin/tensord)."""
    os.environ.setdefault("TENSORD_SERVER", str(SERVER))
    with (
        tensord.serve(threads=threads) as address,
        tensord.connect(address) as opened,
        xp.use(opened),
    ):
        print(f"{'case':42} {'tensord':>9} {'NumPy':>9} {'ratio':>7}")
        yield opened


def compare(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], runs: int
) -> None:
    """Prints the medians of both, in milliseconds, which take turns."""
    times: list[list[float]] = [[], []]
    for number in range(runs + 1):
        for side, function in zip(times, (ours, theirs)):
            begun = time.perf_counter()
            function()
            if number:  # The first one warms up.
                side.append(time.perf_counter() - begun)
    mine, other = (1e3 * statistics.median(each) for each in times)
    print(f"{name:42} {mine:9.2f} {other:9.2f} {mine / other:7.2f}", flush=True)
