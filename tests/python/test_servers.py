"""A name with several servers: sessions are opened on the least loaded and stay there."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tensord
from ports import free_port
from secure_server import make_certificates, new_token

NAME = "tensord.test"


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """A name whose addresses are 127.0.0.1, 127.0.0.2 and 127.0.0.3, with a port."""
    original = socket.getaddrinfo

    def resolved(host: str, port: int, *args: object, **options: int) -> list:
        if host != NAME:
            return original(host, port, *args, **options)
        return [found for i in (1, 2, 3) for found in original(f"127.0.0.{i}", port, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    return f"dns:///{NAME}:{free_port()}"


@contextlib.contextmanager
def servers(name: str, hosts: tuple[int, ...] = (1, 2, 3), **flags: object) -> Iterator[list[str]]:
    """Servers at some of a name's addresses."""
    port = name.rpartition(":")[2]
    addresses = [f"127.0.0.{i}:{port}" for i in hosts]
    with contextlib.ExitStack() as stack:
        for address in addresses:
            stack.enter_context(tensord.serve(listen=[address], threads=1, **flags))
        yield addresses


def test_sessions_go_to_the_least_loaded_server_and_stay(name: str) -> None:
    with servers(name) as addresses, contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(tensord.connect(name)) for _ in range(6)]
        for address in addresses:
            assert sum(address in repr(session) for session in sessions) == 2
        for session in sessions:
            a = session.upload(np.eye(3))
            assert session.einsum("ij,jk->ik", a, a).numpy().trace() == 3


def test_of_equally_many_sessions_the_emptier_server_is_next(name: str) -> None:
    with servers(name) as addresses, contextlib.ExitStack() as stack:
        first = [
            stack.enter_context(tensord.connect(address, transport="grpc"))
            for address in addresses
        ]
        kept = [session.upload(np.ones(1 << 17)) for session in first[:2]]
        assert addresses[2] in repr(stack.enter_context(tensord.connect(name)))
        del kept


def test_a_server_that_is_away_is_passed_over(name: str) -> None:
    with servers(name, hosts=(2,)) as (address,), tensord.connect(name) as session:
        assert address in repr(session)


def test_a_full_server_is_passed_over(name: str) -> None:
    with servers(name, hosts=(1, 3), max_sessions=1) as addresses, contextlib.ExitStack() as stack:
        taken = [repr(stack.enter_context(tensord.connect(name))) for _ in addresses]
        assert all(any(address in each for each in taken) for address in addresses)
        with pytest.raises(tensord.errors.ResourceExhausted):
            tensord.connect(name)


def test_a_name_without_servers_says_so(name: str) -> None:
    with pytest.raises(tensord.errors.Unavailable, match="no tensord server answers at 127"):
        tensord.connect(name)
    with pytest.raises(tensord.errors.Unavailable, match="no-such.invalid has no address"):
        tensord.connect("dns:///no-such.invalid:8470")


def test_certificates_are_those_of_the_name_and_users_are_spread(name: str, tmp_path: Path) -> None:
    make_certificates(tmp_path, "--host", NAME)
    token = new_token(tmp_path / "tokens", "physics")
    flags = {
        "tls_certificate": str(tmp_path / "server.pem"),
        "tls_key": str(tmp_path / "server-key.pem"),
        "tokens": str(tmp_path / "tokens"),
    }
    with servers(name, **flags) as addresses, contextlib.ExitStack() as stack:
        shown = {"ca": tmp_path / "ca.pem", "token": token}
        sessions = [stack.enter_context(tensord.connect(name, **shown)) for _ in range(6)]
        for address in addresses:
            assert sum(address in repr(session) for session in sessions) == 2
        assert sessions[0].upload(np.ones(3)).numpy().sum() == 3
