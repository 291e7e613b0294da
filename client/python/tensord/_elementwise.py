"""Element-wise operations of tensors, arrays and numbers, as NumPy promotes them."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._arrays import array_of
from tensord._conversions import (
    Tensor,
    apart_from,
    check_fits,
    converted,
    refuse_lists,
    stored,
)
from tensord._tensor_handle import TensorHandle, TensorSession
from tensord.errors import InvalidArgument

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
"""Operators of which the results are bools."""

_BOOL, _INT8, _INT64, _FLOAT = map(np.dtype, ("?", "i1", "i8", "f8"))


def session_of(*operands: Any) -> TensorSession[Any, Any] | None:
    """Returns the session of the operands that are on a server; None without.

    Raises:
        InvalidArgument: They are of several (`SESSION_DIFFERS`).
    """
    session: TensorSession[Any, Any] | None = None
    for operand in operands:
        if not isinstance(operand, TensorHandle) or operand.session is session:
            continue
        if session is not None:
            raise InvalidArgument(
                f"operand {operand!r} is of another session, wanted one of all operands",
                reason="SESSION_DIFFERS",
            )
        session = operand.session
    return session


def is_operand(value: Any) -> bool:
    """Whether it is a tensor, or something to be made an array of.

    Raises:
        TypeError: It is a masked array, whose mask would be lost.
    """
    refuse_masked(value)
    return isinstance(
        value, (TensorHandle, np.ndarray, np.generic, numbers.Number, list, tuple)
    ) or hasattr(value, "__dlpack__")


def refuse_masked(value: Any) -> None:
    """Refuses a masked array, whose mask would be lost.

    Raises:
        TypeError: It is one.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("got a masked array, wanted one without a mask: `filled()` is")


def mapped(a: Any, operator: Callable[[Any], Any], out: Any = None) -> Any:
    """Computes `operator(a)`; `a` or `out` is a RemoteTensor."""
    a = a if isinstance(a, TensorHandle) else out.session.upload(a)
    result = operator(a)
    return result if out is None else stored(result, out)


def unary(
    tensor: Tensor, operator: str | None, dtype: np.dtype | None = None
) -> Tensor:
    """Applies one of the server's operators; `dtype` is the result's, if another."""
    modes = range(tensor.ndim)
    result: Tensor = tensor.session.permute(
        tensor, modes, modes, op_a=operator, dtype=dtype
    )
    return result


def binary(a: Any, b: Any, operator: str, out: Any = None) -> Any:
    """Computes `a + b` and so on, where one of them, or `out`, is a RemoteTensor.

    Args:
        a, b: Tensors, arrays and numbers.
        operator: "add", "sub", "mul", "div", "pow", "max", "min" or a comparison.
        out: A RemoteTensor that receives the result, perhaps `a`.

    Returns:
        NotImplemented when an operand is something else.
    """
    if not is_operand(a) or not is_operand(b):
        return NotImplemented
    refuse_lists(a, b)
    if (
        operator in COMPARISONS
        and (answer := _known_answer(a, b, operator)) is not None
    ):
        a = b = a if hasattr(a, "dtype") else b
        operator = "equal" if answer else "not_equal"
    session = session_of(a, b, out)
    assert session is not None
    if session_of(a, b) is None:
        a = session.upload(a)
    return _computed(session, a, b, operator, out)


def _computed(session: Any, a: Any, b: Any, operator: str, out: Any) -> Any:
    """As `binary`, of operands of which one is a tensor."""
    dtype = _promoted(a, b, operator)
    result = _BOOL if operator in COMPARISONS else dtype
    a, b = _as_known(a, dtype), _as_known(b, dtype)
    if operator == "div" and is_complex(dtype) and isinstance(b, np.ndarray):
        # NumPy does not look at the sign of such a zero.
        b = np.where(b == 0, np.zeros((), dtype), b)
    shape = broadcast_shape(a, b)
    if out is not None:
        check_fits(out, shape, result)
        if result != out.dtype:
            return stored(binary(a, b, operator), out)
    elif operator == "mul" and dtype.kind not in "iub":
        # A factor of 0 would have the operand not read, NaN and all.
        if not a.shape and isinstance(a, np.ndarray) and a != 0:
            return _scaled(b, dtype, a)
        if not b.shape and isinstance(b, np.ndarray) and b != 0:
            return _scaled(a, dtype, b)
    x, modes_x = aligned(a, dtype, shape)
    y, modes_y = aligned(b, dtype, shape)
    if out is not None:
        x, y = apart_from(out, x), apart_from(out, y)
    try:
        return session.elementwise(
            x,
            modes_x,
            y,
            modes_y,
            range(len(shape)),
            op=_server_operator(operator, dtype),
            gamma=-1 if operator == "sub" else 1,
            out=out,
            dtype=result if out is None else None,
        )
    except InvalidArgument as error:
        if out is None or error.reason != "OUTPUT_OVERLAPS_INPUT":
            raise
    return stored(binary(a, b, operator), out)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Computes what `numpy.where` does; one of the operands is a RemoteTensor."""
    refuse_lists(condition, x, y)
    session = session_of(condition, x, y)
    assert session is not None
    dtype = _promoted(x, y, "where")
    chosen = _as_known(condition, _BOOL)
    x, y = _as_known(x, dtype), _as_known(y, dtype)
    shape = broadcast_shape(chosen, x, y)
    chosen, modes_b = aligned(chosen, _BOOL, shape)
    x, modes_x = aligned(x, dtype, shape)
    y, modes_y = aligned(y, dtype, shape)
    return session.elementwise(
        x,
        modes_x,
        y,
        modes_y,
        range(len(shape)),
        b=chosen,
        modes_b=modes_b,
        op="where",
        dtype=dtype,
    )


def is_complex(dtype: np.dtype) -> bool:
    """Whether numbers have an imaginary part."""
    return dtype.kind == "c"


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex number; of real ones their own."""
    return np.dtype(f"f{dtype.itemsize // 2}") if is_complex(dtype) else dtype


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype that sums of many numbers fit in: float32 for the two of 16 bits."""
    is_short = dtypes.is_floating(dtype) and dtype.itemsize == 2
    return np.dtype(np.float32) if is_short else dtype


def broadcast_shape(*operands: Any) -> tuple[int, ...]:
    """Returns the shape that operands have together.

    Raises:
        InvalidArgument: They do not go together (`MODE_EXTENT_MISMATCH`).
    """
    shapes = [each.shape for each in operands]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise InvalidArgument(
            f"shapes {' and '.join(map(str, shapes))} do not broadcast, wanted equal "
            "extents or 1, counted from the last mode",
            reason="MODE_EXTENT_MISMATCH",
        ) from None


def aligned(
    value: Any, dtype: np.dtype, shape: tuple[int, ...]
) -> tuple[Any, list[int]]:
    """Returns an operand of a dtype and its modes, those that it does not repeat."""
    first = len(shape) - len(value.shape)
    kept = [i for i, extent in enumerate(value.shape) if extent == shape[first + i]]
    if len(kept) < len(value.shape):
        dropped = tuple(i for i in range(len(value.shape)) if i not in kept)
        value = value.squeeze(dropped)
    if value.dtype != dtype:
        value = converted(value, dtype)
    return value, [first + i for i in kept]


def _scaled(tensor: Any, dtype: np.dtype, factor: np.ndarray) -> Any:
    """Multiplies by a number."""
    if tensor.dtype != dtype:
        tensor = converted(tensor, dtype)
    modes = range(tensor.ndim)
    return tensor.session.permute(tensor, modes, modes, alpha=factor.item())


def _server_operator(operator: str, dtype: np.dtype) -> str:
    """The operator of the server that computes one of NumPy's.

    Raises:
        TypeError: The dtype has no such operation.
    """
    if dtype == _BOOL:
        if operator == "sub":
            raise TypeError("bools have no difference")
        # Sums of bools are "or", products "and".
        return {"max": "add", "min": "mul"}.get(operator, operator)
    ordered = ("max", "min", *COMPARISONS[2:])
    if is_complex(dtype) and operator in ordered:
        raise TypeError(f"numbers of {dtype} have no order, wanted real ones")
    return "add" if operator == "sub" else operator


def _as_known(value: Any, dtype: np.dtype) -> Any:
    """Returns a tensor as it is, and everything else as an array of `dtype`."""
    if isinstance(value, TensorHandle):
        return value
    if isinstance(value, numbers.Number) and not isinstance(value, np.generic):
        return np.asarray(value, dtype)  # Raises if an integer does not fit.
    return array_of(value).astype(dtype, copy=False)


def _promoted(a: Any, b: Any, operator: str) -> np.dtype:
    """Returns the dtype in which NumPy computes."""
    if _is_number(b) and not _is_number(a):
        dtype = _with_number(_dtype_of(a), b, operator)
    elif _is_number(a) and not _is_number(b):
        dtype = _with_number(_dtype_of(b), a, operator)
    else:
        dtype = np.result_type(_dtype_of(a), _dtype_of(b))
    if operator == "div" and dtype.kind in "iub":
        dtype = np.dtype(np.float64)
    if operator == "pow" and dtype == _BOOL:
        dtype = _INT8
    if operator == "pow" and dtype.kind in "iu" and not isinstance(b, TensorHandle):
        if np.any(np.less(array_of(b), 0)):
            raise ValueError("integers to negative integer powers are no integers")
    return dtypes.wire_dtype(dtype)


def _known_answer(a: Any, b: Any, operator: str) -> bool | None:
    """How integers compare to one of Python's that no dtype holds; None if one does."""
    number, other = (b, a) if _is_number(b) else (a, b)
    if not isinstance(number, int) or getattr(other, "dtype", _FLOAT).kind not in "iub":
        return None
    if -(2**63) <= number < 2**63:
        return None
    # Any element is on the same side of it as 0.
    side = 1 if number > 0 else -1
    return bool(getattr(np, operator)(*((0, side) if other is a else (side, 0))))


def _is_number(value: Any) -> bool:
    """Whether it is one of Python's numbers, which take the other's dtype."""
    return isinstance(value, numbers.Number) and not isinstance(value, np.generic)


def _dtype_of(value: Any) -> np.dtype:
    return value.dtype if hasattr(value, "shape") else np.asarray(value).dtype


def _with_number(dtype: np.dtype, number: Any, operator: str) -> np.dtype:
    """The dtype of a tensor's elements together with one of Python's numbers."""
    if isinstance(number, bool):
        return dtype
    if isinstance(number, numbers.Integral):
        if dtype == _BOOL:
            return _INT64
        if operator in COMPARISONS and dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return dtype if limits.min <= int(number) <= limits.max else _INT64
        return dtype
    if isinstance(number, numbers.Real):
        return np.dtype(np.float64) if dtype.kind in "iub" else dtype
    if dtype.kind == "c":
        return dtype
    is_double = dtype.kind in "iub" or dtype == np.float64
    return np.dtype(np.complex128 if is_double else np.complex64)
