"""Whoever opens many connections keeps nobody else from the server."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tensord
from observed_server import ObservedServer
from secure_server import serve_tcp
from waiting import eventually

pytestmark = pytest.mark.timing


@contextlib.contextmanager
def flood(address: str, count: int) -> Iterator[list[socket.socket]]:
    """That many connections that say nothing."""
    host, _, port = address.rpartition(":")
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((host, int(port)), timeout=5))
            for _ in range(count)
        ]


def is_open(connection: socket.socket) -> bool:
    """Whether the server has taken it: then gRPC's settings come unasked."""
    try:
        return connection.recv(1) != b""
    except ConnectionResetError:
        return False


def served_from(passed: socket.socket, log: Path) -> subprocess.Popen[bytes]:
    """A server that was passed a socket, as file 3."""
    command = 'exec 3<&"$1" && LISTEN_FDS=1 LISTEN_PID=$$ exec "$2" --listen=systemd --threads=1'
    with log.open("wb") as sink:
        return subprocess.Popen(
            ["bash", "-c", command, "bash", str(passed.fileno()), os.environ["TENSORD_SERVER"]],
            pass_fds=[passed.fileno()],
            stderr=sink,
        )


def works(address: str) -> bool:
    try:
        with tensord.connect(address, timeout=2) as session:
            return bool(session.upload(np.ones(2)).numpy().sum() == 2)
    except (tensord.Unavailable, tensord.DeadlineExceeded):
        return False


def test_connections_of_one_peer_are_limited():
    with serve_tcp("127.0.0.1", max_connections_per_peer=20) as address:
        with tensord.connect(address) as session:
            session.upload(np.ones(2))  # by a connection of its own
            with flood(address, 30) as connections:
                assert sum(map(is_open, connections)) == 18
                assert not works(address)
                # Who is there stays.
                np.testing.assert_array_equal(session.upload(np.ones(2)).numpy(), 1)
        assert eventually(lambda: works(address))


def test_a_peer_at_its_limit_leaves_others_room():
    flags = {"max_connections_per_peer": 5}
    with serve_tcp("127.0.0.1", **flags) as address:
        with flood(address, 10) as connections:
            assert sum(map(is_open, connections)) == 5
            host, port = address.split(":")
            with socket.create_connection((host, int(port)), 5, ("127.0.0.2", 0)) as other:
                assert is_open(other)


def test_a_server_without_files_serves_again_when_it_has_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    few = tmp_path / "few-files"
    few.write_text(f'#!/bin/sh\nulimit -n 120\nexec {os.environ["TENSORD_SERVER"]} "$@"\n')
    few.chmod(few.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TENSORD_SERVER", str(few))
    with serve_tcp("127.0.0.1") as address:
        with flood(address, 300):
            assert not works(address)
        assert eventually(lambda: works(address))


def test_refused_connections_are_counted(tmp_path: Path):
    flags = "--listen=127.0.0.1:0", "--max-connections=3"
    with ObservedServer(tmp_path, *flags) as server:
        assert eventually(lambda: "address=127.0.0.1:" in server.log())
        addresses = [word for word in server.log().split() if "address=127" in word]
        assert addresses, server.log()
        with flood(addresses[-1].removeprefix("address="), 8) as connections:
            assert sum(map(is_open, connections)) == 3
        refused = server.metrics().sum("tensord_connections_refused_total", limit="total")
        assert refused == 5  # each was counted before its connection was closed
        assert "connection_refused" in server.log()


def test_sockets_that_systemd_has_passed_are_served(tmp_path: Path):
    path = tmp_path / "passed"
    with socket.socket(socket.AF_UNIX) as passed:
        passed.bind(str(path))
        passed.listen()
        process = served_from(passed, tmp_path / "log")
        try:
            assert eventually(lambda: works(f"unix:{path}"))
        finally:
            process.terminate()
            assert process.wait(30) == 0
    assert path.exists()  # as systemd made it


def test_passed_sockets_beyond_loopback_need_tls(tmp_path: Path):
    with socket.create_server(("0.0.0.0", 0)) as passed:
        assert served_from(passed, tmp_path / "log").wait(30) == 1
    assert "--listen=systemd" in (tmp_path / "log").read_text()
    assert "--tls-certificate" in (tmp_path / "log").read_text()
