"""Functions of `tensord.array` that make tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arguments import extents_of
from tensord._array_layout import check_order, stack
from tensord._array_session import (
    CURRENT,
    placed,
    refuse_other_libraries,
    tensor_of,
)
from tensord._conversions import holds_tensors, refuse_tensors
from tensord._elementwise import session_of
from tensord._stages import IntOrInts
from tensord._tensor_handle import TensorHandle

_INLINE_ELEMENTS = 4096


def asarray(
    obj: Any,
    /,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
) -> Any:
    """Returns a tensor as it is, and an array or numbers on the server.

    Args:
        obj: A tensor, a list with tensors, which are stacked on the server, what
            `numpy.asarray` takes, or what has `__dlpack__`.
        dtype: What it becomes, if another.
        order: "K", "C" or "A": tensors that are made are in C order.
        device: That of the session.
        copy: Whether a tensor is copied; None: if its dtype changes.

    Raises:
        ValueError: It cannot be done without a copy, and `copy` is False.
    """
    check_order(order)
    if isinstance(obj, TensorHandle):
        known: Any = obj
        _check_device(known.session, device)
        if dtype is not None and dtypes.wire_dtype(dtype) != known.dtype:
            if copy is False:
                raise ValueError(f"a tensor of {known.dtype} is copied to be {dtype}")
            return known.astype(dtype)
        return known.copy() if copy else known
    if copy is False:
        raise ValueError("what is not on the server is copied there")
    if holds_tensors(obj):
        parts = stack([asarray(each, device=device) for each in obj])
        return parts if dtype is None else parts.astype(dtype, copy=False)
    refuse_other_libraries(obj)
    session = _session(device)
    return placed(session, np.asarray(obj, dtype))


def array(
    obj: Any,
    dtype: npt.DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
) -> Any:
    """Returns a new tensor, see `asarray`.

    Args:
        obj, dtype, copy: As `asarray` takes them.
        order: "K", "C" or "A": tensors that are made are in C order.
        subok: Of no consequence.
        ndmin: The least modes; missing ones of extent 1 come in front.
    """
    check_order(order)
    result = asarray(obj, dtype, copy=copy or None)
    missing = ndmin - result.ndim
    return result if missing <= 0 else result.reshape((1,) * missing + result.shape)


def asanyarray(
    obj: Any, dtype: npt.DTypeLike | None = None, order: str | None = None
) -> Any:
    """Returns a tensor as it is, see `asarray`."""
    return asarray(obj, dtype, order)


def from_dlpack(
    x: Any, /, *, device: str | None = None, copy: bool | None = None
) -> Any:
    """Returns a tensor of another library on the server."""
    if isinstance(x, TensorHandle):
        return asarray(x, device=device, copy=copy)
    return asarray(np.from_dlpack(x), device=device, copy=copy)


def full(
    shape: IntOrInts,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
) -> Any:
    """Makes a tensor of equal elements, or of what is broadcast to a shape."""
    check_order(order)
    if isinstance(fill_value, TensorHandle) or holds_tensors(fill_value):
        value = asarray(fill_value, dtype)
        _check_device(value.session, device)
        return _full(value.session, shape, value)
    return _full(_session(device), shape, np.asarray(fill_value, dtype))


def zeros(
    shape: IntOrInts,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
) -> Any:
    """Makes a tensor of zeros."""
    return full(shape, 0, dtype or np.float64, order, device=device)


def ones(
    shape: IntOrInts,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
) -> Any:
    """Makes a tensor of ones."""
    return full(shape, 1, dtype or np.float64, order, device=device)


def empty(
    shape: IntOrInts,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
) -> Any:
    """Makes a tensor of zeros: the server has none without contents to compute with."""
    return zeros(shape, dtype, order, device=device)


def full_like(
    x: Any,
    /,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: IntOrInts | None = None,
    *,
    device: str | None = None,
) -> Any:
    """Makes a tensor of equal elements, like another one, in its session.

    Args:
        x: The other one.
        fill_value: The elements.
        dtype, shape: What it is like, if it is to be otherwise than `x`.
        order: "K", "C" or "A": tensors that are made are in C order.
        subok: Of no consequence.
        device: That of the session.
    """
    x = tensor_of(x)
    check_order(order)
    _check_device(x.session, device)
    if dtype is not None and np.dtype(dtype).names:
        raise TypeError(f"dtype is {dtype}, wanted one without fields")
    wanted = dtypes.wire_dtype(dtype or x.dtype)
    extents = x.shape if shape is None else shape
    if isinstance(fill_value, TensorHandle) or holds_tensors(fill_value):
        return _full(x.session, extents, asarray(fill_value, wanted))
    value = np.full(np.shape(fill_value), fill_value, wanted)
    return _full(x.session, extents, value)


def _like(name: str, value: int, text: str) -> Callable[..., Any]:
    def function(
        x: Any,
        /,
        dtype: npt.DTypeLike | None = None,
        order: str = "K",
        subok: bool = True,
        shape: IntOrInts | None = None,
        *,
        device: str | None = None,
    ) -> Any:
        return full_like(x, value, dtype, order, subok, shape, device=device)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Makes a tensor of {text}, like another one, see `full_like`."
    return function


zeros_like = _like("zeros_like", 0, "zeros")
ones_like = _like("ones_like", 1, "ones")
empty_like = _like("empty_like", 0, "zeros, see `empty`")


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: npt.DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Any:
    """Makes a matrix with ones on a diagonal."""
    refuse_tensors("eye", n_rows, n_cols, k)
    columns = n_rows if n_cols is None else n_cols
    wanted = dtypes.wire_dtype(dtype or np.float64)
    if n_rows * columns <= _INLINE_ELEMENTS:
        return placed(_session(device), np.eye(n_rows, columns, k, wanted))
    result = zeros((n_rows, columns), wanted, device=device)
    if -n_rows < k < columns:
        result.diagonal(k)[...] = 1
    return result


def identity(n: int, dtype: npt.DTypeLike | None = None) -> Any:
    """Makes a square matrix with ones on its diagonal."""
    return eye(n, dtype=dtype)


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Any:
    """Makes a vector of numbers at equal distances."""
    refuse_tensors("arange", start, stop, step)
    begin, end = (0, start) if stop is None else (start, stop)
    numbers: Any = np.arange
    values = numbers(begin, end, step, dtype=dtype)
    return placed(_session(device), values)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Any:
    """Makes a vector of so many numbers at equal distances.

    Between tensors, each number is a tensor along the first mode of the result.
    """
    if session_of(start, stop) is not None:
        return _between(start, stop, num, dtype, endpoint)
    values = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    return placed(_session(device), values)


def indices(dimensions: tuple[int, ...], dtype: npt.DTypeLike = np.int64) -> Any:
    """Makes a tensor of the indices of a shape, by mode."""
    return placed(CURRENT.get(), np.indices(dimensions, dtype))


def to_numpy(x: Any, /) -> np.ndarray:
    """Downloads a tensor."""
    return np.asarray(x)


def _between(start: Any, stop: Any, num: int, dtype: Any, endpoint: bool) -> Any:
    """As `linspace`, where one of the bounds is a tensor."""
    begin, end = tensor_of(start, stop), tensor_of(stop, start)
    made = np.result_type(
        *(each.dtype if hasattr(each, "dtype") else each for each in (start, stop)), 1.0
    )
    count = max(begin.ndim, end.ndim)
    parts = np.linspace(0, 1, num, endpoint=endpoint).astype(made)
    parts = parts.reshape(-1, *(1,) * count)
    begin, end = begin.astype(made, copy=False), end.astype(made, copy=False)
    values = begin * (1 - parts) + end * parts
    return values if dtype is None else values.astype(dtype, copy=False)


def _full(session: Any, shape: IntOrInts, value: Any) -> Any:
    extents = extents_of(shape)
    if not isinstance(value, TensorHandle):
        value = value.astype(dtypes.wire_dtype(value.dtype), copy=False)
        if np.prod(extents, dtype=np.float64) <= _INLINE_ELEMENTS:
            return placed(session, np.full(extents, value))
    made = session.create(extents, value.dtype)
    made[...] = value
    return made


def _session(device: str | None) -> Any:
    session = CURRENT.get()
    _check_device(session, device)
    return session


def _check_device(session: Any, device: str | None) -> None:
    if device not in (None, session.device):
        raise ValueError(f"device is {device!r}, wanted {session.device!r} or None")


__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "identity",
    "indices",
    "linspace",
    "ones",
    "ones_like",
    "to_numpy",
    "zeros",
    "zeros_like",
]
