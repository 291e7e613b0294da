"""Chunks on the wire are the messages of the contract."""

from __future__ import annotations

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
from tensord import _chunks as chunks
from tensord.v1 import tensor_pb2

OFFSETS = st.integers(0, 2**63 - 1)


@given(st.text(max_size=200), OFFSETS, st.binary(max_size=300))
def test_encoded_chunk_is_an_upload_request(name: str, offset: int, data: bytes):
    message = chunks.encode(name, offset, np.frombuffer(data, np.uint8))
    request = tensor_pb2.UploadTensorRequest.FromString(message)
    assert request.tensor == name
    assert request.offset_bytes == offset
    assert request.data == data
    assert request.crc32c == (google_crc32c.value(data) if data else 0)


@given(OFFSETS, st.binary(max_size=300))
def test_decoded_chunk_is_a_download_response(offset: int, data: bytes):
    message = tensor_pb2.DownloadTensorResponse(
        offset_bytes=offset, crc32c=google_crc32c.value(data), data=data
    )
    chunk = chunks.decode(message.SerializeToString())
    assert chunk.offset_bytes == offset
    assert chunk.data.tobytes() == data


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(message: bytes):
    try:
        chunks.decode(message)
    except tensord.DataLoss as error:
        assert error.reason in ("CHUNK_MALFORMED", "CHUNK_CORRUPT")


def test_every_flipped_bit_of_the_data_is_noticed():
    data = bytes(range(20))
    message = chunks.encode("", 7, np.frombuffer(data, np.uint8))
    for bit in range(8 * (len(message) - len(data)), 8 * len(message)):
        spoilt = bytearray(message)
        spoilt[bit // 8] ^= 1 << bit % 8
        with pytest.raises(tensord.DataLoss) as failure:
            chunks.decode(bytes(spoilt))
        assert failure.value.reason == "CHUNK_CORRUPT"


def test_fields_of_later_versions_are_skipped():
    extra = (
        b"\x98\x06\x01"
        + b"\xa1\x06"
        + bytes(8)
        + b"\xaa\x06\x02ab"
        + b"\xb5\x06"
        + bytes(4)
    )
    message = tensor_pb2.DownloadTensorResponse(
        offset_bytes=3, crc32c=google_crc32c.value(b"xyz"), data=b"xyz"
    ).SerializeToString()
    assert chunks.decode(extra + message).data.tobytes() == b"xyz"
