"""Upload and download streams keep the contract, seen through the raw stubs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import google_crc32c
import grpc
import numpy as np
import pytest

import tensord
from tensord.v1 import error_pb2, tensor_pb2
from waiting import eventually

CHUNK_BYTES = 1 << 16
ARRAY = np.arange(4 * CHUNK_BYTES // 8, dtype=np.float64)
DATA = ARRAY.tobytes()


def chunk(
    offset: int, data: bytes | None = None, tensor: str = "", crc: int | None = None
) -> tensor_pb2.UploadTensorRequest:
    """The chunk of DATA at an offset, or as told."""
    data = DATA[offset : offset + CHUNK_BYTES] if data is None else data
    return tensor_pb2.UploadTensorRequest(
        tensor=tensor,
        offset_bytes=offset,
        crc32c=google_crc32c.value(data) if crc is None else crc,
        data=data,
    )


@pytest.fixture
def tensor(session: tensord.Session) -> tensord.RemoteTensor:
    return session.create(ARRAY.shape, ARRAY.dtype)


def upload(
    stubs, tensor: tensord.RemoteTensor, places: Iterable[int]
) -> tensor_pb2.Tensor:
    """Sends the chunks of these numbers."""
    messages = [chunk(place * CHUNK_BYTES) for place in places]
    messages[0].tensor = tensor.full_name
    return stubs.tensors.UploadTensor(iter(messages), timeout=20).tensor


def describe(stubs, tensor: tensord.RemoteTensor) -> tensor_pb2.Tensor:
    request = tensor_pb2.DescribeTensorRequest(tensor=tensor.full_name)
    return stubs.tensors.DescribeTensor(request, timeout=20).tensor


def reason(error: grpc.RpcError) -> str:
    metadata = dict(error.trailing_metadata())
    detail = error_pb2.ErrorDetail.FromString(metadata["tensord-error-bin"])
    assert detail.domain == "tensord"
    return detail.reason


def test_a_tensor_is_ready_with_its_last_byte(stubs, tensor):
    assert describe(stubs, tensor).state == tensor_pb2.TENSOR_STATE_EMPTY
    partial = upload(stubs, tensor, [0, 1])
    assert partial.state == tensor_pb2.TENSOR_STATE_PARTIAL
    assert partial.committed_bytes == 2 * CHUNK_BYTES
    ready = upload(stubs, tensor, [2, 3])
    assert ready.state == tensor_pb2.TENSOR_STATE_READY
    assert ready.committed_bytes == ready.span_bytes == len(DATA)
    np.testing.assert_array_equal(tensor.numpy(), ARRAY)


@pytest.mark.parametrize(
    "places",
    [[0, 0, 1, 2, 3], [0, 1, 1, 2, 3], [0, 2, 1, 3], [1, 0, 2, 3], [0, 2, 3]],
    ids=["first twice", "twice", "exchanged", "first exchanged", "missing"],
)
def test_chunks_out_of_order_are_refused(stubs, tensor, places):
    with pytest.raises(grpc.RpcError) as failure:
        upload(stubs, tensor, places)
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert reason(failure.value) == "CHUNK_OUT_OF_ORDER"
    assert describe(stubs, tensor).state != tensor_pb2.TENSOR_STATE_READY
    upload(stubs, tensor, range(4))
    np.testing.assert_array_equal(tensor.numpy(), ARRAY)


def test_a_corrupt_chunk_is_data_loss_and_can_be_sent_again(stubs, tensor):
    spoilt = bytearray(DATA[CHUNK_BYTES : 2 * CHUNK_BYTES])
    spoilt[1234] ^= 0x10
    crc = google_crc32c.value(DATA[CHUNK_BYTES : 2 * CHUNK_BYTES])
    messages = [
        chunk(0, tensor=tensor.full_name),
        chunk(CHUNK_BYTES, bytes(spoilt), crc=crc),
        chunk(2 * CHUNK_BYTES),
    ]
    with pytest.raises(grpc.RpcError) as failure:
        stubs.tensors.UploadTensor(iter(messages), timeout=20)
    assert failure.value.code() == grpc.StatusCode.DATA_LOSS
    assert reason(failure.value) == "CHUNK_CORRUPT"
    described = describe(stubs, tensor)
    assert described.state == tensor_pb2.TENSOR_STATE_PARTIAL
    assert described.committed_bytes == CHUNK_BYTES
    assert upload(stubs, tensor, [1, 2, 3]).state == tensor_pb2.TENSOR_STATE_READY
    np.testing.assert_array_equal(tensor.numpy(), ARRAY)


def test_a_truncated_chunk_is_refused(stubs, tensor):
    whole = google_crc32c.value(DATA[:CHUNK_BYTES])
    message = chunk(0, DATA[: CHUNK_BYTES - 8], tensor.full_name, whole)
    with pytest.raises(grpc.RpcError) as failure:
        stubs.tensors.UploadTensor(iter([message]), timeout=20)
    assert failure.value.code() == grpc.StatusCode.DATA_LOSS


def test_chunks_before_the_tensor_are_refused(stubs, tensor):
    message = chunk(-8, bytes(16), tensor.full_name)
    with pytest.raises(grpc.RpcError) as failure:
        stubs.tensors.UploadTensor(iter([message]), timeout=20)
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert reason(failure.value) == "CHUNK_MALFORMED"


@pytest.mark.parametrize("offset", [len(DATA), 2**63 - 1])
def test_chunks_beyond_the_tensor_are_refused(stubs, tensor, offset: int):
    message = chunk(offset, bytes(16), tensor.full_name)
    with pytest.raises(grpc.RpcError) as failure:
        stubs.tensors.UploadTensor(iter([message]), timeout=20)
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert reason(failure.value) in ("CHUNK_OUT_OF_ORDER", "CHUNK_OUT_OF_RANGE")


def test_a_chunk_that_overhangs_the_end_is_refused(stubs, tensor):
    upload(stubs, tensor, [0, 1, 2])
    message = chunk(3 * CHUNK_BYTES, bytes(CHUNK_BYTES + 8), tensor.full_name)
    with pytest.raises(grpc.RpcError) as failure:
        stubs.tensors.UploadTensor(iter([message]), timeout=20)
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert reason(failure.value) == "CHUNK_OUT_OF_RANGE"


def test_bytes_that_are_no_message_are_refused(stubs, tensor):
    raw = stubs.channel.stream_unary("/tensord.v1.TensorService/UploadTensor")
    with pytest.raises(grpc.RpcError) as failure:
        raw(iter([b"\x7a\xff\xff\xff\xff\x0f"]), timeout=20)
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert reason(failure.value) == "CHUNK_MALFORMED"
    upload(stubs, tensor, range(4))


def test_a_stream_without_a_name_is_refused(stubs):
    with pytest.raises(grpc.RpcError) as failure:
        stubs.tensors.UploadTensor(iter([chunk(0)]), timeout=20)
    assert failure.value.code() in (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
    )


def test_a_broken_stream_can_be_resumed(stubs, session, tensor):
    broken = threading.Event()

    def messages() -> Iterator[tensor_pb2.UploadTensorRequest]:
        yield chunk(0, tensor=tensor.full_name)
        yield chunk(CHUNK_BYTES)
        broken.wait(20)

    call = stubs.tensors.UploadTensor.future(messages(), timeout=20)
    assert eventually(lambda: describe(stubs, tensor).committed_bytes == 2 * CHUNK_BYTES)
    with pytest.raises(tensord.FailedPrecondition) as failure:
        session.permute(tensor, "i", "i")
    assert failure.value.reason in ("TENSOR_NOT_READY", "TENSOR_BUSY")
    with pytest.raises(tensord.FailedPrecondition) as failure:
        tensor.write(ARRAY)
    assert failure.value.reason == "TENSOR_BUSY"
    call.cancel()
    broken.set()
    for _ in range(200):
        try:
            ready = upload(stubs, tensor, [2, 3])
            break
        except grpc.RpcError as error:
            assert reason(error) == "TENSOR_BUSY"
    assert ready.state == tensor_pb2.TENSOR_STATE_READY
    np.testing.assert_array_equal(tensor.numpy(), ARRAY)


def test_ranges_are_sent_as_asked(stubs, session):
    tensor = session.upload(ARRAY)
    request = tensor_pb2.DownloadTensorRequest(
        tensor=tensor.full_name, offset_bytes=24, length_bytes=200_000, chunk_bytes=4096
    )
    data = b""
    for message in stubs.tensors.DownloadTensor(request, timeout=20):
        assert message.offset_bytes == 24 + len(data)
        assert 0 < len(message.data) <= 4096
        assert message.crc32c == google_crc32c.value(message.data)
        data += message.data
    assert data == DATA[24 : 24 + 200_000]


@pytest.mark.parametrize(
    ("offset", "length"), [(-1, 0), (len(DATA) + 1, 0), (0, len(DATA) + 1), (8, -1)]
)
def test_ranges_outside_the_tensor_are_refused(stubs, session, offset, length):
    tensor = session.upload(ARRAY)
    request = tensor_pb2.DownloadTensorRequest(
        tensor=tensor.full_name, offset_bytes=offset, length_bytes=length
    )
    with pytest.raises(grpc.RpcError) as failure:
        list(stubs.tensors.DownloadTensor(request, timeout=20))
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert reason(failure.value) == "RANGE_OUTSIDE_TENSOR"


def test_a_download_of_a_tensor_that_changes_is_aborted(stubs, session):
    tensor = session.upload(np.zeros(8 << 20))
    request = tensor_pb2.DownloadTensorRequest(tensor=tensor.full_name)
    stream = stubs.tensors.DownloadTensor(request, timeout=20)
    next(stream)
    tensor.write(np.ones(8 << 20))
    with pytest.raises(grpc.RpcError) as failure:
        list(stream)
    assert failure.value.code() == grpc.StatusCode.ABORTED
    assert reason(failure.value) == "TENSOR_CHANGED"
