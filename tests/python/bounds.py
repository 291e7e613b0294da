"""How far a correct result may be from the exact one."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tensord import RemoteTensor

_SINGLE = np.finfo(np.float32).eps / 2
_DOUBLE = np.finfo(np.float64).eps / 2
_STORED = {
    np.dtype(np.float16): (np.finfo(np.float16).eps / 2, 2.0**-24),
    np.dtype(ml_dtypes.bfloat16): (2.0**-8, 2.0**-133),
    np.dtype(np.float32): (_SINGLE, 2.0**-149),
    np.dtype(np.complex64): (_SINGLE, 2.0**-149),
    np.dtype(np.float64): (_DOUBLE, 2.0**-1074),
    np.dtype(np.complex128): (_DOUBLE, 2.0**-1074),
}


def widened(array: np.ndarray) -> np.ndarray:
    """The same numbers as float64 or complex128, or integers as they are."""
    if array.dtype not in _STORED:
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def assert_within_bound(
    actual: np.ndarray,
    expected: np.ndarray,
    magnitude: np.ndarray,
    term_count: int,
    step_count: int = 0,
) -> None:
    """Checks each element against the largest rounding error that sums can have.

    Integers must be equal.

    Args:
        actual: Result, of the result's dtype.
        expected: Computed in float64 or complex128, so it has an error as well.
        magnitude: The sum of the absolute values of what was added.
        term_count: How many products were added, alpha and beta not counted.
        step_count: How often intermediate results were rounded to the result's dtype.
    """
    assert actual.shape == expected.shape
    if actual.dtype not in _STORED:
        np.testing.assert_array_equal(actual, expected)
        return
    store, smallest = _STORED[actual.dtype]
    unit = _DOUBLE if actual.dtype.itemsize >= 8 and store == _DOUBLE else _SINGLE
    # A complex product is two products and a sum; the two parts of its error add up.
    factor = 4.0 if actual.dtype.kind == "c" else 1.0
    n = factor * (term_count + 3.0)
    gamma = n * unit / (1.0 - n * unit)
    gamma_expected = n * _DOUBLE / (1.0 - n * _DOUBLE)
    bound = (gamma + gamma_expected) * magnitude
    bound = (1 + float(store)) ** step_count * (bound + magnitude) - magnitude
    bound = bound + step_count * smallest * (1 + np.max(magnitude, initial=0))
    bound = bound + store * (np.abs(expected) + bound) + smallest
    error = np.abs(widened(actual) - expected)
    worst = np.max(error - bound, initial=-np.inf)
    assert worst <= 0, f"error {np.max(error)}, beyond the bound by {worst}"


def assert_product(result: RemoteTensor, a: np.ndarray, b: np.ndarray) -> None:
    """Checks a product of two matrices."""
    expected = widened(a) @ widened(b)
    magnitude = abs(widened(a)) @ abs(widened(b))
    assert_within_bound(result.numpy(), expected, magnitude, a.shape[1])
