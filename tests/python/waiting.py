"""Facts that come true while a test waits."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path


def eventually(fact: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether the fact comes true in time."""
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def listens(path: Path, seconds: float = 20.0) -> bool:
    """Whether somebody takes connections at the socket in time: the file is there before."""

    def answers() -> bool:
        with socket.socket(socket.AF_UNIX) as caller:
            return caller.connect_ex(str(path)) == 0

    return eventually(answers, seconds)
