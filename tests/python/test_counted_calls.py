"""What calls hold is counted, whoever makes them, whatever they carry and whoever waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callers import Caller
from http2 import NO_WINDOW, Raw, frame, headers, request
from observed_server import ObservedServer
from tensord.v1 import session_pb2
from waiting import eventually

pytestmark = pytest.mark.timing

CALL_BYTES = 8192
ENTRY_BYTES = 64
OPERATION_BYTES = 512
STREAM = "/tensord.v1.ComputeService/ExecuteStream"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ObservedServer]:
    with ObservedServer(tmp_path, "--transfer-idle-seconds=600") as server:
        yield server


def counted_bytes(server: ObservedServer) -> float:
    return server.metrics().sum("tensord_host_memory_bytes", use="requests")


def held_bytes(server: ObservedServer) -> float:
    return server.metrics().sum("process_resident_memory_bytes")


def holds_what_is_counted(
    server: ObservedServer,
    path: str,
    body: bytes | None,
    least: int,
    entries: int = 0,
    calls: int = 800,
) -> None:
    """Calls that go on, as their clients send no request or take no answer."""
    client = Raw(server.address, NO_WINDOW)
    more = [("x", "")] * entries
    begin = lambda call: headers(path, 2 * call + 1, more) + (  # noqa: E731
        b"" if body is None else frame(0, 0 if path == STREAM else 1, 2 * call + 1, body)
    )
    client.send(begin(0))
    assert eventually(lambda: counted_bytes(server) >= least)
    counted, held = counted_bytes(server), held_bytes(server)
    client.send(b"".join(begin(call) for call in range(1, calls)))
    assert eventually(lambda: counted_bytes(server) - counted >= least * (calls - 1))
    assert held_bytes(server) - held <= 4 * (counted_bytes(server) - counted)
    client.close()
    assert eventually(lambda: counted_bytes(server) == 0)


@pytest.mark.parametrize("entries", [0, 215])
@pytest.mark.parametrize(
    "path",
    [
        "/tensord.v1.SessionService/OpenSession",
        "/tensord.v1.TensorService/UploadTensor",
        STREAM,
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ],
)
def test_calls_without_request(server: ObservedServer, path: str, entries: int) -> None:
    least = CALL_BYTES + ENTRY_BYTES * entries
    holds_what_is_counted(server, path, None, least, entries)


@pytest.mark.parametrize("entries", [0, 215])
@pytest.mark.parametrize(
    "path",
    [
        "/tensord.v1.AdminService/GetServerInfo",
        "/tensord.v1.SessionService/DescribeSession",
        "/tensord.v1.SessionService/KeepSessionAlive",
        "/grpc.health.v1.Health/Check",
    ],
)
def test_answers_that_nobody_takes(server: ObservedServer, path: str, entries: int) -> None:
    asked = b""
    if "Session" in path:
        session = Caller(server.address).open()
        asked = session_pb2.DescribeSessionRequest(session=session).SerializeToString()
    body = request(asked, 1)[9:]
    least = CALL_BYTES + ENTRY_BYTES * entries
    holds_what_is_counted(server, path, body, least, entries)


def test_operations_whose_errors_nobody_takes(server: ObservedServer) -> None:
    count = 64  # as many as a stream has at a time
    none = count * bytes(5)  # messages without any
    least = CALL_BYTES + count * OPERATION_BYTES
    holds_what_is_counted(server, STREAM, none, least, calls=150)
