"""What has come of messages that are not whole is counted, and does not take what others need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callers import Caller
from http2 import Polite
from observed_server import ObservedServer
from tensord.v1 import compute_pb2
from waiting import eventually

pytestmark = pytest.mark.timing

OPEN = "/tensord.v1.SessionService/OpenSession"
UPLOAD = "/tensord.v1.TensorService/UploadTensor"
STREAM = "/tensord.v1.ComputeService/ExecuteStream"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
FRAME_BYTES = 16384


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ObservedServer]:
    with ObservedServer(tmp_path, "--transfer-idle-seconds=600") as server:
        yield server


def counted_bytes(server: ObservedServer, **use: str) -> float:
    return server.metrics().sum("tensord_host_memory_bytes", **use)


def arriving_bytes(server: ObservedServer) -> float:
    return counted_bytes(server, use="arriving")


def held_bytes(server: ObservedServer) -> float:
    return server.metrics().sum("process_resident_memory_bytes")


def message(content: bytes) -> bytes:
    return b"\0" + len(content).to_bytes(4, "big") + content


def beginning(message_bytes: int, part_bytes: int) -> bytes:
    """Of a message of so many bytes."""
    return b"\0" + message_bytes.to_bytes(4, "big") + bytes(part_bytes)


def send(client: Polite, stream: int, data: bytes) -> None:
    while data:
        sent = client.send_data(stream, data)
        data = data[sent:]
        if sent == 0:
            client.receive()


def operation(session: str) -> bytes:
    """A whole message of a stream, which is answered with an error."""
    plan = compute_pb2.ExecutePlanRequest(plan=f"{session}/plans/none")
    request = compute_pb2.ExecuteStreamRequest(execute_plan=plan)
    return message(request.SerializeToString())


@pytest.mark.parametrize("path", [OPEN, UPLOAD, STREAM, CHECK])
def test_parts_of_messages_are_counted(server: ObservedServer, path: str) -> None:
    calls, part_bytes = 800, 3 * FRAME_BYTES
    client = Polite(server.address)
    client.begin(path, 1)
    send(client, 1, beginning(1 << 20, part_bytes))
    assert eventually(lambda: counted_bytes(server) > 0)
    counted, held = counted_bytes(server), held_bytes(server)
    for call in range(1, calls):
        client.begin(path, 2 * call + 1)
        send(client, 2 * call + 1, beginning(1 << 20, part_bytes))
    assert eventually(lambda: arriving_bytes(server) >= 0.9 * calls * part_bytes)
    assert held_bytes(server) - held <= 4 * (counted_bytes(server) - counted)
    client.close()
    assert eventually(lambda: counted_bytes(server) == 0)


@pytest.mark.parametrize("path", [OPEN, UPLOAD, STREAM, CHECK, WATCH])
def test_a_message_without_end_is_ended_alone(server: ObservedServer, path: str) -> None:
    caller = Caller(server.address)
    session = caller.open()
    others = Polite(server.address)
    others.begin(STREAM, 1)
    send(others, 1, operation(session))
    client = Polite(server.address)
    client.begin(path, 1)
    first = {STREAM: operation(session), WATCH: message(b"")}.get(path, b"")
    send(client, 1, first + beginning(0xFFFFFFFF, 1))
    sent = frames = 0
    while 1 not in client.ended and sent < 1 << 30:
        sent_now = client.send_data(1, bytes(FRAME_BYTES))
        sent += sent_now
        frames += 1
        if sent_now == 0 or frames % 64 == 0:
            client.receive(waits=sent_now == 0)
        if frames % 1024 == 0:
            caller.describe(session)
            others.receive(waits=False)
    assert 1 in client.ended
    assert not client.is_broken_off()
    assert "calls_ended" in server.log()
    assert "connections_ended" not in server.log()
    if path in (OPEN, CHECK, WATCH):
        send(others, 1, operation(session))
        others.receive()
        assert not others.ended
    caller.describe(session)
    # Others' calls are open, so that this is measured.
    assert eventually(lambda: arriving_bytes(server) < sent / 2)
