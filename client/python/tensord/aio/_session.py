"""Sessions with a server, for asyncio."""

from __future__ import annotations

import asyncio
import datetime
import os
from collections.abc import Awaitable, Generator, Iterable, Sequence
from typing import Any

import numpy.typing as npt

from tensord._arguments import check_timeout
from tensord._arrays import array_of
from tensord._credentials import Given
from tensord._handle import Held
from tensord._messages import from_message
from tensord._planning import Explainer, Preparer
from tensord._program_operations import After, ProgramCall
from tensord._program_reports import ProgramExplanation
from tensord._session_base import SessionBase
from tensord._session_link import open_session
from tensord._settings import Settings
from tensord._shared_memory import transport_of
from tensord._shortcuts import Request
from tensord._specs import TensorSpec, packed_spec
from tensord.aio._operator import Operator
from tensord.aio._program import Program
from tensord.aio._session_link import AwaitedLink
from tensord.aio._tensor import RemoteTensor
from tensord.reports import Explanation, SessionInfo
from tensord.v1 import program_pb2, session_pb2, tensor_pb2


def connect(
    address: str | None = None,
    *,
    timeout: float | None = None,
    job: str = "",
    lease: float | datetime.timedelta | None = None,
    quota_bytes: int = 0,
    device: str = "",
    priority: int = 0,
    ca: str | os.PathLike[str] | bool | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    transport: str | None = None,
) -> Connecting:
    """Opens a session; arguments are those of `tensord.connect`.

    >>> async with tensord.aio.connect("localhost:8470") as session:
    ...     a = await session.upload(np.random.rand(500, 40, 60))

    Returns:
        What `async with` or `await` makes a Session of.
    """
    transport = transport_of(transport)
    given = Given(ca, cert, key, token, token_file)
    return Connecting(
        (address, timeout, job, lease, quota_bytes, device, priority, given), transport
    )


class Connecting:
    """A session that is not open yet."""

    def __init__(self, arguments: tuple[Any, ...], transport: str) -> None:
        """Use `connect`."""
        self._arguments = arguments
        self._transport = transport
        self._session: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return self._open().__await__()

    async def __aenter__(self) -> Session:
        self._session = await self._open()
        return self._session

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def _open(self) -> Session:
        opened = await asyncio.to_thread(open_session, *self._arguments)
        session = Session(AwaitedLink(*opened, transport=self._transport))
        if self._transport == "shm":
            try:
                await asyncio.to_thread(session.link.memory.check)
            except BaseException:
                await session.close()
                raise
        return session


class Session(
    SessionBase[
        Awaitable[RemoteTensor],
        Awaitable[Any],
        Awaitable[tuple[RemoteTensor, RemoteTensor]],
    ]
):
    """A session with a server, for asyncio; use it within one event loop.

    The operations are those of `tensord.Session`, and return what is to be awaited.
    Operations that are awaited together, by `asyncio.gather`, are on their way together.

    Attributes:
        name: Its name on the wire, `sessions/{session}`.
        device: The device that its operations run on.
        link: What ties it, and all that it hands out, to the server.
    """

    link: AwaitedLink
    _tensor_class = RemoteTensor

    async def upload(
        self,
        array: npt.ArrayLike,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """Uploads an array, as `tensord.Session.upload`."""
        source = array_of(array)
        spec = packed_spec(source)
        message = await self.link.upload(source, spec, name, timeout)
        return RemoteTensor(self, message, owned=not name)

    async def create(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """Creates a tensor without contents, as `tensord.Session.create`."""
        message = await self.link.create(TensorSpec(shape, dtype), name, timeout)
        return RemoteTensor(self, message, owned=not name)

    async def tensor(self, name: str) -> RemoteTensor:
        """Returns the tensor of a name.

        Args:
            name: As given at creation, or in full.

        Raises:
            NotFound: The session has none of that name.
        """
        full_name = self.link.full_name("tensor", name)
        message = await self.link.describe(full_name)
        return RemoteTensor(self, message, owned=False)

    async def open_shared(
        self, share: str, name: str | None = None, timeout: float | None = None
    ) -> RemoteTensor:
        """Returns a tensor that is shared, as `tensord.Session.open_shared`."""
        request = tensor_pb2.OpenSharedTensorRequest(
            session=self.name, share=share, tensor_id=name or ""
        )
        method = self.link.stubs.tensor.OpenSharedTensor
        response = await self.link.call(method, request, timeout)
        return RemoteTensor(self, response.tensor, owned=not name)

    async def delete(
        self, tensors: Iterable[RemoteTensor | str], timeout: float | None = None
    ) -> int:
        """Deletes tensors in one call, as `tensord.Session.delete`."""
        check_timeout(timeout)
        count = 0
        for call in self.link.deletions(self.link.stubs, tensors):
            count += (await self.link.call(*call, timeout)).deleted_count
        return count

    @property
    def explain(
        self,
    ) -> Explainer[Awaitable[Explanation], Awaitable[ProgramExplanation]]:
        """The same operations and programs, explained instead of executed."""
        return Explainer(self)

    @property
    def operator(self) -> Operator:
        """What operators see of all sessions, and have the server do.

        >>> (await session.operator.trim()).heap_bytes
        """
        return Operator(self, self.link)

    def program(
        self, notation: str | Sequence[Sequence[int]], *operands: Any, **named: Any
    ) -> Awaitable[Program]:
        """Prepares a program, as `tensord.Session.program`."""
        return _Planner(self).program(notation, *operands, **named)

    async def describe(self) -> SessionInfo:
        """Returns what the session is and uses as of now."""
        request = session_pb2.DescribeSessionRequest(session=self.name)
        response = await self.link.call(
            self.link.stubs.session.DescribeSession, request
        )
        return from_message(SessionInfo, response.session)

    async def close(self, timeout: float | None = None) -> None:
        """Closes the session; its tensors are deleted. A second time does nothing.

        Args:
            timeout: Most seconds to wait; None for the default deadline.
        """
        check_timeout(timeout)
        self._stop()
        wait = self.link.connection.timeout if timeout is None else timeout
        await asyncio.to_thread(self.link.keeper.join, wait)
        await self.link.close()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"aio.Session({self.link.connection.address!r}, device={self.device!r})"

    def _einsum_again(
        self, subscripts: Any, operands: tuple[Any, ...]
    ) -> Awaitable[RemoteTensor] | None:
        request = self._shortcuts.find(subscripts, operands)
        return None if request is None else self._ask_again(request, operands)

    async def _ask_again(
        self, request: Request, operands: tuple[Any, ...]
    ) -> RemoteTensor:
        method = self.link.stubs.encoded[request.operation]
        message = request.message(operands)
        response = await self.link.call_allocating(method, message, None)
        return request.result(self, RemoteTensor, response.result, message)

    async def _perform_after(
        self,
        spec: program_pb2.ProgramSpec,
        call: ProgramCall,
        held: Held,
        after: After,
    ) -> RemoteTensor:
        result = await self._perform_program(spec, call, held)
        return await self._add_to(result, after)


class _Planner(Preparer[Any, Awaitable[Program]]):
    """Prepares programs."""

    link: AwaitedLink
    _program_class = Program

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: Held
    ) -> Any:
        raise NotImplementedError
