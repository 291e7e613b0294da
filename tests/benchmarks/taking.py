#!/usr/bin/env python3
"""What taking elements by indices costs, beside `numpy.take` on the same machine.

Prints a table: case, milliseconds on resident tensors and by NumPy, and their ratio.

    OPENBLAS_NUM_THREADS=1 build/venv/bin/python tests/benchmarks/taking.py --threads 2

Runs a private server ($TENSORD_SERVER, or build/dev/bin/tensord). Both sides take turns;
figures are medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tensord
import tensord.array as xp

SERVER = Path(__file__).resolve().parents[2] / "build/dev/bin/tensord"


def seconds(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def compare(name: str, x: np.ndarray, indices: np.ndarray, axis: int) -> None:
    t, on_server = xp.asarray(x), xp.asarray(indices)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    out = xp.zeros(shape, x.dtype)
    known = np.zeros(shape, x.dtype)
    session = t.session
    modes = range(x.ndim)
    modes_x = [x.ndim if i == axis else i for i in modes]

    def ours() -> None:
        session.elementwise(t, modes_x, on_server, [axis], modes, op="take", out=out)

    def theirs() -> None:
        np.take(x, indices, axis, out=known, mode="clip")

    ours(), theirs()
    times: list[list[float]] = [[], []]
    for _ in range(arguments.runs):
        for side, function in zip(times, (ours, theirs)):
            side.append(seconds(function))
    assert np.array_equal(out.numpy(), known)
    mine, other = (1e3 * statistics.median(each) for each in times)
    print(f"{name:34} {mine:9.2f} {other:9.2f} {mine / other:7.2f}", flush=True)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--threads", type=int, default=1, help="of the server")
parser.add_argument("--runs", type=int, default=21)
arguments = parser.parse_args()
os.environ.setdefault("TENSORD_SERVER", str(SERVER))
rng = np.random.default_rng(0)
with (
    tensord.serve(threads=arguments.threads) as address,
    tensord.connect(address) as session,
    xp.use(session),
):
    print(f"{'case':34} {'tensord':>9} {'NumPy':>9} {'ratio':>7}")
    table = rng.random((100_000, 256), np.float32)
    compare("rows of 256 float32, 50 000", table, rng.integers(0, 100_000, 50_000), 0)
    table = rng.random((100_000, 16))
    compare("rows of 16 float64, 200 000", table, rng.integers(0, 100_000, 200_000), 0)
    columns = rng.random((256, 20_000), np.float32)
    compare("columns, 20 000 of 20 000", columns, rng.permutation(20_000), 1)
    line = rng.random(1_000_000)
    compare("float64, 2 000 000 of 1 000 000", line, rng.integers(0, 10**6, 2 * 10**6), 0)
    compare("float64 of 1 000, 2 000 000", line[:1000], rng.integers(0, 1000, 2 * 10**6), 0)
