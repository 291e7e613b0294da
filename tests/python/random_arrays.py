"""Arrays of random numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def random_array(
    rng: np.random.Generator, shape: int | tuple[int, ...], dtype: npt.DTypeLike
) -> np.ndarray:
    """Numbers of either sign; small ones where the type counts in whole numbers."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iub":
        return rng.integers(0, 2 if dtype.kind == "b" else 50, shape).astype(dtype)
    array = rng.uniform(-1, 1, shape)
    if dtype.kind == "c":
        array = array + 1j * rng.uniform(-1, 1, shape)
    return array.astype(dtype)
