"""The way to memory that clients share with a server: sockets, who may not, what ends it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tensord
from secure_server import serve_tcp
from waiting import eventually

LARGE = (300, 400)  # More than goes by gRPC in any case.


def test_servers_may_take_none() -> None:
    with tensord.serve(shared_memory="off") as address:
        with tensord.connect(address) as session:
            assert session.transport == "grpc"
            x = np.ones(LARGE)
            np.testing.assert_array_equal(session.upload(x).numpy(), x)
        with pytest.raises(tensord.FailedPrecondition) as error:
            tensord.connect(address, transport="shm")
        assert error.value.reason == "SHARED_MEMORY_OFF"


@pytest.mark.timing
def test_loopback_has_it_by_an_abstract_name() -> None:
    with serve_tcp("localhost") as address:
        with tensord.connect(address, transport="shm") as session:
            x = np.ones(LARGE)
            np.testing.assert_array_equal(session.upload(x).numpy(), x)


def test_a_socket_that_is_not_there_is_named(private_address: str) -> None:
    """As in a container that has only the other one."""
    path = private_address.removeprefix("unix:")
    os.rename(f"{path}.shm", f"{path}.hidden")
    with pytest.raises(tensord.FailedPrecondition) as error:
        tensord.connect(private_address, transport="shm")
    assert error.value.reason == "SHARED_MEMORY_UNREACHABLE"
    assert f"{path}.shm" in str(error.value)
    with tensord.connect(private_address) as session:
        assert session.transport == "grpc"
        assert (session.upload(np.ones(LARGE)).numpy() == 1).all()


def test_a_link_to_the_folder_of_the_socket_leads_there(private_address: str, tmp_path: Path) -> None:
    """As /var/run does to /run."""
    path = Path(private_address.removeprefix("unix:"))
    (tmp_path / "link").symlink_to(path.parent)
    address = f"unix:{tmp_path}/link/{path.name}"
    with tensord.connect(address, transport="shm") as session:
        x = np.ones(LARGE)
        np.testing.assert_array_equal(session.upload(x).numpy(), x)
    assert examined(address).returncode == 0


def test_one_socket_elsewhere_is_not_both(private_address: str, tmp_path: Path) -> None:
    """As in a container that has been given that one alone."""
    address = f"unix:{tmp_path}/socket"
    (tmp_path / "socket").symlink_to(private_address.removeprefix("unix:"))
    with tensord.connect(address) as session:
        assert session.transport == "grpc"
    with pytest.raises(tensord.FailedPrecondition) as error:
        tensord.connect(address, transport="shm")
    assert error.value.reason == "SHARED_MEMORY_UNREACHABLE"
    ran = examined(address)
    assert ran.returncode == 1 and "SHARED_MEMORY_UNREACHABLE" in ran.stdout


@pytest.mark.timing
def test_sockets_of_others_are_not_trusted(tmp_path: Path) -> None:
    """Who has made PATH.shm before the server could wanted to see what clients have."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as others:
        others.bind(f"{path}.shm")
        others.listen()
        others.settimeout(0.2)
        with tensord.serve(listen=[f"unix:{path}"]):
            with tensord.connect(f"unix:{path}") as session:
                assert session.transport == "grpc"
                assert (session.upload(np.ones(LARGE)).numpy() == 1).all()
            with pytest.raises(tensord.FailedPrecondition) as error:
                tensord.connect(f"unix:{path}", transport="shm")
            assert error.value.reason == "SHARED_MEMORY_UNREACHABLE"
        accepted, _ = others.accept()  # The server has looked whether anybody answers.
        assert accepted.recv(100) == b""
        accepted.close()
        with pytest.raises(TimeoutError):
            others.accept()


def test_when_the_connection_is_lost_transfers_go_by_grpc(address: str) -> None:
    with tensord.connect(address) as session:
        kept = session.upload(np.ones(LARGE))
        session.link.memory._way.close()
        assert eventually(lambda: kept.state == "invalid")
        with pytest.raises(tensord.FailedPrecondition) as error:
            session.permute(kept, "ij", "ji")
        assert error.value.reason == "SHARED_MEMORY_GONE"
        assert (session.upload(np.ones(LARGE)).numpy() == 1).all()
        assert session.transport == "grpc"


DYING = """
import sys, time, numpy as np, tensord
session = tensord.connect(sys.argv[1], transport="shm", lease=60)
a = session.empty((300, 300))
a[...] = 1
t = session.upload(np.ones((300, 300)))
u = session.einsum("ij,jk->ik", a, a)
print("ready", flush=True)
while True:
    session.einsum("ij,jk->ik", a, t)
"""


@pytest.mark.timing
def test_nothing_of_a_killed_client_stays_mapped() -> None:
    with tensord.serve() as address:
        server = server_of(address)
        for pause in (0.0, 0.01, 0.05, 0.2):
            client = subprocess.Popen(
                [sys.executable, "-c", DYING, address], stdout=subprocess.PIPE
            )
            assert client.stdout is not None and client.stdout.readline() == b"ready\n"
            assert mapped_files(server)
            time.sleep(pause)
            client.send_signal(signal.SIGKILL)
            client.wait()
            assert eventually(lambda: not mapped_files(server), seconds=5)
            client.stdout.close()
        with tensord.connect(address, transport="shm") as session:
            assert (session.upload(np.ones(LARGE)).numpy() == 1).all()


def server_of(address: str) -> int:
    """The process that listens at a Unix socket."""
    path = address.removeprefix("unix:")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.path.basename(command[0]) == b"tensord" and path.encode() in b" ".join(
            command
        ):
            return int(folder.name)
    raise AssertionError(f"no server at {path}")


def mapped_files(process: int) -> int:
    """How many regions of clients a process has mapped."""
    return Path(f"/proc/{process}/maps").read_text().count("/memfd:tensord")


CONTROL = Path(os.environ["TENSORD_SERVER"]).with_name("tensorctl")


def examined(address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(CONTROL), f"--address={address}", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_doctor_finds_nothing_where_all_is_well(address: str) -> None:
    ran = examined(address, "--json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["ok"] and all(check["ok"] for check in report["checks"])
    assert report["shared_bytes_per_second"] > 0 < report["grpc_bytes_per_second"]
    assert examined(address).stdout.count(" ok ") == len(report["checks"]) == 8


@pytest.mark.timing
def test_the_doctor_says_which_precondition_fails(private_address: str) -> None:
    path = private_address.removeprefix("unix:") + ".shm"
    os.rename(path, f"{path}.hidden")
    ran = examined(private_address)
    assert ran.returncode == 1
    lines = dict(line.split(maxsplit=1) for line in ran.stdout.splitlines())
    assert lines["memory"].startswith("ok")
    assert lines["socket"].startswith("failed")
    assert "another container" in lines["socket"] or "this container" in lines["socket"]
    assert "SHARED_MEMORY_UNREACHABLE" in lines["socket"]
    assert lines["hello"].startswith("-")
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(path)  # Another kind of socket, where nobody listens.
        report = json.loads(examined(private_address, "--json").stdout)
    assert not report["ok"]
    failed = next(check for check in report["checks"] if not check["ok"])
    assert failed["what"] == "socket"
    assert failed["reason"] == "SHARED_MEMORY_UNREACHABLE"
    with tensord.serve(shared_memory="off") as address:
        ran = examined(address)
        assert ran.returncode == 1 and "SHARED_MEMORY_OFF" in ran.stdout


@pytest.mark.timing
def test_sockets_go_with_their_server() -> None:
    with tensord.serve() as address:
        path = Path(address.removeprefix("unix:") + ".shm")
        assert path.is_socket()
        os.kill(server_of(address), signal.SIGTERM)
        assert eventually(lambda: not path.exists())
