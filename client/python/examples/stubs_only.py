"""Contracts two matrices with nothing but the generated stubs.

What a client in any language does: open a session, upload in chunks with checksums,
contract, download, close. The stubs are those of the installed package, or generate
them: python -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. \
    proto/tensord/v1/*.proto

Usage: stubs_only.py ADDRESS
"""

import sys
from collections.abc import Iterator

import google_crc32c
import grpc
import numpy as np

from tensord.v1 import compute_pb2, compute_pb2_grpc, session_pb2, session_pb2_grpc
from tensord.v1 import tensor_pb2, tensor_pb2_grpc

CHUNK_BYTES = 1 << 20

channel = grpc.insecure_channel(sys.argv[1])
sessions = session_pb2_grpc.SessionServiceStub(channel)
tensors = tensor_pb2_grpc.TensorServiceStub(channel)
compute = compute_pb2_grpc.ComputeServiceStub(channel)


def upload(session: str, array: np.ndarray) -> str:
    """Creates a float64 tensor in C order, fills it and returns its name."""
    created = tensors.CreateTensor(
        tensor_pb2.CreateTensorRequest(
            session=session,
            element_type=tensor_pb2.ELEMENT_TYPE_FLOAT64,
            layout=tensor_pb2.Layout(
                extents=array.shape, order=tensor_pb2.ORDER_LAST_MODE_FASTEST
            ),
        )
    )
    data = array.tobytes()

    def messages() -> Iterator[tensor_pb2.UploadTensorRequest]:
        for offset in range(0, len(data), CHUNK_BYTES):
            chunk = data[offset : offset + CHUNK_BYTES]
            yield tensor_pb2.UploadTensorRequest(
                tensor=created.tensor.name if offset == 0 else "",
                offset_bytes=offset,
                crc32c=google_crc32c.value(chunk),
                data=chunk,
            )

    uploaded = tensors.UploadTensor(messages()).tensor
    assert uploaded.state == tensor_pb2.TENSOR_STATE_READY
    return uploaded.name


def download(tensor: tensor_pb2.Tensor) -> np.ndarray:
    """Returns the contents of a float64 tensor in C order."""
    data = bytearray()
    request = tensor_pb2.DownloadTensorRequest(tensor=tensor.name)
    for message in tensors.DownloadTensor(request):
        assert message.offset_bytes == len(data)
        assert message.crc32c == google_crc32c.value(message.data)
        data += message.data
    return np.frombuffer(data, "<f8").reshape(tensor.layout.extents)


a, b = np.random.rand(600, 400), np.random.rand(400, 500)
session = sessions.OpenSession(session_pb2.OpenSessionRequest(job="stubs")).session
i, j, k = 0, 1, 2
result = compute.Contract(
    compute_pb2.ContractRequest(
        session=session.name,
        a=compute_pb2.Operand(tensor=upload(session.name, a), modes=[i, k]),
        b=compute_pb2.Operand(tensor=upload(session.name, b), modes=[k, j]),
        d=compute_pb2.Output(modes=[i, j], order=tensor_pb2.ORDER_LAST_MODE_FASTEST),
    )
).result
c = download(result.tensor)
sessions.CloseSession(session_pb2.CloseSessionRequest(session=session.name))
print(f"computed by {result.report.kernel}, off by {abs(c - a @ b).max():.1e}")
sys.exit(not np.allclose(c, a @ b))
