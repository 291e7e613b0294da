"""Servers are found, started and stopped."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

import tensord


def test_connect_without_a_server_says_how_to_start_one(monkeypatch, tmp_path):
    monkeypatch.setenv("TENSORD_ADDRESS", f"unix:{tmp_path}/nobody")
    with pytest.raises(ConnectionError) as failure:
        tensord.connect()
    assert isinstance(failure.value, tensord.Unavailable)
    assert f"`tensord --listen=unix:{tmp_path}/nobody`" in str(failure.value)
    assert "tensord.serve()" in str(failure.value)
    assert failure.value.reason == "UNREACHABLE"


@pytest.mark.parametrize(
    "address",
    ["nonsense", "host:", ":8470", "host:http", "host:0", "host:65536", "::1:8470"]
    + ["unix:", "[::1]", "two words:8470", "localhost:8470\n"],
)
def test_malformed_addresses_are_refused(address: str):
    with pytest.raises(tensord.InvalidArgument, match="HOST:PORT or unix:PATH") as e:
        tensord.connect(address)
    assert e.value.reason == "ADDRESS_MALFORMED"


@pytest.mark.parametrize("address", ["localhost:1", "127.0.0.1:1", "[::1]:1"])
def test_wellformed_addresses_are_tried(address: str):
    with pytest.raises(tensord.Unavailable):
        tensord.connect(address, timeout=5)


def test_connect_takes_the_address_from_the_environment(monkeypatch, address):
    monkeypatch.setenv("TENSORD_ADDRESS", address)
    with tensord.connect() as session:
        assert float(session.einsum("i->", np.ones(3))) == 3


def test_serve_runs_a_private_server_and_stops_it():
    with tensord.serve(threads=1, log_level="debug") as address:
        socket = Path(address.removeprefix("unix:"))
        assert socket.exists()
        with tensord.connect(address) as session:
            assert session.info().devices[0].thread_count == 1
    assert not socket.parent.exists()
    with pytest.raises(tensord.Unavailable):
        tensord.connect(address)


def test_serve_without_a_program_says_how_to_get_it(monkeypatch):
    monkeypatch.delenv("TENSORD_SERVER")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(tensord.Unavailable, match="TENSORD_SERVER"):
        with tensord.serve():
            pass
    monkeypatch.setenv("TENSORD_SERVER", "/nowhere/tensord")
    with pytest.raises(tensord.Unavailable, match="/nowhere/tensord"):
        with tensord.serve():
            pass


def test_serve_finds_the_program_on_the_path(monkeypatch, tmp_path):
    program = tmp_path / "tensord"
    program.write_text("#!/bin/sh\necho got $@ >&2\nexit 3\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.delenv("TENSORD_SERVER")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(tensord.Unavailable) as failure:
        with tensord.serve(devices=["cpu:0", "cpu:1"], memory_limit_bytes=5, flag=True):
            pass
    assert "ended with status 3" in str(failure.value)
    flags = "--devices=cpu:0 --devices=cpu:1 --memory-limit-bytes=5 --flag=true"
    assert flags in str(failure.value)


def test_serve_shows_what_a_server_says_about_wrong_flags():
    with pytest.raises(tensord.Unavailable, match="no-such-flag"):
        with tensord.serve(no_such_flag=1):
            pass


def test_a_session_ends_with_its_server():
    with tensord.serve(threads=1) as address:
        session = tensord.connect(address)
        tensor = session.upload(np.ones(3))
    with pytest.raises(tensord.Unavailable):
        session.stats()
    with pytest.raises(tensord.Unavailable):
        tensor.numpy()
    session.close()
