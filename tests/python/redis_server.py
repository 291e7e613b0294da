"""A Redis that starts and goes away as a test wants."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from waiting import eventually


class RedisServer:
    """A Redis on a Unix socket, which keeps nothing; runs in `with`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        self._socket = Path(self._folder.name) / "socket"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """As `--plan-exchange` takes it."""
        return f"unix:{self._socket}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(self._socket)]
            + ["--save", "", "--dir", self._folder.name, "--logfile", "/dev/null"]
        )
        assert eventually(self._answers), "redis-server does not start"

    def stop(self) -> None:
        """Ends it at once; what it had is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hold(self) -> None:
        """It answers nobody until `go_on`."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def command(self, *words: str) -> str:
        """Returns the first line of the answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(self._socket))
            connection.sendall(" ".join(words).encode() + b"\r\n")
            with connection.makefile("rb") as answer:
                return answer.readline().decode().strip()

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self.command("PING") == "+PONG"
        return False

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        self._folder.cleanup()
