"""Chunks of a transfer as they look on the wire.

These are the messages `UploadTensorRequest` and `DownloadTensorResponse`, written
and read by hand, so that data is copied once between an array and the transport.
"""

from __future__ import annotations

import dataclasses
import struct

import google_crc32c
import numpy as np

from tensord._wire import read_varint, varint
from tensord.errors import DataLoss

_TENSOR = 1 << 3 | 2  # string
_OFFSET_BYTES = 2 << 3 | 0  # varint
_CRC32C = 3 << 3 | 5  # fixed32
_DATA = 15 << 3 | 2  # bytes
_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A piece of a tensor's bytes.

    Attributes:
        offset_bytes: Place of `data`, in bytes from the tensor's first element.
        data: uint8, shape (bytes,); a view of the message.
    """

    offset_bytes: int
    data: np.ndarray


def encode(tensor: str, offset_bytes: int, data: np.ndarray) -> bytes:
    """Returns one `UploadTensorRequest`.

    Args:
        tensor: The tensor's full name in the first message of a stream, else "".
        offset_bytes: Place of `data`, in bytes from the tensor's first element.
        data: uint8, shape (bytes,), contiguous; may be empty.
    """
    head = bytearray()
    if tensor:
        name = tensor.encode()
        head.append(_TENSOR)
        head += varint(len(name))
        head += name
    head.append(_OFFSET_BYTES)
    head += varint(offset_bytes)
    if data.size:
        head.append(_CRC32C)
        head += struct.pack("<I", google_crc32c.value(data))
        head.append(_DATA)
        head += varint(data.size)
    return b"".join((head, data.data))


def decode(message: bytes) -> Chunk:
    """Reads one `DownloadTensorResponse` and checks its data.

    Raises:
        DataLoss: The message is malformed, or its checksum differs.
    """
    offset_bytes, crc32c, begin, end = 0, 0, 0, 0
    at = 0
    try:
        while at < len(message):
            tag, at = read_varint(message, at)
            if tag == _OFFSET_BYTES:
                offset_bytes, at = read_varint(message, at)
            elif tag == _CRC32C:
                (crc32c,) = struct.unpack_from("<I", message, at)
                at += 4
            elif tag == _DATA:
                size, begin = read_varint(message, at)
                at = end = begin + size
            else:
                at = _skip(message, at, tag & 7)
    except (IndexError, struct.error):
        at = len(message) + 1
    if at != len(message):
        raise DataLoss("a downloaded chunk is cut short", reason="CHUNK_MALFORMED")
    data = np.frombuffer(message, np.uint8, count=end - begin, offset=begin)
    if google_crc32c.value(data) != crc32c:
        raise DataLoss(
            f"the chunk at byte {offset_bytes} has CRC-32C "
            f"{google_crc32c.value(data):08x}, wanted {crc32c:08x}",
            reason="CHUNK_CORRUPT",
        )
    return Chunk(offset_bytes, data)


def _skip(message: bytes, at: int, wire_type: int) -> int:
    if wire_type == _VARINT:
        return read_varint(message, at)[1]
    if wire_type == _FIXED64:
        return at + 8
    if wire_type == _FIXED32:
        return at + 4
    if wire_type == _LENGTH_DELIMITED:
        size, at = read_varint(message, at)
        return at + size
    raise IndexError(f"wire type {wire_type}")
