#!/usr/bin/env python3
"""What taking elements by indices costs, beside `numpy.take` on the same machine.

Prints a table: case, milliseconds on resident tensors and by NumPy, and their ratio.

    OPENBLAS_NUM_THREADS=1 build/venv/bin/python tests/benchmarks/taking.py --threads 2
"""

from __future__ import annotations

import numpy as np

import tensord.array as xp
from beside_numpy import arguments, compare, session


def take(name: str, x: np.ndarray, indices: np.ndarray, axis: int) -> None:
    t, on_server = xp.asarray(x), xp.asarray(indices)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    out = xp.zeros(shape, x.dtype)
    known = np.zeros(shape, x.dtype)
    modes = range(x.ndim)
    modes_x = [x.ndim if i == axis else i for i in modes]

    def ours() -> None:
        opened.elementwise(t, modes_x, on_server, [axis], modes, op="take", out=out)

    def theirs() -> None:
        np.take(x, indices, axis, out=known, mode="clip")

    compare(name, ours, theirs, given.runs)
    assert np.array_equal(out.numpy(), known)


given = arguments(__doc__)
rng = np.random.default_rng(0)
with session(given.threads) as opened:
    table = rng.random((100_000, 256), np.float32)
    take("rows of 256 float32, 50 000", table, rng.integers(0, 100_000, 50_000), 0)
    table = rng.random((100_000, 16))
    take("rows of 16 float64, 200 000", table, rng.integers(0, 100_000, 200_000), 0)
    columns = rng.random((256, 20_000), np.float32)
    take("columns, 20 000 of 20 000", columns, rng.permutation(20_000), 1)
    line = rng.random(1_000_000)
    take("float64, 2 000 000 of 1 000 000", line, rng.integers(0, 10**6, 2 * 10**6), 0)
    take("float64 of 1 000, 2 000 000", line[:1000], rng.integers(0, 1000, 2 * 10**6), 0)
