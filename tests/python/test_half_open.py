"""Calls whose request never comes are known, counted and few; what is taken by nobody goes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from callers import Caller, refused
from files import rewrite
from http2 import Raw, ends_of_streams, frame, headers, request
from observed_server import ObservedServer
from secure_server import new_token
from tensord.v1 import session_pb2
from waiting import eventually

pytestmark = pytest.mark.timing

OPEN = "/tensord.v1.SessionService/OpenSession"
CLOSE = "/tensord.v1.SessionService/CloseSession"
STREAM = "/tensord.v1.ComputeService/ExecuteStream"
CHECK = "/grpc.health.v1.Health/Check"
SERVING = b"\x08\x01"


def beginnings(path: str, count: int, **metadata: str) -> bytes:
    """Calls that have headers and nothing else."""
    return b"".join(headers(path, 2 * i + 1, **metadata) for i in range(count))


class HalfOpen(Raw):
    """One with such calls."""

    def __init__(self, address: str, path: str, count: int, **metadata: str) -> None:
        super().__init__(address)
        self.send(beginnings(path, count, **metadata))
        self._socket.setblocking(False)

    def ended(self) -> int:
        """How many of them the server has ended."""
        with contextlib.suppress(BlockingIOError):
            while more := self._socket.recv(1 << 16):
                self._received += more
        return len(ends_of_streams(self._received))


@pytest.fixture
def token(tmp_path: Path) -> str:
    return new_token(tmp_path / "tokens", "chemistry")


@contextlib.contextmanager
def served(folder: Path, idle_seconds: int) -> Iterator[ObservedServer]:
    """A server that knows who has the token, and nobody else."""
    flags = [f"--tokens={folder}/tokens", f"--transfer-idle-seconds={idle_seconds}"]
    with ObservedServer(folder, *flags, "--drain-timeout-seconds=1") as server:
        yield server


@pytest.fixture
def server(tmp_path: Path, token: str) -> Iterator[ObservedServer]:
    """One that waits for long."""
    with served(tmp_path, 600) as server:
        yield server


@pytest.fixture
def server_of_anybody(tmp_path: Path) -> Iterator[ObservedServer]:
    """One that asks nobody who they are."""
    with ObservedServer(tmp_path, "--listen=127.0.0.1:0") as server:
        yield server


def address_of(server: ObservedServer, kind: str) -> str:
    found = re.search(rf"listening address=({kind}\S+) version", server.log())
    assert found is not None
    return found[1]


def requests_bytes(server: ObservedServer) -> float:
    return server.metrics().sum("tensord_host_memory_bytes", use="requests")


def waits_for_its_client(server: ObservedServer) -> bool:
    """Whether there is a call all the time."""
    for _ in range(10):
        if requests_bytes(server) == 0:
            return False
        time.sleep(0.05)
    return True


def test_strangers_are_refused_before_their_requests(server: ObservedServer) -> None:
    strangers = HalfOpen(server.address, OPEN, 500)
    assert eventually(lambda: strangers.ended() == 500)
    assert eventually(lambda: requests_bytes(server) == 0)
    strangers.close()


def test_requests_that_do_not_come_are_counted(server: ObservedServer, token: str) -> None:
    users = HalfOpen(server.address, OPEN, 500, authorization=f"Bearer {token}")
    assert eventually(lambda: requests_bytes(server) >= 500 * 8192)
    caller = Caller(server.address, token)
    assert caller.describe(caller.open()).session.name  # others go first
    assert users.ended() == 0
    users.close()
    assert eventually(lambda: requests_bytes(server) == 0)


def test_they_are_counted_where_nobody_is_asked(server_of_anybody: ObservedServer) -> None:
    users = HalfOpen(server_of_anybody.address, OPEN, 500)
    assert eventually(lambda: requests_bytes(server_of_anybody) >= 500 * 8192)
    caller = Caller(server_of_anybody.address)
    assert caller.describe(caller.open()).session.name
    users.close()
    assert eventually(lambda: requests_bytes(server_of_anybody) == 0)


@pytest.mark.parametrize("kind", ["unix:", "127.0.0.1:"])
def test_who_has_more_calls_than_a_connection_may_have_loses_it(
    server_of_anybody: ObservedServer, kind: str
) -> None:
    address = address_of(server_of_anybody, kind)
    most = HalfOpen(address, OPEN, 1024)
    assert eventually(lambda: requests_bytes(server_of_anybody) >= 1024 * 8192)
    assert not most.is_broken_off()
    most.close()
    assert eventually(lambda: requests_bytes(server_of_anybody) == 0)
    # gRPC alone would take them, as long as nobody acknowledges its settings.
    more = Raw(address)
    more.send_until_broken_off(beginnings(OPEN, 1500))
    assert eventually(more.is_broken_off)
    assert eventually(lambda: requests_bytes(server_of_anybody) == 0)
    caller = Caller(address)
    assert caller.describe(caller.open()).session.name
    more.close()


def test_many_calls_of_several_connections_cost_none(server_of_anybody: ObservedServer) -> None:
    several = [HalfOpen(server_of_anybody.address, OPEN, 800) for _ in range(3)]
    assert eventually(lambda: requests_bytes(server_of_anybody) >= 2400 * 8192)
    assert not any(each.is_broken_off() for each in several)
    for each in several:
        each.close()


@pytest.mark.parametrize("path", [OPEN, "/none/None"])
def test_who_takes_no_answers_loses_the_connection(tmp_path: Path, token: str, path: str) -> None:
    """Strangers, whose refusals fill the socket first."""
    with served(tmp_path, 1) as server:
        deaf = Raw(server.address)
        begun = time.monotonic()
        stream = 1
        while not (deaf.is_broken_off() or waits_for_its_client(server)):
            assert stream < 100_000
            calls = range(stream, stream + 200, 2)
            deaf.send_until_broken_off(
                b"".join(headers(path, i) + request(b"", i) for i in calls)
            )
            stream += 200
        assert eventually(deaf.is_broken_off)
        assert time.monotonic() > begun + 1  # as long as the server waits, at least
        assert eventually(lambda: requests_bytes(server) == 0)
        caller = Caller(server.address, token)
        assert caller.describe(caller.open()).session.name
        deaf.close()


def test_compressed_requests_are_refused(server_of_anybody: ObservedServer) -> None:
    """They would be inflated before anybody knows how much that is. What is refused is not done."""
    caller = Caller(server_of_anybody.address)
    name = caller.open()
    close = caller.channel.unary_unary(CLOSE)
    asked = session_pb2.CloseSessionRequest(session=name).SerializeToString()
    padding = b"\xfa\x01" + b"\x80\x80\x04" + bytes(1 << 16)  # a field that nobody knows
    gzip = grpc.Compression.Gzip
    compressed = lambda: close(asked + padding, timeout=10, compression=gzip)  # noqa: E731
    assert refused(compressed) == ("UNIMPLEMENTED", "MESSAGE_COMPRESSED")
    assert caller.describe(name).session.name == name
    close(asked, timeout=10, compression=gzip)  # what is too short to become shorter goes as it is
    assert refused(lambda: caller.describe(name)) == ("NOT_FOUND", "SESSION_NOT_FOUND")


def test_compressed_messages_of_streams_are_refused(server_of_anybody: ObservedServer) -> None:
    stream = Caller(server_of_anybody.address).channel.stream_stream(STREAM)
    messages = lambda: iter([bytes(1 << 12)])  # noqa: E731
    compressed = lambda: list(stream(messages(), compression=grpc.Compression.Gzip))  # noqa: E731
    assert refused(compressed) == ("UNIMPLEMENTED", "MESSAGE_COMPRESSED")


def test_what_comes_after_its_deadline_is_not_done(server_of_anybody: ObservedServer) -> None:
    """The server sleeps meanwhile, so that requests and the ends of their time come at once."""
    opened = lambda **code: server_of_anybody.metrics().sum(  # noqa: E731
        "tensord_requests_total", rpc="OpenSession", **code
    )
    seconds = 1
    late = HalfOpen(server_of_anybody.address, OPEN, 100, **{"grpc-timeout": f"{seconds}S"})
    have_begun = lambda: requests_bytes(server_of_anybody) >= 100 * 8192  # noqa: E731
    assert eventually(lambda: have_begun() or opened() == 100)
    server_of_anybody.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server_of_anybody.process.pid, os.WSTOPPED)  # all its threads
    late.send(b"".join(request(b"", i) for i in range(1, 201, 2)))
    time.sleep(seconds + 0.1)
    server_of_anybody.process.send_signal(signal.SIGCONT)
    assert eventually(lambda: opened() == 100)
    assert opened(code="OK") == 0
    late.close()


def test_gone_clients_are_not_told_to_have_sent_no_request(
    server_of_anybody: ObservedServer,
) -> None:
    gone = HalfOpen(server_of_anybody.address, OPEN, 100)
    for i in range(1, 201, 2):
        gone.send(frame(3, 0, i, (8).to_bytes(4, "big")))  # cancels it
    cancelled = lambda: server_of_anybody.metrics().sum(  # noqa: E731
        "tensord_requests_total", rpc="OpenSession", code="CANCELLED"
    )
    assert eventually(lambda: cancelled() == 100)
    gone.close()


def test_what_grpc_says_does_not_fill_the_log(server_of_anybody: ObservedServer) -> None:
    calls = HalfOpen(server_of_anybody.address, OPEN, 500, **{"grpc-timeout": "soon"})
    assert eventually(lambda: requests_bytes(server_of_anybody) == 500 << 13)
    assert 1 <= server_of_anybody.log().count("warning grpc ") <= 10
    calls.close()


def test_a_method_that_is_none_is_said_to_be_none(server_of_anybody: ObservedServer) -> None:
    channel = Caller(server_of_anybody.address).channel
    for path in (
        "/tensord.v1.SessionService/CloseSesame",
        "/Open",
        "/tensord.v1.None/OpenSession",
        "/" + 6000 * "x",
    ):
        with pytest.raises(grpc.RpcError) as failure:
            channel.unary_unary(path)(b"", timeout=10)
        assert failure.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert failure.value.details() == f"there is no method {path[:256]}"


def test_requests_that_do_not_come_are_not_waited_for_long(tmp_path: Path, token: str) -> None:
    with served(tmp_path, 1) as server:
        users = HalfOpen(server.address, OPEN, 500, authorization=f"Bearer {token}")
        assert eventually(lambda: users.ended() == 500)
        assert eventually(lambda: requests_bytes(server) == 0)
        aborted = server.metrics().sum("tensord_requests_total", rpc="OpenSession", code="ABORTED")
        assert aborted == 500
        users.close()


def test_who_is_revoked_before_the_request_comes_is_refused(
    server: ObservedServer, tmp_path: Path, token: str
) -> None:
    def refusals() -> float:
        metrics = server.metrics()
        return metrics.sum("tensord_requests_total", rpc="OpenSession", code="UNAUTHENTICATED")

    def is_forgotten() -> bool:
        try:
            Caller(server.address, token).open()
        except grpc.RpcError:
            return True
        return False

    user = HalfOpen(server.address, OPEN, 1, authorization=f"Bearer {token}")
    assert eventually(lambda: requests_bytes(server) > 0)
    rewrite(tmp_path / "tokens", "")
    assert eventually(is_forgotten)
    before = refusals()
    user.send(request(b"", 1))
    assert eventually(lambda: user.ended() == 1)
    assert refusals() == before + 1
    user.close()


def test_nobody_is_kept_from_asking_for_the_health(server: ObservedServer) -> None:
    several = [HalfOpen(server.address, CHECK, 900) for _ in range(2)]
    channel = Caller(server.address).channel
    begun = time.monotonic()
    while sum(each.ended() for each in several) < 1800 - 1024:
        assert channel.unary_unary(CHECK)(b"", timeout=10) == SERVING
        assert time.monotonic() < begun + 20
    for each in several:
        each.close()


def test_who_takes_nothing_does_not_keep_the_server_from_its_end(
    server: ObservedServer,
) -> None:
    deaf = [HalfOpen(server.address, OPEN, 900) for _ in range(3)]
    refusals = lambda: server.metrics().sum("tensord_requests_total", rpc="OpenSession")  # noqa: E731
    assert eventually(lambda: refusals() > 900)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 0  # it is another where work is left
    for each in deaf:
        each.close()
