"""Functions of `tensord.array` that go along a mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._array_indices import take_along_axis
from tensord._array_layout import concat
from tensord._array_numbers import equal, not_equal, where
from tensord._array_session import tensor_of
from tensord._conversions import converted, stored
from tensord._stages import axis_of
from tensord.errors import InvalidArgument

# Up to here, indices are sent; more are added up on the server.
_SENT_INDICES = 4096
# What NumPy calls ways to sort.
_KINDS = ("quicksort", "mergesort", "heapsort", "stable")
# Of ufuncs, the operator and whether integers become int64.
_ACCUMULATED: dict[np.ufunc, tuple[str, bool]] = {
    np.add: ("add", True),
    np.multiply: ("mul", True),
    np.maximum: ("max", False),
    np.minimum: ("min", False),
}


def cumsum(
    x: Any,
    axis: int | None = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """Sums what comes before each element along a mode, and the element.

    Args:
        x: The tensor.
        axis: The mode; None numbers all elements.
        dtype: In which it is computed; None for int64 of integers, else the tensor's.
        out: Tensor that receives the result.
    """
    return _put(_scanned(tensor_of(x, out), axis, dtype, "add"), out)


def cumprod(
    x: Any,
    axis: int | None = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """Multiplies as `cumsum` sums."""
    return _put(_scanned(tensor_of(x, out), axis, dtype, "mul"), out)


def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: npt.DTypeLike | None = None,
    include_initial: bool = False,
) -> Any:
    """Sums along a mode, see `cumsum`; with a 0 before, if asked for."""
    return _with_initial(cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: npt.DTypeLike | None = None,
    include_initial: bool = False,
) -> Any:
    """Multiplies along a mode, see `cumprod`; with a 1 before, if asked for."""
    return _with_initial(cumprod, x, axis, dtype, 1 if include_initial else None)


def accumulate(
    ufunc: np.ufunc,
    x: Any,
    axis: int = 0,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """Computes `ufunc.accumulate` of add, multiply, maximum or minimum.

    Returns:
        NotImplemented for others.
    """
    if ufunc not in _ACCUMULATED:
        return NotImplemented
    operator, grows = _ACCUMULATED[ufunc]
    x = tensor_of(x, out)
    if dtype is None and not grows:
        dtype = x.dtype
    return _put(_scanned(x, axis, dtype, operator), out)


def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None
) -> Any:
    """Computes what each element adds to the one before it, `n` times over."""
    a = tensor_of(a, prepend, append)
    if n < 0:
        raise InvalidArgument(
            f"n is {n}, wanted 0 or more", reason="OPTION_OUT_OF_RANGE"
        )
    axis = axis_of("axis", axis, a.ndim)
    ends = [_as_end(each, a, axis) for each in (prepend, append)]
    parts = [each for each in (ends[0], a, ends[1]) if each is not None]
    a = concat(parts, axis=axis) if len(parts) > 1 else a
    for _ in range(n):
        later, earlier = a[_at(axis, 1, None)], a[_at(axis, 0, -1)]
        is_bool = a.dtype == np.bool_
        a = not_equal(later, earlier) if is_bool else later - earlier
    return a


def argmax(
    x: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False
) -> Any:
    """Returns the first index of the largest element along a mode; None: of all.

    As in NumPy, what is no number is larger than all numbers.
    """
    return _put(_index_of("max", tensor_of(x, out), axis, keepdims), out)


def argmin(
    x: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False
) -> Any:
    """Returns the first index of the smallest element along a mode, see `argmax`."""
    return _put(_index_of("min", tensor_of(x, out), axis, keepdims), out)


def argsort(
    x: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> Any:
    """Returns the indices that sort a tensor along a mode.

    Equal elements stay as they are to each other, whatever `kind` and `stable` say. As
    in NumPy, what is no number is above all numbers.

    Args:
        x: The tensor, of real numbers.
        axis: The mode; None numbers all elements.
        kind, stable: NumPy's, and not needed.
        order: None; there are no fields.
        descending: Largest ones first.
    """
    x, axis = _sortable(x, axis, kind, order)
    modes = range(x.ndim)
    way = "descending" if descending else "ascending"
    return x.session.reduce(x, modes, modes, along=axis, sort=way)


def sort(
    x: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> Any:
    """Returns a copy with the elements along a mode in order, see `argsort`."""
    x, axis = _sortable(x, axis, kind, order)
    indices = argsort(x, axis, descending=descending)
    return take_along_axis(x, indices, axis=axis)


def _sortable(
    x: Any, axis: int | None, kind: str | None, order: Any
) -> tuple[Any, int]:
    """The tensor and the mode that is sorted."""
    x = tensor_of(x)
    if kind is not None and kind not in _KINDS:
        raise InvalidArgument(
            f"kind is {kind!r}, wanted None or one of {', '.join(_KINDS)}",
            reason="OPTION_UNSUPPORTED",
        )
    if order is not None:
        raise InvalidArgument(
            f"order is {order!r}, but tensors have no fields, wanted None",
            reason="OPTION_UNSUPPORTED",
        )
    if x.dtype.kind == "c":
        raise TypeError(f"numbers of {x.dtype} have no order, wanted real ones")
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x, axis_of("axis", axis, x.ndim)


def _scanned(x: Any, axis: int | None, dtype: Any, operator: str) -> Any:
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of("axis", axis, x.ndim)
    if dtype is None:
        dtype = np.int64 if x.dtype.kind in "iub" else x.dtype
    wanted = dtypes.wire_dtype(dtype)
    source = x if wanted == x.dtype else converted(x, wanted)
    modes = range(x.ndim)
    return x.session.reduce(source, modes, modes, op=operator, along=axis)


def _with_initial(scan: Any, x: Any, axis: int | None, dtype: Any, first: Any) -> Any:
    x = tensor_of(x)
    if axis is None and x.ndim != 1:
        raise InvalidArgument(
            f"axis is None for a tensor of {x.ndim} modes, wanted one of its modes",
            reason="MODE_COUNT_MISMATCH",
        )
    axis = axis_of("axis", 0 if axis is None else axis, x.ndim)
    result = scan(x, axis, dtype)
    if first is None:
        return result
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    initial = tensor_of(np.full(shape, first, result.dtype), x)
    return concat([initial, result], axis=axis)


def _index_of(operator: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    """The first index of the largest or the smallest element."""
    if x.dtype.kind == "c":
        raise TypeError(f"numbers of {x.dtype} have no order, wanted real ones")
    if axis is None:
        result = _index_of(operator, x.reshape(-1), 0, False)
        return result.reshape((1,) * x.ndim) if keepdims else result
    axis = axis_of("axis", axis, x.ndim)
    extent = x.shape[axis]
    best = x.max(axis, None, True) if operator == "max" else x.min(axis, None, True)
    is_best = equal(x, best)
    if x.dtype.kind not in "iub":
        is_best = is_best | not_equal(x, x)
    indices = _indices(x, extent).reshape((extent, *(1,) * (x.ndim - 1 - axis)))
    result = where(is_best, indices, extent).min(axis)
    return result.expand_dims(axis) if keepdims else result


def _indices(x: Any, extent: int) -> Any:
    """The numbers below an extent, as an array or in the session of a tensor."""
    if extent <= _SENT_INDICES:
        return np.arange(extent)
    firsts = tensor_of(np.arange(0, extent, _SENT_INDICES)[:, None], x)
    return (firsts + np.arange(_SENT_INDICES)).reshape(-1)[:extent]


def _as_end(value: Any, a: Any, axis: int) -> Any:
    """What stands before or behind a tensor; numbers have its shape, with extent 1."""
    if value is None:
        return None
    value = tensor_of(value, a)
    if value.ndim:
        return value
    return value.broadcast_to((*a.shape[:axis], 1, *a.shape[axis + 1 :]))


def _at(axis: int, start: int, stop: int | None) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, slice(start, stop))


def _put(result: Any, out: Any) -> Any:
    return result if out is None else stored(result, out)


__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "sort",
]
