"""What ties a session, and all that it hands out, to the server."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import datetime
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from tensord import _dtypes as dtypes
from tensord._arguments import check_address, check_timeout, lease_value
from tensord._connection import Connection, Stubs
from tensord._credentials import Given
from tensord._handle import Handle, Held
from tensord._keeper import NAMES_PER_CALL, Keeper
from tensord._messages import from_message
from tensord._servers import connections_to
from tensord._shared_memory import SharedMemory
from tensord._specs import TensorSpec
from tensord._transfer import Transfers
from tensord.errors import (
    UNREACHABLE,
    Error,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from tensord.reports import ServerInfo
from tensord.v1 import admin_pb2, session_pb2, tensor_pb2

DEFAULT_ADDRESS = "localhost:8470"
_DEFAULT_SECONDS = 60.0


Answer = TypeVar("Answer")


@dataclasses.dataclass(slots=True)
class Question(Generic[Answer]):
    """A call, and what becomes of its response, whether it is awaited or not.

    Attributes:
        service, method: What is called, e.g. "plan" and "ExplainPlan".
        request: What is sent.
        timeout: Deadline in seconds; None for the default.
        answer: Makes what is returned of the response.
        held: What the request names, and must live meanwhile.
        allocates: Whether it may lack memory that nobody holds any more.
        errors: A context that errors of the call pass.
    """

    service: str
    method: str
    request: Any
    timeout: float | None
    answer: Callable[[Any], Answer]
    held: Held = dataclasses.field(default_factory=list)
    allocates: bool = False
    errors: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()

    def method_of(self, stubs: Stubs) -> Any:
        """Returns what is called."""
        return getattr(getattr(stubs, self.service), self.method)


class SessionLink(abc.ABC):
    """A session as tensors, plans and programs need it.

    It does not refer to the Session, which can therefore be garbage collected. Safe for
    use by many threads.

    Attributes:
        name: The session's name on the wire, `sessions/{session}`.
        device: The device that its operations run on.
        info: What the server said of itself at the start.
        connection: To the server.
        keeper: Keeps the session alive, and deletes what nobody holds.
        memory: What it shares with a server on the same host.
        transfers: Move the bytes of tensors otherwise.
        last_request: That of the call or operation that the session began last, but
            for those of the keeper.
    """

    def __init__(
        self,
        connection: Connection,
        info: ServerInfo,
        opened: session_pb2.Session,
        transport: str = "auto",
    ) -> None:
        """Takes what `open_session` returns, and how bytes are to be moved."""
        self.name: str = opened.name
        self.device: str = opened.device
        self.info = info
        self.connection = connection
        lease_seconds = opened.lease.seconds + opened.lease.nanos / 1e9
        self.keeper = Keeper(connection, self.name, lease_seconds)
        self.transfers = Transfers(connection, info.limits.max_chunk_bytes)
        self.memory = SharedMemory(connection, self.name, self.keeper, transport)
        self.last_request: Any = None

    def full_name(self, kind: str, name: str) -> str:
        """Returns the full name of what the session has.

        Args:
            kind: "tensor", "plan" or "program".
            name: As given at creation, or in full.

        Raises:
            NotFound: It is a full name of another session's.
        """
        full_name = name if "/" in name else f"{self.name}/{kind}s/{name}"
        if not full_name.startswith(f"{self.name}/"):
            raise NotFound(
                f"{kind} {name} is not one of {self.name}",
                reason=f"{kind.upper()}_NOT_FOUND",
            )
        return full_name

    def creation(
        self, spec: TensorSpec, name: str | None
    ) -> tensor_pb2.CreateTensorRequest:
        """Returns the request that makes a tensor without contents."""
        return tensor_pb2.CreateTensorRequest(
            session=self.name,
            tensor_id=name or "",
            element_type=dtypes.element_type_of(spec.dtype),
            layout=spec.layout_message(),
        )

    def deletions(
        self, stubs: Stubs, tensors: Iterable[Handle | str]
    ) -> Iterator[tuple[Any, Any]]:
        """Yields the methods of stubs, and requests, that delete tensors.

        Args:
            stubs: Whose methods are to be called.
            tensors: Handles, which leave the deletion to the caller, or names.
        """
        names = []
        for tensor in tensors:
            if isinstance(tensor, Handle):
                tensor.forget()
            name = tensor.full_name if isinstance(tensor, Handle) else tensor
            names.append(self.full_name("tensor", name))
        for begin in range(0, len(names), NAMES_PER_CALL):
            yield stubs.deletions(self.name, names[begin : begin + NAMES_PER_CALL])

    @abc.abstractmethod
    def ask(self, question: Question[Any]) -> Any:
        """Returns the answer to a question, or what is to be awaited for it."""

    @abc.abstractmethod
    def stage(
        self, array: np.ndarray[Any, Any], spec: TensorSpec, timeout: float | None
    ) -> Handle:
        """Makes a temporary tensor, for an array that is too large to go inline.

        Args:
            array: Its elements.
            spec: What it is like on the server.
            timeout: Deadline in seconds; None for the default.
        """


def open_session(
    address: str | None,
    timeout: float | None,
    job: str,
    lease: float | datetime.timedelta | None,
    quota_bytes: int,
    device: str,
    priority: int,
    given: Given,
) -> tuple[Connection, ServerInfo, session_pb2.Session]:
    """Does what `connect` says, and returns what a link is made of."""
    address = address or os.environ.get("TENSORD_ADDRESS") or DEFAULT_ADDRESS
    check_address(address)
    check_timeout(timeout)
    request = session_pb2.OpenSessionRequest(
        job=job,
        memory_quota_bytes=quota_bytes,
        device=device,
        priority=priority,
    )
    if lease is not None:
        request.lease.FromTimedelta(lease_value(lease))
    seconds = _DEFAULT_SECONDS if timeout is None else timeout
    connections = connections_to(address, seconds, given)
    failure: Error | None = None
    try:
        for connection in connections:
            try:
                info = from_message(ServerInfo, _greet(connection))
                opened = connection.call(connection.session.OpenSession, request)
            except (Unavailable, ResourceExhausted) as error:
                failure = failure or error
            else:
                connections.remove(connection)
                return connection, info, opened.session
        assert failure is not None, "a name has an address"
        raise failure
    finally:
        for connection in connections:
            connection.close()


def _greet(connection: Connection) -> admin_pb2.GetServerInfoResponse:
    try:
        info: admin_pb2.GetServerInfoResponse = connection.call(
            connection.admin.GetServerInfo, admin_pb2.GetServerInfoRequest()
        )
        return info
    except Unavailable as error:
        if error.reason != UNREACHABLE:
            raise
        address = connection.address
        if complaint := connection.credentials.complaint(address):
            raise Unavailable(
                f"cannot connect to {address}: {complaint}",
                reason="TLS_HANDSHAKE_FAILED",
            ) from None
        raise Unavailable(
            f"no tensord server answers at {address} ({error}). Start one with "
            f"`tensord --listen={address}`, name another as the address or in "
            "$TENSORD_ADDRESS, or run a private one for as long as it is needed: "
            "`with tensord.serve() as address:`",
            reason=UNREACHABLE,
        ) from None
