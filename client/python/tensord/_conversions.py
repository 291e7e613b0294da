"""Tensors on the server in other dtypes."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from tensord import _dtypes as dtypes
from tensord._tensor_handle import TensorHandle
from tensord.errors import InvalidArgument

Tensor = TypeVar("Tensor", bound=TensorHandle)


def converted(tensor: Tensor, dtype: np.dtype) -> Tensor:
    """Computes the same numbers in another dtype, as NumPy's `astype` does.

    Floating-point numbers lose their fraction on the way to integers, and stay within
    their range; complex ones lose their imaginary part; bools say what is not 0.
    """
    modes = range(tensor.ndim)
    session = tensor.session
    result: Tensor
    if tensor.dtype.kind != "c" or dtype.kind == "c":
        result = session.permute(tensor, modes, modes, dtype=dtype)
        return result
    if dtype == np.bool_:
        zero = np.zeros((), tensor.dtype)
        result = session.elementwise(
            tensor, modes, zero, (), modes, op="not_equal", dtype=dtype
        )
        return result
    part = np.dtype(f"f{tensor.dtype.itemsize // 2}")
    result = session.permute(tensor, modes, modes, op_a="real", dtype=part)
    return result if dtype == part else converted(result, dtype)


def holds_tensors(value: Any) -> bool:
    """Whether a list has tensors in it, at any depth."""
    if not isinstance(value, (list, tuple)):
        return False
    kinds = set(map(type, value))
    if any(issubclass(kind, TensorHandle) for kind in kinds):
        return True
    has_lists = any(issubclass(kind, (list, tuple)) for kind in kinds)
    return has_lists and any(map(holds_tensors, value))


def refuse_lists(*values: Any) -> None:
    """Refuses lists that NumPy would download the tensors of.

    Raises:
        TypeError: One is such a list.
    """
    if any(map(holds_tensors, values)):
        raise TypeError(
            "got a list with tensors on a server, which would be downloaded: "
            "`tensord.array.stack` makes a tensor of them there"
        )


def refuse_tensors(argument: str, *values: Any) -> None:
    """Refuses tensors where numbers are needed here.

    Raises:
        TypeError: One is a tensor, or a list with one.
    """
    for value in values:
        if isinstance(value, TensorHandle) or holds_tensors(value):
            raise TypeError(
                f"{argument} is, or has, a tensor on a server, wanted numbers: `int(t)`, "
                "`float(t)` and `.numpy()` download them"
            )


def check_output(out: Any) -> None:
    """Refuses an output that is not on the server.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(out, TensorHandle):
        raise TypeError(
            f"out is of type {type(out).__name__}, wanted a RemoteTensor; `.numpy()` of "
            "the result downloads"
        )


def apart_from(out: Any, operand: Any) -> Any:
    """Returns an operand, or a copy of one that overlaps the output as `overlaps` says."""
    if not isinstance(operand, TensorHandle) or not operand.overlaps(out):
        return operand
    return copied(operand)


def separate_from(out: Any, operand: Any) -> Any:
    """Returns an operand, or a copy of one that is known here to share memory with the
    output, though it may be the same."""
    if not isinstance(operand, TensorHandle):
        return operand
    shares = operand.overlaps(out) or operand.coincides(out)
    return copied(operand) if shares else operand


def copied(tensor: TensorHandle) -> Any:
    """Copies a tensor on the server."""
    modes = range(tensor.ndim)
    return tensor.session.permute(tensor, modes, modes)


def stored(result: TensorHandle, out: Any) -> Any:
    """Stores a result in an existing tensor, as NumPy's `out=` does, and returns that.

    Raises:
        InvalidArgument: The shapes differ (`MODE_EXTENT_MISMATCH`).
        TypeError: The dtype of `out` is of another kind.
    """
    check_fits(out, result.shape, result.dtype)
    modes = range(result.ndim)
    return out.session.permute(result, modes, modes, out=out)


def check_fits(out: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuses a result that `out` cannot hold, as `stored` says."""
    check_output(out)
    if not dtypes.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"a result of {dtype} cannot be stored in one of {out.dtype}")
    if shape != out.shape:
        raise InvalidArgument(
            f"a result of shape {shape} cannot be stored in one of shape {out.shape}",
            reason="MODE_EXTENT_MISMATCH",
        )
