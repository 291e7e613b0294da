"""NumPy dtypes, element types and compute types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tensord._arguments import look_up
from tensord._messages import enum_values
from tensord.errors import InvalidArgument
from tensord.v1 import compute_pb2, tensor_pb2

bfloat16 = np.dtype(ml_dtypes.bfloat16)

# Little-endian, as bytes travel.
_ELEMENT_TYPES: dict[np.dtype, tensor_pb2.ElementType] = {
    np.dtype("<f2"): tensor_pb2.ELEMENT_TYPE_FLOAT16,
    bfloat16: tensor_pb2.ELEMENT_TYPE_BFLOAT16,
    np.dtype("<f4"): tensor_pb2.ELEMENT_TYPE_FLOAT32,
    np.dtype("<f8"): tensor_pb2.ELEMENT_TYPE_FLOAT64,
    np.dtype("<c8"): tensor_pb2.ELEMENT_TYPE_COMPLEX64,
    np.dtype("<c16"): tensor_pb2.ELEMENT_TYPE_COMPLEX128,
    np.dtype("<i1"): tensor_pb2.ELEMENT_TYPE_INT8,
    np.dtype("<i2"): tensor_pb2.ELEMENT_TYPE_INT16,
    np.dtype("<i4"): tensor_pb2.ELEMENT_TYPE_INT32,
    np.dtype("<i8"): tensor_pb2.ELEMENT_TYPE_INT64,
    np.dtype("<u1"): tensor_pb2.ELEMENT_TYPE_UINT8,
    np.dtype("?"): tensor_pb2.ELEMENT_TYPE_BOOL,
}
_DTYPES: dict[int, np.dtype] = {e: dtype for dtype, e in _ELEMENT_TYPES.items()}

DTYPES: tuple[np.dtype, ...] = tuple(_ELEMENT_TYPES)
"""Every dtype that a tensor can have."""

COMPUTE_TYPES: dict[str, compute_pb2.ComputeType] = enum_values(
    compute_pb2.ComputeType, "COMPUTE_TYPE_"
)
"""Compute types by the names that `compute_type=` takes."""


def wire_dtype(dtype: npt.DTypeLike) -> np.dtype:
    """Returns `dtype` in the byte order of the wire.

    Raises:
        InvalidArgument: Tensors cannot have this dtype.
        TypeError: It is none.
    """
    parsed = _parsed("dtype", dtype, DTYPES)
    wanted = parsed.newbyteorder("<")
    if wanted not in _ELEMENT_TYPES:
        raise InvalidArgument(
            f"a tensor cannot have dtype {parsed}, wanted one of "
            + ", ".join(map(str, DTYPES)),
            reason="ELEMENT_TYPE_UNKNOWN",
        )
    return wanted


def element_type_of(dtype: npt.DTypeLike) -> tensor_pb2.ElementType:
    """Returns the `ElementType` of a dtype.

    Raises:
        InvalidArgument: Tensors cannot have this dtype.
        TypeError: It is none.
    """
    return _ELEMENT_TYPES[wire_dtype(dtype)]


def dtype_of(element_type: int) -> np.dtype:
    """Returns the dtype of an `ElementType`.

    Raises:
        InvalidArgument: The server speaks of a type that this client lacks.
    """
    try:
        return _DTYPES[element_type]
    except KeyError:
        raise InvalidArgument(
            f"element type {element_type} is unknown to this client",
            reason="ELEMENT_TYPE_UNKNOWN",
        ) from None


def is_floating(dtype: np.dtype) -> bool:
    """Whether a dtype is of real floating-point numbers; NumPy does not say of which
    kind bfloat16 is."""
    return dtype == bfloat16 or dtype.kind == "f"


def can_cast(source: np.dtype, target: np.dtype, rule: Any) -> bool:
    """`numpy.can_cast`, for which bfloat16 is a floating-point type as well.

    Args:
        source, target: Dtypes.
        rule: "no", "equiv", "safe", "same_kind" or "unsafe".
    """
    if source == bfloat16 and target == np.float16 and rule == "same_kind":
        return True
    return np.can_cast(source, target, rule)


def compute_type_of(
    compute_type: str | npt.DTypeLike | None,
) -> compute_pb2.ComputeType:
    """Returns the `ComputeType` of a name, e.g. "tf32", or of a dtype.

    Args:
        compute_type: None leaves the choice to the server.

    Raises:
        InvalidArgument: There is no such compute type.
        TypeError: It is neither a string nor a dtype.
    """
    if compute_type is None:
        return compute_pb2.COMPUTE_TYPE_UNSPECIFIED
    if isinstance(compute_type, str):
        name = compute_type
    else:
        name = str(_parsed("compute_type", compute_type, COMPUTE_TYPES))
    return look_up("compute type", name, COMPUTE_TYPES, "COMPUTE_TYPE_UNKNOWN")


def _parsed(argument: str, dtype: npt.DTypeLike, wanted: Iterable[object]) -> np.dtype:
    """`numpy.dtype(dtype)`, but its errors name `argument` and what is `wanted`."""
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):  # The last for "f4,(".
        message = f"{argument} is {dtype!r}, wanted one of " + ", ".join(
            map(str, wanted)
        )
    if isinstance(dtype, str):
        raise InvalidArgument(message, reason="ELEMENT_TYPE_UNKNOWN")
    raise TypeError(message)
