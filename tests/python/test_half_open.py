"""Calls whose request never comes are known, counted and few."""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from callers import Caller
from files import rewrite
from http2 import ends_of_streams, headers, opening, request
from observed_server import ObservedServer
from secure_server import new_token
from waiting import eventually

pytestmark = pytest.mark.timing

OPEN = "/tensord.v1.SessionService/OpenSession"
CHECK = "/grpc.health.v1.Health/Check"
SERVING = b"\x08\x01"


class HalfOpen:
    """A connection with calls that have headers and nothing else."""

    def __init__(self, address: str, path: str, count: int, **metadata: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(address.removeprefix("unix:"))
        calls = (headers(path, 2 * i + 1, **metadata) for i in range(count))
        self._socket.sendall(opening() + b"".join(calls))
        self._socket.setblocking(False)
        self._received = b""

    def ended(self) -> int:
        """How many of them the server has ended."""
        with contextlib.suppress(BlockingIOError):
            while more := self._socket.recv(1 << 16):
                self._received += more
        return len(ends_of_streams(self._received))

    def send(self, more: bytes) -> None:
        self._socket.sendall(more)

    def close(self) -> None:
        self._socket.close()


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


def requests_bytes(server: ObservedServer) -> float:
    return server.metrics().sum("tensord_host_memory_bytes", use="requests")


def test_strangers_are_refused_before_their_requests(server: ObservedServer) -> None:
    strangers = HalfOpen(server.address, OPEN, 500)
    assert eventually(lambda: strangers.ended() == 500)
    assert requests_bytes(server) == 0
    strangers.close()


def test_requests_that_do_not_come_are_counted(server: ObservedServer, token: str) -> None:
    users = HalfOpen(server.address, OPEN, 500, authorization=f"Bearer {token}")
    assert eventually(lambda: requests_bytes(server) >= 500 * 8192)
    caller = Caller(server.address, token)
    assert caller.describe(caller.open()).session.name  # others go first
    assert users.ended() == 0
    users.close()
    assert eventually(lambda: requests_bytes(server) == 0)


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
