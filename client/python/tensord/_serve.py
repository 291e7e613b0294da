"""Private servers."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Union

from tensord._connection import Connection
from tensord._credentials import Credentials
from tensord.errors import DeadlineExceeded, Unauthenticated, Unavailable
from tensord.v1 import admin_pb2

FlagValue = Union[str, int, float, bool, Sequence[str]]

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.01
# A socket's path has at most 107 bytes; so many are left for its folder's parent.
_MAX_PARENT_LENGTH = 80


@contextlib.contextmanager
def serve(**flags: FlagValue) -> Generator[str, None, None]:
    """Runs a private server on a Unix socket, for tests and notebooks.

    The program is $TENSORD_SERVER, or else `tensord` on the PATH.

    >>> with tensord.serve(threads=4) as address, tensord.connect(address) as session:
    ...     session.einsum("ij,jk", a, b)

    Args:
        **flags: Flags of the server with `_` for `-`; a sequence repeats its flag.
            `threads=4` becomes `--threads=4`.

    Yields:
        The server's address.

    Raises:
        Unavailable: There is no such program, or it does not start.
    """
    program = _find_server()
    with tempfile.TemporaryDirectory(prefix="tensord-", dir=_short_folder()) as folder:
        socket = Path(folder) / "socket"
        address = f"unix:{socket}"
        log = Path(folder) / "log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [program, f"--listen={address}", *_command_line(flags)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait_until_up(process, address, socket, log)
            yield address
        finally:
            _stop(process)


def _find_server() -> str:
    program = os.environ.get("TENSORD_SERVER") or shutil.which("tensord")
    if not program:
        raise Unavailable(
            "no tensord server on this machine: put `tensord` on the PATH or its "
            "place into $TENSORD_SERVER. In a checkout, `deploy/quickstart` builds "
            "build/release/bin/tensord"
        )
    if not os.access(program, os.X_OK):
        raise Unavailable(f"$TENSORD_SERVER is {program}, which is no program")
    return program


def _short_folder() -> str | None:
    return None if len(tempfile.gettempdir()) <= _MAX_PARENT_LENGTH else "/tmp"


def _command_line(flags: dict[str, FlagValue]) -> list[str]:
    arguments = []
    for name, value in flags.items():
        values = [value] if isinstance(value, (str, int, float)) else value
        for each in values:
            text = str(each).lower() if isinstance(each, bool) else str(each)
            arguments.append(f"--{name.replace('_', '-')}={text}")
    return arguments


def _wait_until_up(
    process: subprocess.Popen[bytes], address: str, socket: Path, log: Path
) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Unavailable(
                f"the server ended with status {process.returncode}:\n{_tail(log)}"
            )
        if socket.exists() and _answers(address):
            return
        time.sleep(_POLL_SECONDS)
    raise Unavailable(
        f"the server did not answer within {_START_SECONDS:.0f} s:\n{_tail(log)}"
    )


def _answers(address: str) -> bool:
    connection = Connection(address, 1.0, Credentials())
    try:
        connection.call(
            connection.admin.GetServerInfo, admin_pb2.GetServerInfoRequest()
        )
    except (Unavailable, DeadlineExceeded):
        return False
    except Unauthenticated:
        pass  # With a token it does.
    finally:
        connection.close()
    return True


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
