"""Functions of `tensord.array` that make one number of many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord._array_numbers import abs, multiply, not_equal, sqrt
from tensord._array_session import tensor_of
from tensord._conversions import stored
from tensord._stages import IntOrInts, axes_of
from tensord.errors import InvalidArgument

Axis = IntOrInts | None


def sum(
    x: Any,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Sums over modes, see `RemoteTensor.sum`."""
    return tensor_of(x, out).sum(axis, dtype, out, keepdims)


def prod(
    x: Any,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Multiplies over modes."""
    return tensor_of(x, out).prod(axis, dtype, out, keepdims)


def max(x: Any, /, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Returns the largest elements over modes."""
    return tensor_of(x, out).max(axis, out, keepdims)


def min(x: Any, /, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Returns the smallest elements over modes."""
    return tensor_of(x, out).min(axis, out, keepdims)


amax, amin = max, min


def mean(
    x: Any,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Averages over modes."""
    return tensor_of(x, out).mean(axis, dtype, out, keepdims)


def var(
    x: Any,
    /,
    axis: Axis = None,
    *,
    correction: float = 0,
    ddof: float | None = None,
    keepdims: bool = False,
) -> Any:
    """Averages squared distances from the mean over modes.

    Args:
        x: The tensor.
        axis: Which modes; None for all.
        correction: What is subtracted from the number of elements; `ddof` in NumPy.
        ddof: The same.
        keepdims: Whether averaged modes stay, with extent 1.
    """
    x = tensor_of(x)
    distances = abs(x - x.mean(axis, keepdims=True))
    squares = multiply(distances, distances)
    axes = range(x.ndim) if axis is None else axes_of("axis", axis, x.ndim)
    count = math.prod(x.shape[i] for i in axes)
    divisor = count - (correction if ddof is None else ddof)
    if divisor <= 0:
        raise InvalidArgument(
            f"var of {count} elements with correction {correction if ddof is None else ddof}, "
            "wanted more elements",
            reason="REDUCTION_OF_NOTHING",
        )
    return squares.sum(axis, keepdims=keepdims) / float(divisor)


def std(x: Any, /, axis: Axis = None, **options: Any) -> Any:
    """Computes the root of `var`, whose arguments it takes."""
    return sqrt(var(x, axis, **options))


def all(x: Any, /, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Says whether all elements over modes are not 0."""
    return _put(tensor_of(x, out).all(axis, keepdims), out)


def any(x: Any, /, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Says whether elements over modes are not 0."""
    return _put(tensor_of(x, out).any(axis, keepdims), out)


def count_nonzero(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """Counts the elements over modes that are not 0."""
    return not_equal(tensor_of(x), 0).sum(axis, np.int64, None, keepdims)


def _put(result: Any, out: Any) -> Any:
    return result if out is None else stored(result, out)


__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]
