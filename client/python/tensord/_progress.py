"""A bar that shows how far a slow transfer has come."""

from __future__ import annotations

import sys
import time

_FIRST_SHOWN_AFTER_SECONDS = 1.0
_SECONDS_BETWEEN_SHOWS = 0.2
_CELLS = 30


class Progress:
    """Shows a transfer on stderr once it has taken over a second.

    Silent unless stdout and stderr are terminals.

    Attributes:
        is_shown: Whether they are.
    """

    def __init__(self, label: str, total_bytes: int) -> None:
        self._label = label
        self._total_bytes = total_bytes
        self._begun = time.monotonic()
        self._next_show = self._begun + _FIRST_SHOWN_AFTER_SECONDS
        self._shown = False
        self.is_shown = sys.stdout.isatty() and sys.stderr.isatty()

    def update(self, done_bytes: int) -> None:
        """Notes that the first `done_bytes` have been transferred."""
        now = time.monotonic()
        if not self.is_shown or now < self._next_show:
            return
        self._next_show = now + _SECONDS_BETWEEN_SHOWS
        self._shown = True
        part = done_bytes / self._total_bytes if self._total_bytes else 1.0
        bar = "#" * int(part * _CELLS)
        rate = done_bytes / (now - self._begun) / 1e6
        sys.stderr.write(
            f"\r{self._label} [{bar:<{_CELLS}}] {part:4.0%} of "
            f"{self._total_bytes / 1e6:.0f} MB, {rate:.0f} MB/s "
        )
        sys.stderr.flush()

    def close(self) -> None:
        """Ends the line, if one was begun."""
        if self._shown:
            sys.stderr.write("\n")
            sys.stderr.flush()
