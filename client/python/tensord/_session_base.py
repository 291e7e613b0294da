"""What sessions are, whether their calls wait or are awaited."""

from __future__ import annotations

import weakref
from typing import Any

from tensord._operations import Outcome
from tensord._program_operations import ProgramOperations, ProgramOutcome
from tensord.reports import ServerInfo


class SessionBase(ProgramOperations[Outcome, ProgramOutcome]):
    """A session with a server, and the operations that it runs.

    Attributes:
        name: Its name on the wire, `sessions/{session}`.
        device: The device that its operations run on.
        link: What ties it, and all that it hands out, to the server.
    """

    def __init__(self, link: Any) -> None:
        """Use `connect`."""
        self.name: str = link.name
        self.device: str = link.device
        self.link = link
        self._finalizer = weakref.finalize(self, link.keeper.stop)

    def info(self) -> ServerInfo:
        """Returns the server's version, devices and limits, as of the start."""
        info: ServerInfo = self.link.info
        return info

    def _stop(self) -> None:
        """Has the session closed soon."""
        self._finalizer.detach()
        self.link.keeper.stop()
