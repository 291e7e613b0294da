"""Arrays of this computer, and how they look on the wire."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord.errors import InvalidArgument
from tensord.v1 import tensor_pb2

DLPACK_CPU = 1
"""DLPack's number of this computer's memory."""


def array_of(value: Any) -> np.ndarray:
    """Returns a value as an array.

    Args:
        value: Anything that `numpy.asarray` takes, or that DLPack hands over, from
            another device if its library copies it from there.

    Raises:
        BufferError: DLPack cannot hand it over to NumPy.
    """
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    if hasattr(value, "__array__"):
        try:
            return np.asarray(value)
        except (TypeError, RuntimeError):  # Those of CuPy, and of PyTorch on a GPU.
            pass
    if value.__dlpack_device__()[0] == DLPACK_CPU:
        return np.from_dlpack(value)
    return np.from_dlpack(value, device="cpu")


def array_of_operand(called: str, value: Any) -> np.ndarray:
    """As `array_of`, for what is to be an operand.

    Args:
        called: The operand, for the message.
        value: What it is.

    Raises:
        InvalidArgument: A tensor cannot have its dtype (`ELEMENT_TYPE_UNKNOWN`).
    """
    array = array_of(value)
    try:
        dtypes.wire_dtype(array.dtype)
    except InvalidArgument as error:
        raise InvalidArgument(
            f"{called} is of type {type(value).__name__}: {error}", reason=error.reason
        ) from None
    return array


def flat_bytes(array: np.ndarray) -> np.ndarray:
    """Returns the elements as they travel: in C order, little-endian.

    Args:
        array: Any shape and strides; copied unless that is how it lies in memory.

    Returns:
        uint8, shape (bytes,).
    """
    packed = np.asarray(array, dtype=dtypes.wire_dtype(array.dtype), order="C")
    return packed.reshape(-1).view(np.uint8)


def packed_layout(shape: tuple[int, ...]) -> tensor_pb2.Layout:
    """Returns the layout of an array in C order."""
    return tensor_pb2.Layout(extents=shape, order=tensor_pb2.ORDER_LAST_MODE_FASTEST)


def assigned_array(value: Any, dtype: np.dtype) -> np.ndarray:
    """Returns what NumPy makes of a value that is assigned to an array of a dtype."""
    source = array_of(value) if hasattr(value, "__dlpack__") else value
    if isinstance(source, np.ndarray) and source.dtype == dtype:
        return source
    array = np.empty(np.shape(source), dtype)
    array[...] = source
    return array


def array_of_bytes(message: tensor_pb2.Tensor, data: bytes) -> np.ndarray:
    """Returns the array whose memory came in a response.

    Args:
        message: What it is like; its strides are explicit.
        data: From the first to the last element.
    """
    dtype = dtypes.dtype_of(message.element_type)
    strides = [stride * dtype.itemsize for stride in message.layout.strides]
    return np.ndarray(
        tuple(message.layout.extents), dtype, bytearray(data), strides=strides
    )
