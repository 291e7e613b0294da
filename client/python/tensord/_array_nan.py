"""Functions of `tensord.array` that leave out what is no number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._array_numbers import abs, divide, isnan, multiply, sqrt, where
from tensord._array_session import tensor_of
from tensord._array_statistics import Axis
from tensord._array_statistics import all as all_of
from tensord._conversions import converted, stored
from tensord._elementwise import real_dtype, wide_dtype


def nansum(
    x: Any,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Sums over modes what is a number."""
    return _filled(tensor_of(x, out), 0).sum(axis, dtype, out, keepdims)


def nanprod(
    x: Any,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Multiplies over modes what is a number."""
    return _filled(tensor_of(x, out), 1).prod(axis, dtype, out, keepdims)


def nanmax(
    x: Any, /, axis: Axis = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Returns the largest numbers over modes; NaN where there is none."""
    x = tensor_of(x, out)
    result = _filled(x, -math.inf).max(axis, None, keepdims)
    return _put(_or_nan(x, result, axis, keepdims), out)


def nanmin(
    x: Any, /, axis: Axis = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Returns the smallest numbers over modes; NaN where there is none."""
    x = tensor_of(x, out)
    result = _filled(x, math.inf).min(axis, None, keepdims)
    return _put(_or_nan(x, result, axis, keepdims), out)


def nanmean(
    x: Any,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Any:
    """Averages over modes what is a number; NaN where there is none."""
    x = tensor_of(x, out)
    if x.dtype.kind in "iub":
        return x.mean(axis, dtype, out, keepdims)
    return _put(_mean(x, x, axis, dtype, 0, keepdims), out)


def nanvar(
    x: Any,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Any:
    """Averages squared distances of numbers from their mean over modes.

    Args:
        x: The tensor.
        axis: Which modes; None for all.
        dtype: As `mean` takes it.
        out: Tensor that receives the result.
        ddof: What is subtracted from how many numbers there are.
        keepdims: Whether averaged modes stay, with extent 1.
    """
    x = tensor_of(x, out)
    kept = None if dtype is None else dtypes.wire_dtype(dtype)
    kept = kept or (np.dtype(np.float64) if x.dtype.kind in "iub" else x.dtype)
    known = converted(x, wide_dtype(np.result_type(kept, x.dtype)))
    distances = abs(known - _mean(known, known, axis, None, 0, True))
    # Infinities have no distance from their mean, and count all the same.
    squares = multiply(distances, distances)
    result = _mean(known, squares, axis, None, ddof, keepdims)
    return _put(converted(result, real_dtype(kept)), out)


def nanstd(x: Any, /, *args: Any, out: Any = None, **options: Any) -> Any:
    """Computes the root of `nanvar`, whose arguments it takes."""
    return _put(sqrt(nanvar(x, *args, **options)), out)


def _filled(x: Any, value: float) -> Any:
    """The tensor with another value in place of NaN."""
    return x if x.dtype.kind in "iub" else where(isnan(x), value, x)


def _or_nan(x: Any, result: Any, axis: Axis, keepdims: bool) -> Any:
    if x.dtype.kind in "iub":
        return result
    is_nothing = all_of(isnan(x), axis, None, keepdims)
    return where(is_nothing, math.nan, result)


def _mean(
    x: Any, values: Any, axis: Axis, dtype: Any, ddof: float, keepdims: bool
) -> Any:
    """Averages values where `x` is a number."""
    kept = values.dtype if dtype is None else dtypes.wire_dtype(dtype)
    is_number = x == x
    total = where(is_number, values, 0).sum(axis, wide_dtype(kept), None, keepdims)
    count = is_number.sum(axis, np.float64, None, keepdims) - ddof
    return converted(divide(total, where(count > 0, count, math.nan)), kept)


def _put(result: Any, out: Any) -> Any:
    return result if out is None else stored(result, out)


__all__ = ["nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"]
