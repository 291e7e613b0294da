"""What this program holds of a server, by its name."""

from __future__ import annotations

import weakref
from typing import Any

from tensord._keeper import Keeper


class Handle:
    """A tensor, plan or program on the server.

    Attributes:
        name: Its name within the session.
    """

    def __init__(self, full_name: str, keeper: Keeper | None) -> None:
        """
        Args:
            full_name: Its name on the wire.
            keeper: Deletes it after the last reference to this object; None when it
                is to stay.
        """
        self._full_name = full_name
        self.name = full_name.rpartition("/")[2]
        self._finalizer: weakref.finalize[..., Handle] | None = None
        if keeper is not None:
            self._leave_with_object(keeper)

    @property
    def full_name(self) -> str:
        """Its name on the wire, e.g. `sessions/{session}/tensors/{tensor}`."""
        return self._full_name

    def _leave_with_object(self, keeper: Keeper) -> None:
        self._finalizer = weakref.finalize(self, keeper.discard, self._full_name)
        self._finalizer.atexit = False

    def forget(self) -> None:
        """Leaves its end to somebody else."""
        if self._finalizer is not None:
            self._finalizer.detach()


class SessionHandle(Handle):
    """A handle that knows its session.

    Attributes:
        session: The session that it belongs to.
        link: What ties that session to the server.
        device: Where it is, or runs, e.g. `cpu:0`.
    """

    # Subclasses know of which kinds they are.
    session: Any
    link: Any

    def __init__(self, session: Any, message: Any, *, owned: bool) -> None:
        """
        Args:
            session: The session that it belongs to.
            message: What the server says about it.
            owned: Whether it leaves the server with this object.
        """
        super().__init__(message.name, session.link.keeper if owned else None)
        self.session = session
        self.link = session.link
        self.device: str = message.device


Held = list[Handle]
"""What a request names, which must live as long as the server needs it."""
