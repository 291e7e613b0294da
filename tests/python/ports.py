"""Ports for servers that must know theirs before they begin."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """One that nobody listens at here, and that the system gives nobody who asks for any."""
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)
        with socket.socket() as listener:  # time: it waits for nobody
            if listener.connect_ex(("127.0.0.1", port)) != 0:
                return port
