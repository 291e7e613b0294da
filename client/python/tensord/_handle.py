"""What this program holds of a server, by its name."""

from __future__ import annotations

from typing import Any, NoReturn

from tensord._keeper import Keeper
from tensord._wire import length_delimited


class _Owner:
    """What a handle alone refers to: its end is the handle's.

    A finalizer of `weakref` would do the same, and take ten times as long to make.
    """

    __slots__ = ("full_name", "keeper", "nbytes")

    def __init__(self, full_name: str, keeper: Keeper) -> None:
        self.full_name = full_name
        self.nbytes = 0
        self.keeper: Keeper | None = keeper

    def __del__(self) -> None:
        keeper = getattr(self, "keeper", None)  # Not there if it was never filled.
        if keeper is not None:
            keeper.discard(self.full_name, self.nbytes)


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
        self._operand: bytes | None = None
        self._owner: _Owner | None = None
        if keeper is not None:
            self._owner = _Owner(full_name, keeper)

    @property
    def full_name(self) -> str:
        """Its name on the wire, e.g. `sessions/{session}/tensors/{tensor}`."""
        return self._full_name

    def named(self) -> bytes:
        """Returns the field `tensor` of an operand, or an output, as it travels."""
        return b"\x0a" + length_delimited(self._full_name.encode())

    def operand(self) -> bytes:
        """Returns the same with its length: all that an operand has to say of it."""
        operand = self._operand
        if operand is None:
            operand = self._operand = length_delimited(self.named())
        return operand

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuses copies and pickles of what is on a server.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            f"a {type(self).__name__} is on a server, and neither copied by Python nor "
            "pickled: pickle what `.numpy()` of a tensor downloads, or open a session "
            "there and take a tensor with a name= by `session.tensor(name)`"
        )

    def _leave_with_object(self, keeper: Keeper) -> None:
        self._owner = _Owner(self._full_name, keeper)

    def keep(self, *kept: Any) -> None:
        """Has others live as long as this object."""
        self._kept = kept

    def _weigh(self, nbytes: int) -> None:
        """Says what its end gives back."""
        if self._owner is not None:
            self._owner.nbytes = nbytes

    @property
    def is_owned(self) -> bool:
        """Whether it leaves the server with this object, unless `forget` says else."""
        return self._owner is not None

    def forget(self) -> None:
        """Leaves its end to somebody else."""
        if self._owner is not None:
            self._owner.keeper = None

    def leave_by(self, keeper: Keeper | None) -> None:
        """Says who deletes it, if it leaves the server with this object.

        Args:
            keeper: That one; None while it is not there.
        """
        if self._owner is not None:
            self._owner.keeper = keeper


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
