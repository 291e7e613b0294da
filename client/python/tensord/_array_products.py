"""Functions of `tensord.array` that multiply and add up, and opt_einsum's."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensord import _arithmetic as arithmetic
from tensord._array_numbers import conj, multiply
from tensord._array_session import tensor_of
from tensord._elementwise import session_of
from tensord._stages import axis_of
from tensord._subscripts import letters
from tensord._tensor_handle import TensorHandle
from tensord.errors import InvalidArgument


def einsum(subscripts: Any, /, *operands: Any, **options: Any) -> Any:
    """Computes `Session.einsum` in the session of the operands, or the current one.

    Args:
        subscripts, *operands, **options: As `Session.einsum` takes them.
    """
    session = session_of(subscripts, *operands, options.get("out"))
    if session is None:
        operands = (tensor_of(operands[0]), *operands[1:])
        session = operands[0].session
    return session.einsum(subscripts, *operands, **options)


def einsum_path(*operands: Any, **options: Any) -> Any:
    """Finds NumPy's path, which depends on shapes alone."""
    return np.einsum_path(
        *(
            (
                np.broadcast_to(np.empty((), each.dtype), each.shape)
                if isinstance(each, TensorHandle)
                else each
            )
            for each in operands
        ),
        **options,
    )


def tensordot(a: Any, b: Any, /, axes: Any = 2) -> Any:
    """Multiplies tensors, summed over modes of both."""
    if session_of(a, b) is None:
        a = tensor_of(a)
    return arithmetic.tensordot(a, b, axes)


def matmul(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Multiplies matrices, those in the last two modes."""
    if session_of(x1, x2, out) is None:
        x1 = tensor_of(x1)
    return arithmetic.matmul(x1, x2, out)


def dot(a: Any, b: Any, /) -> Any:
    """Computes what `numpy.dot` does."""
    return tensor_of(a, b).dot(b)


def inner(a: Any, b: Any, /) -> Any:
    """Multiplies tensors, summed over the last mode of both."""
    a, b = tensor_of(a, b), tensor_of(b, a)
    return tensordot(a, b, ([-1], [-1])) if a.ndim and b.ndim else multiply(a, b)


def outer(a: Any, b: Any, /) -> Any:
    """Multiplies each element of one tensor by each of another."""
    a, b = tensor_of(a, b), tensor_of(b, a)
    return tensordot(a.reshape(-1), b.reshape(-1), 0)


def vdot(a: Any, b: Any, /) -> Any:
    """Sums the products of all elements, of the first tensor conjugated."""
    a, b = tensor_of(a, b), tensor_of(b, a)
    if a.size != b.size:
        raise InvalidArgument(
            f"vdot has operands of shapes {a.shape} and {b.shape}, wanted as many elements",
            reason="MODE_EXTENT_MISMATCH",
        )
    if a.shape != b.shape:
        a, b = a.reshape(-1), b.reshape(-1)
    return tensordot(_conjugated(a), b, a.ndim)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Sums products over a mode, of the first tensor conjugated.

    Args:
        x1, x2: The tensors, whose other modes are broadcast.
        axis: The mode, counted from the last one of both.
    """
    x1, x2 = tensor_of(x1, x2), tensor_of(x2, x1)
    position = axis_of("axis", axis, max(x1.ndim, x2.ndim)) - max(x1.ndim, x2.ndim)
    count = min(x1.ndim, x2.ndim)
    if -position > count or x1.shape[position] != x2.shape[position]:
        raise InvalidArgument(
            f"vecdot sums mode {axis} of {x1.shape} and {x2.shape}, wanted equal extents",
            reason="MODE_EXTENT_MISMATCH",
        )
    labels = letters(max(x1.ndim, x2.ndim))
    left, right = labels[len(labels) - x1.ndim :], labels[len(labels) - x2.ndim :]
    summed = labels[position]
    result = labels.replace(summed, "")
    return _einsum_of(_conjugated(x1), left, x2, right, result)


def _conjugated(x: Any) -> Any:
    return conj(x) if x.dtype.kind == "c" else x


def _einsum_of(a: Any, left: str, b: Any, right: str, result: str) -> Any:
    return a.session.einsum(f"{left},{right}->{result}", a, b)


__all__ = [
    "dot",
    "einsum",
    "einsum_path",
    "inner",
    "matmul",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
]
