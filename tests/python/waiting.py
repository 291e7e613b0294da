"""Facts that come true while a test waits."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(fact: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether the fact comes true in time."""
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
