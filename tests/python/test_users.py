"""Users of the machine, whom Unix sockets know, and the tenants that they stand for."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from callers import Caller, refused, running

import tensord
from files import rewrite
from waiting import eventually, listens


def test_unix_sockets_have_the_permissions_asked_for() -> None:
    with running(socket_mode="0660") as server:
        mode = Path(server.unix.removeprefix("unix:")).stat().st_mode
        assert stat.S_IMODE(mode) == 0o660


def test_users_of_the_machine_stand_for_tenants(tmp_path: Path) -> None:
    user, file = pwd.getpwuid(os.getuid()), tmp_path / "tenants.toml"
    file.write_text(f'[tenant.chemistry]\nusers = ["{user.pw_name}"]\n')
    with running(tenants=str(file), listen="localhost:0") as server:
        with tensord.connect(server.unix) as session:
            with pytest.raises(tensord.PermissionDenied) as denied:
                session.stats()
            assert f"user {user.pw_uid} is a user of tenant chemistry" in str(
                denied.value
            )
            # Over TCP nobody says who asks.
            assert refused(Caller(server.address()).open)[1] == "CREDENTIALS_MISSING"
            rewrite(file, f"[tenant.chemistry]\noperator_users = [{user.pw_uid}]\n")
            assert eventually(lambda: "reloaded what=tenants" in server.log.read_text())
            assert [each.peer for each in session.operator.sessions()] == [
                f"user {user.pw_uid}"
            ]
            rewrite(file, f"[tenant.chemistry]\nusers = [{user.pw_uid + 1}]\n")

            def is_unknown() -> bool:
                try:
                    session.describe()
                except tensord.Unauthenticated as error:
                    return error.reason == "USER_UNKNOWN"
                return False

            assert eventually(is_unknown)
        rewrite(file, "[tenant.chemistry]\n")
        assert eventually(
            lambda: server.log.read_text().count("reloaded what=tenants") == 3
        )
        # Not everybody's again, as it is of servers that ask nobody.
        assert refused(Caller(server.unix).open)[1] == "USER_UNKNOWN"


def test_users_are_named_from_the_start_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text("[tenant.chemistry]\n")
    with running(tenants=str(file)) as server:
        rewrite(file, "[tenant.chemistry]\nusers = [0]\n")
        assert eventually(lambda: "kept what=tenants" in server.log.read_text())
        assert "names users for the first time since" in server.log.read_text()
        assert Caller(server.unix).open()


@contextlib.contextmanager
def acting_as(user: int) -> Iterator[None]:
    before = os.geteuid()
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.timing
@pytest.mark.skipif(os.getuid() != 0, reason="root alone can act as others")
def test_each_user_is_known_by_their_own_connections(tmp_path: Path) -> None:
    file, path = (
        tmp_path / "tenants.toml",
        Path(tempfile.mkdtemp(dir="/tmp")) / "socket",
    )
    others = [3000 + i for i in range(65)]
    file.write_text(
        f"[tenant.one]\nusers = [2001]\n[tenant.two]\nusers = {[2002, *others]}\n"
    )
    path.parent.chmod(0o755)
    with running(
        tenants=str(file), listen=f"unix:{path}", socket_mode="0666"
    ) as server:
        assert listens(path)
        callers = {}
        for user in (2001, 2002, 2003):
            with acting_as(user):
                callers[user] = Caller(f"unix:{path}")
                grpc.channel_ready_future(callers[user].channel).result(10)
        session = callers[2001].open()
        assert callers[2001].describe(session)
        assert (
            refused(lambda: callers[2002].describe(session))[1] == "SESSION_NOT_FOUND"
        )
        assert refused(callers[2003].open)[1] == "USER_UNKNOWN"
        assert callers[2002].open()
        with contextlib.ExitStack() as stack:

            def is_taken(user: int) -> bool:
                connection = stack.enter_context(socket.socket(socket.AF_UNIX))
                with acting_as(user):
                    connection.connect(str(path))
                try:
                    return connection.recv(1) != b""
                except ConnectionResetError:
                    return False

            # Who is of no tenant takes no place from those who are.
            assert all(is_taken(5000 + i) for i in range(70))
            # 64 users at a time, of whom two are there.
            assert [is_taken(user) for user in others] == [True] * 62 + [False] * 3
            assert is_taken(2001)
        assert (
            'connection_refused peer="user 3062" limit=users' in server.log.read_text()
        )
    shutil.rmtree(path.parent)


@pytest.mark.timing
@pytest.mark.skipif(os.getuid() != 0, reason="root alone can act as others")
def test_each_user_opens_a_share_of_the_sessions() -> None:
    path = Path(tempfile.mkdtemp(dir="/tmp")) / "socket"
    path.parent.chmod(0o755)
    with running(listen=f"unix:{path}", socket_mode="0666", max_sessions=8):
        assert listens(path)
        for user in (os.getuid(), 2001, 2002):  # nobody is asked who they are
            with acting_as(user):
                caller = Caller(f"unix:{path}")
                assert all([caller.open(), caller.open()])
                assert refused(caller.open)[1] == "TOO_MANY_SESSIONS_OF_PEER"
    shutil.rmtree(path.parent)
