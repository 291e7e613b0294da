#!/usr/bin/env python3
"""What cumulative sums and sorting cost, beside NumPy on the same machine.

Prints a table: case, milliseconds on resident tensors and by NumPy, and their ratio.

    OPENBLAS_NUM_THREADS=1 build/venv/bin/python tests/benchmarks/along.py --threads 2
"""

from __future__ import annotations

import numpy as np

import tensord.array as xp
from beside_numpy import arguments, compare, session


def scan(name: str, x: np.ndarray, axis: int, op: str = "add") -> None:
    t, out, known = xp.asarray(x), xp.zeros(x.shape, x.dtype), np.zeros_like(x)
    modes = range(x.ndim)
    function = {"add": np.add, "max": np.maximum, "mul": np.multiply}[op]

    def ours() -> None:
        opened.reduce(t, modes, modes, op=op, along=axis, out=out)

    def theirs() -> None:
        function.accumulate(x, axis, out=known)

    compare(name, ours, theirs, given.runs)
    np.testing.assert_allclose(out.numpy(), known, 1e-3, 1)


def sort(name: str, x: np.ndarray, axis: int, kind: str | None = "stable") -> None:
    t, out = xp.asarray(x), xp.zeros(x.shape, np.int64)
    modes = range(x.ndim)

    def ours() -> None:
        opened.reduce(t, modes, modes, along=axis, sort="ascending", out=out)

    def theirs() -> None:
        np.argsort(x, axis, kind=kind)

    compare(name, ours, theirs, given.runs)
    np.testing.assert_array_equal(out.numpy(), np.argsort(x, axis, kind="stable"))


given = arguments(__doc__)
rng = np.random.default_rng(0)
with session(given.threads) as opened:
    for dtype in np.float32, np.float64:
        line = (rng.random(4_000_000) - 0.5).astype(dtype)
        kind = np.dtype(dtype).name
        scan(f"sums of 4 000 000 {kind}", line, 0)
        square = line.reshape(2000, 2000)
        scan(f"along rows of 2000 x 2000 {kind}", square, 1)
        scan(f"along columns of 2000 x 2000 {kind}", square, 0)
        scan(f"along 40 of 100 000 x 40 {kind}", line.reshape(100_000, 40), 1)
        scan(f"maxima along rows of 2000 x 2000 {kind}", square, 1, "max")
        scan(f"products along rows of 2000 x 2000 {kind}", square + 1, 1, "mul")
    line = rng.integers(-9, 9, 4_000_000)
    scan("sums of 4 000 000 int64", line, 0)
    scan("along rows of 2000 x 2000 int64", line.reshape(2000, 2000), 1)
    for dtype in np.float32, np.float64, np.int32:
        line = (1e6 * rng.standard_normal(1_000_000)).astype(dtype)
        kind = np.dtype(dtype).name
        sort(f"order of 1 000 000 {kind}", line, 0)
        sort(f"of 1 000 000 {kind}, NumPy unstable", line, 0, None)
        square = line.reshape(1000, 1000)
        sort(f"of rows of 1000 x 1000 {kind}, unstable", square, 1, None)
        sort(f"of columns of 1000 x 1000 {kind}, unstable", square, 0, None)
        rows = line.reshape(10_000, 100)
        sort(f"of rows of 10 000 x 100 {kind}, unstable", rows, 1, None)
        sort(f"of columns of 100 x 10 000 {kind}, unstable", rows.T.copy(), 0, None)
        sort(f"of 16 each, 62 500 x 16 {kind}, unstable", line.reshape(-1, 16), 1, None)
