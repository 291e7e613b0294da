"""What keeps plans beside the server may fail; the server does not."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import tensord
from redis_server import RedisServer
from tensord import TensorSpec
from waiting import eventually, listens

A = np.arange(12.0).reshape(3, 4)

pytestmark = pytest.mark.timing


def learn(session: tensord.Session, count: int) -> None:
    """Makes so many plans, of which each has another number of columns."""
    for extent in range(1, count + 1):
        session.explain.permute(TensorSpec((extent, 3), "float64"), "ij", "ji")


def check_that_it_works(session: tensord.Session) -> None:
    np.testing.assert_array_equal(session.permute(A, "ij", "ji").numpy(), A.T)


@contextmanager
def server(folder: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose files may be cut short."""
    address = f"unix:{folder}/socket"
    with subprocess.Popen(
        [os.environ["TENSORD_SERVER"], f"--listen={address}", "--threads=1", *flags],
        restore_signals=False,  # SIGXFSZ is ignored, as Python does
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert listens(folder / "socket")
            yield process
        finally:
            process.kill()


def test_a_store_without_a_folder_is_missed_at_the_start(tmp_path: Path) -> None:
    store = tmp_path / "missing/store"
    command = [os.environ["TENSORD_SERVER"], f"--listen=unix:{tmp_path}/s", f"--plan-store={store}"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode != 0
    assert f"plan-store is {store}, but there is no folder {store.parent}" in done.stderr


def test_a_full_disk_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "store"
    flags = [f"--plan-store={store}", "--plan-store-interval-seconds=1"]
    with (
        server(tmp_path, *flags) as process,
        tensord.connect(f"unix:{tmp_path}/socket") as session,
    ):

        def saved() -> int:
            return session.plan_cache.stats().store.saved_count

        def error() -> str:
            return session.plan_cache.stats().store.error

        learn(session, 10)
        assert eventually(lambda: saved() >= 10)
        assert error() == ""
        before = store.read_bytes()
        # No file of its own grows beyond that, as on a disk that is full.
        unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        full = (len(before) // 2, unlimited[1])
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, full)
        learn(session, 50)
        assert eventually(lambda: error() != "")
        assert store.read_bytes() == before
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "socket",
            "socket.shm",
            "store",
        ]
        check_that_it_works(session)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert eventually(lambda: saved() >= 50 and error() == "")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, full)
        after = store.read_bytes()
        learn(session, 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert store.read_bytes() == after
    (tmp_path / "socket").unlink(missing_ok=True)
    with server(tmp_path, *flags), tensord.connect(f"unix:{tmp_path}/socket") as next_:
        assert next_.plan_cache.stats().store.loaded_count >= 50


class NoRedis:
    """Takes connections, says the same to each, and nothing more."""

    def __init__(self, folder: Path, answer: bytes) -> None:
        self.address = f"unix:{folder}/redis"
        self.was_asked = threading.Event()
        self._answer = answer
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(f"{folder}/redis")
        self._socket.listen()
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
                connection.recv(1)
                connection.sendall(self._answer)
            except OSError:
                if self._socket.fileno() < 0:
                    return
                continue
            self._connections.append(connection)
            self.was_asked.set()

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize(
    "answer",
    [b"", b"$9999999999\r\n", b"*-7\r\n", b"\xff" * 100_000],
    ids=["hangs", "promises", "counts down", "garbage"],
)
def test_a_redis_that_hangs_or_lies_is_in_nobodys_way(
    tmp_path: Path, answer: bytes
) -> None:
    redis = NoRedis(tmp_path, answer)
    flags = [f"--plan-exchange={redis.address}", "--plan-exchange-interval-seconds=0.1"]
    with (
        server(tmp_path, *flags) as process,
        tensord.connect(f"unix:{tmp_path}/socket") as session,
    ):
        learn(session, 10)
        assert redis.was_asked.wait(20)
        for _ in range(10):
            check_that_it_works(session)
        assert session.plan_cache.stats().exchange.received_count == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    redis.close()


def test_a_redis_that_stops_midway_is_asked_again(redis: RedisServer) -> None:
    with (
        tensord.serve(
            threads=1, plan_exchange=redis.address, plan_exchange_interval_seconds=0.1
        ) as address,
        tensord.connect(address) as session,
    ):

        def sent() -> int:
            return session.plan_cache.stats().exchange.sent_count

        learn(session, 10)
        assert eventually(lambda: sent() >= 10)
        redis.hold()
        learn(session, 20)
        errors = session.plan_cache.stats().exchange.error_count
        assert eventually(
            lambda: session.plan_cache.stats().exchange.error_count > errors
        )
        check_that_it_works(session)
        redis.go_on()
        assert eventually(lambda: sent() >= 20)
