"""A server that stores tensors and whose transfers go wrong as told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures

import google_crc32c
import grpc

from tensord.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    error_pb2,
    session_pb2,
    session_pb2_grpc,
    tensor_pb2,
    tensor_pb2_grpc,
)

_CHUNK_BYTES = 1 << 16
_ELEMENT_BYTES = 8


class FaultyServer(
    admin_pb2_grpc.AdminServiceServicer,
    session_pb2_grpc.SessionServiceServicer,
    tensor_pb2_grpc.TensorServiceServicer,
):
    """Holds float64 tensors; each entry of a fault list spoils one stream.

    Attributes:
        address: Where it listens.
        upload_faults: (chunks to take, status) for the next upload streams.
        download_faults: (chunks to send, what then) for the next download streams;
            what is a status or "flip", "skip", "repeat" or "end".
        upload_offsets: Where upload streams began.
        download_offsets: Where download streams began.
        deleted: Names of deleted tensors.
        deletion_count: How many calls deleted them.
        closed: Whether the session was closed.
        beat_count: How often the lease was renewed.
        seconds_left: Until the deadline of the last call that created a tensor.
    """

    def __init__(self) -> None:
        self.upload_faults: list[tuple[int, grpc.StatusCode]] = []
        self.download_faults: list[tuple[int, grpc.StatusCode | str]] = []
        self.upload_offsets: list[int] = []
        self.download_offsets: list[int] = []
        self.deleted: list[str] = []
        self.deletion_count = 0
        self.closed = threading.Event()
        self.beat_count = 0
        self.seconds_left = 0.0
        self.address = ""
        self._tensors: dict[str, tensor_pb2.Tensor] = {}
        self._bytes: dict[str, bytearray] = {}
        self._server = grpc.server(futures.ThreadPoolExecutor(8))

    def __enter__(self) -> FaultyServer:
        admin_pb2_grpc.add_AdminServiceServicer_to_server(self, self._server)
        session_pb2_grpc.add_SessionServiceServicer_to_server(self, self._server)
        tensor_pb2_grpc.add_TensorServiceServicer_to_server(self, self._server)
        port = self._server.add_insecure_port("localhost:0")
        self.address = f"localhost:{port}"
        self._server.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._server.stop(None).wait()

    def bytes_of(self, name: str) -> bytes:
        """What the tensor of a full name holds."""
        return bytes(self._bytes[name])

    def GetServerInfo(self, request, context):
        limits = admin_pb2.Limits(max_chunk_bytes=_CHUNK_BYTES, max_inline_bytes=1024)
        return admin_pb2.GetServerInfoResponse(limits=limits)

    def OpenSession(self, request, context):
        response = session_pb2.OpenSessionResponse()
        response.session.name = "sessions/only"
        response.session.lease.CopyFrom(request.lease)
        response.session.lease.seconds = response.session.lease.seconds or 60
        return response

    def KeepSessionAlive(self, request, context):
        self.beat_count += 1
        return session_pb2.KeepSessionAliveResponse()

    def CloseSession(self, request, context):
        self.closed.set()
        return session_pb2.CloseSessionResponse()

    def CreateTensor(self, request, context):
        self.seconds_left = context.time_remaining()
        name = f"{request.session}/tensors/{request.tensor_id or len(self._tensors)}"
        tensor = tensor_pb2.Tensor(
            name=name,
            element_type=request.element_type,
            layout=request.layout,
            state=tensor_pb2.TENSOR_STATE_EMPTY,
        )
        stride = 1
        strides = []
        for extent in reversed(request.layout.extents):
            strides.insert(0, stride)
            stride *= extent
        tensor.layout.strides.extend(strides)
        tensor.span_bytes = stride * _ELEMENT_BYTES
        self._tensors[name] = tensor
        self._bytes[name] = bytearray(tensor.span_bytes)
        return tensor_pb2.CreateTensorResponse(tensor=tensor)

    def DescribeTensor(self, request, context):
        return tensor_pb2.DescribeTensorResponse(tensor=self._tensors[request.tensor])

    def DeleteTensor(self, request, context):
        self.deleted.append(request.tensor)
        self.deletion_count += 1
        return tensor_pb2.DeleteTensorResponse()

    def DeleteTensors(self, request, context):
        self.deleted.extend(request.tensors)
        self.deletion_count += 1
        return tensor_pb2.DeleteTensorsResponse(deleted_count=len(request.tensors))

    def UploadTensor(self, request_iterator, context):
        count, status = self.upload_faults.pop(0) if self.upload_faults else (-1, None)
        tensor = None
        for message in request_iterator:
            if tensor is None:
                tensor = self._tensors[message.tensor]
                self.upload_offsets.append(message.offset_bytes)
                tensor.committed_bytes = message.offset_bytes
                tensor.state = tensor_pb2.TENSOR_STATE_PARTIAL
            if count == 0:
                context.abort(status, "told to fail")
            count -= 1
            assert message.offset_bytes == tensor.committed_bytes
            assert message.crc32c == google_crc32c.value(message.data)
            end = message.offset_bytes + len(message.data)
            self._bytes[tensor.name][message.offset_bytes : end] = message.data
            tensor.committed_bytes = end
        if tensor.committed_bytes == tensor.span_bytes:
            tensor.state = tensor_pb2.TENSOR_STATE_READY
        return tensor_pb2.UploadTensorResponse(tensor=tensor)

    def DownloadTensor(self, request, context):
        self.download_offsets.append(request.offset_bytes)
        faults = self.download_faults
        count, fault = faults.pop(0) if faults else (-1, None)
        for message in self._messages(request):
            if count == 0:
                if isinstance(fault, grpc.StatusCode):
                    if fault == grpc.StatusCode.ABORTED:
                        changed = error_pb2.ErrorDetail(reason="TENSOR_CHANGED")
                        detail = "tensord-error-bin", changed.SerializeToString()
                        context.set_trailing_metadata((detail,))
                    context.abort(fault, "told to fail")
                elif fault == "end":
                    return
                elif fault == "flip":
                    message.data = bytes([message.data[0] ^ 1]) + message.data[1:]
                elif fault == "repeat":
                    yield message
            if count != 0 or fault != "skip":
                yield message
            count -= 1

    def _messages(
        self, request: tensor_pb2.DownloadTensorRequest
    ) -> Iterator[tensor_pb2.DownloadTensorResponse]:
        data = self.bytes_of(request.tensor)
        for offset in range(request.offset_bytes, len(data), request.chunk_bytes):
            chunk = data[offset : offset + request.chunk_bytes]
            yield tensor_pb2.DownloadTensorResponse(
                offset_bytes=offset, crc32c=google_crc32c.value(chunk), data=chunk
            )
