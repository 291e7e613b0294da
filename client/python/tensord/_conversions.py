"""Tensors on the server in other dtypes."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from tensord import _dtypes as dtypes
from tensord._subscripts import letters
from tensord._tensor_handle import TensorHandle
from tensord.errors import InvalidArgument

Tensor = TypeVar("Tensor", bound=TensorHandle)

_HALF, _SINGLE, _DOUBLE = map(np.dtype, ("f2", "f4", "f8"))
_PERMUTED = {
    frozenset(pair)
    for pair in [(_HALF, _SINGLE), (_SINGLE, _DOUBLE), map(np.dtype, ("c8", "c16"))]
}


def converted(tensor: Tensor, dtype: np.dtype) -> Tensor:
    """Computes the same numbers in another dtype.

    Integers become what holds them, floating-point numbers more or less precise or
    complex; what the server does not convert at once goes by way of others.

    Raises:
        Unimplemented: The server does not convert these dtypes: floating-point numbers
            to integers, complex ones to real ones, integers to narrower ones.
    """
    way = _way(tensor.dtype, dtype)
    if way is not None:
        tensor = converted(tensor, way)
    modes = letters(tensor.ndim)
    result: Tensor = tensor.session.einsum(
        f"{modes}->{modes}", tensor, dtype=dtype, casting="unsafe"
    )
    return result


def is_permuted(source: np.dtype, target: np.dtype) -> bool:
    """Whether a permutation can convert one dtype to the other by itself."""
    if source == target or frozenset((source, target)) in _PERMUTED:
        return True
    return (
        source.kind in "iub"
        and target not in (_HALF, dtypes.bfloat16)
        and np.can_cast(source, target, "safe")
    )


def stored(result: TensorHandle, out: Any) -> Any:
    """Stores a result in an existing tensor, as NumPy's `out=` does, and returns that.

    Raises:
        InvalidArgument: The shapes differ (`MODE_EXTENT_MISMATCH`).
        TypeError: The dtype of `out` is of another kind.
    """
    check_fits(out, result.shape, result.dtype)
    if not is_permuted(result.dtype, out.dtype):
        result = converted(result, out.dtype)
    modes = range(result.ndim)
    return out.session.permute(result, modes, modes, out=out)


def check_fits(out: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuses a result that `out` cannot hold, as `stored` says."""
    if not dtypes.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"a result of {dtype} cannot be stored in one of {out.dtype}")
    if shape != out.shape:
        raise InvalidArgument(
            f"a result of shape {shape} cannot be stored in one of shape {out.shape}",
            reason="MODE_EXTENT_MISMATCH",
        )


def _way(source: np.dtype, target: np.dtype) -> np.dtype | None:
    """The dtype to convert to first; None when one step is enough."""
    if target == _HALF and source != _SINGLE and source.kind != "c":
        return _SINGLE
    is_single = target in (_SINGLE, np.dtype("c8"))
    if is_single and source.kind in "iu" and not np.can_cast(source, target, "safe"):
        return _DOUBLE if target == _SINGLE else np.dtype("c16")
    return None
