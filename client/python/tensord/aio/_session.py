"""Sessions with a server, for asyncio."""

from __future__ import annotations

import asyncio
import datetime
import gc
import types
import uuid
import weakref
from collections.abc import Awaitable, Generator, Sequence
from typing import Any

import grpc
import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord.aio._program import Program
from tensord.aio._tensor import RemoteTensor
from tensord._arguments import check_timeout
from tensord._arrays import array_of
from tensord._connection import CHANNEL_OPTIONS, Connection
from tensord.errors import Error, NotFound, ResourceExhausted
from tensord._execution import Sender
from tensord._keeper import Keeper
from tensord._notation import point_out
from tensord._operations import Settings
from tensord._planning import Describer, Preparer, creation, explanation_of
from tensord._program_operations import After, ProgramCall, ProgramOperations
from tensord._program_reports import ProgramExplanation
from tensord._programs import results_of
from tensord.reports import (
    ExecutionReport,
    Explanation,
    ServerInfo,
    SessionInfo,
    from_message,
)
from tensord._session import open_session
from tensord._specs import TensorSpec
from tensord._tensor_handle import TensorHandle
from tensord._transfer import Transfers
from tensord.v1 import (
    compute_pb2_grpc,
    plan_pb2,
    plan_pb2_grpc,
    program_pb2,
    program_pb2_grpc,
    session_pb2,
    session_pb2_grpc,
    tensor_pb2,
    tensor_pb2_grpc,
)

_STUBS = {
    "compute": compute_pb2_grpc.ComputeServiceStub,
    "plan": plan_pb2_grpc.PlanServiceStub,
    "program": program_pb2_grpc.ProgramServiceStub,
    "session": session_pb2_grpc.SessionServiceStub,
    "tensor": tensor_pb2_grpc.TensorServiceStub,
}


def connect(
    address: str | None = None,
    *,
    timeout: float | None = None,
    job: str = "",
    lease: float | datetime.timedelta | None = None,
    quota_bytes: int = 0,
    device: str = "",
) -> Connecting:
    """Opens a session; arguments are those of `tensord.connect`.

    >>> async with tensord.aio.connect("localhost:8470") as session:
    ...     a = await session.upload(np.random.rand(500, 40, 60))

    Returns:
        What `async with` or `await` makes a Session of.
    """
    return Connecting((address, timeout, job, lease, quota_bytes, device))


class Connecting:
    """A session that is not open yet."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        """Use `connect`."""
        self._arguments = arguments
        self._session: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return self._open().__await__()

    async def __aenter__(self) -> Session:
        self._session = await self._open()
        return self._session

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def _open(self) -> Session:
        return Session(*await asyncio.to_thread(open_session, *self._arguments))


class Session(
    Sender[Awaitable[RemoteTensor]],
    ProgramOperations[Awaitable[RemoteTensor], Awaitable[Any]],
):
    """A session with a server, for asyncio; use it within one event loop.

    The operations are those of `tensord.Session`, and return what is to be awaited.
    Operations that are awaited together, by `asyncio.gather`, are on their way together.

    Attributes:
        name: Its name on the wire, `sessions/{session}`.
        device: The device that its operations run on.
    """

    def __init__(
        self, connection: Connection, info: ServerInfo, opened: session_pb2.Session
    ) -> None:
        """Use `tensord.aio.connect`."""
        self.name: str = opened.name
        self.device: str = opened.device
        self._info = info
        self._connection = connection
        self._transfers = Transfers(connection, info.limits.max_chunk_bytes)
        lease_seconds = opened.lease.seconds + opened.lease.nanos / 1e9
        self._keeper = Keeper(connection, self.name, lease_seconds)
        self._finalizer = weakref.finalize(self, self._keeper.stop)
        self._channel = grpc.aio.insecure_channel(
            connection.address, options=CHANNEL_OPTIONS
        )
        self._stubs: dict[str, Any] = {
            name: stub(self._channel) for name, stub in _STUBS.items()
        }

    async def upload(
        self,
        array: npt.ArrayLike,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """Uploads an array, as `tensord.Session.upload`."""
        source = array_of(array)
        spec = TensorSpec(source.shape, source.dtype)
        data = spec.laid_out(source)
        tensor = await self._create(spec, name, timeout)
        try:
            await self._send(tensor.full_name, data, timeout, True)
        except BaseException:
            tensor._discard()
            raise
        return tensor

    async def create(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """Creates a tensor without contents, as `tensord.Session.create`."""
        return await self._create(TensorSpec(shape, dtype), name, timeout)

    async def tensor(self, name: str) -> RemoteTensor:
        """Returns the tensor of a name.

        Args:
            name: As given at creation, or in full.

        Raises:
            NotFound: The session has none of that name.
        """
        full_name = name if "/" in name else f"{self.name}/tensors/{name}"
        if not full_name.startswith(f"{self.name}/"):
            raise NotFound(
                f"tensor {name} is not one of {self.name}", reason="TENSOR_NOT_FOUND"
            )
        return RemoteTensor(self, await self._describe_tensor(full_name), owned=False)

    @property
    def explain(self) -> Explainer:
        """The same operations and programs, explained instead of executed."""
        return Explainer(self)

    def program(
        self, notation: str | Sequence[Sequence[int]], *operands: Any, **named: Any
    ) -> Awaitable[Program]:
        """Prepares a program, as `tensord.Session.program`."""
        return _Planner(self).program(notation, *operands, **named)

    def info(self) -> ServerInfo:
        """Returns the server's version, devices and limits, as of the start."""
        return self._info

    async def describe(self) -> SessionInfo:
        """Returns what the session is and uses as of now."""
        request = session_pb2.DescribeSessionRequest(session=self.name)
        response = await self._call("session", "DescribeSession", request)
        return from_message(SessionInfo, response.session)

    async def close(self, timeout: float | None = None) -> None:
        """Closes the session; its tensors are deleted. A second time does nothing.

        Args:
            timeout: Most seconds to wait; None for the default deadline.
        """
        check_timeout(timeout)
        self._finalizer.detach()
        self._keeper.stop()
        wait = self._connection.timeout if timeout is None else timeout
        await asyncio.to_thread(self._keeper.join, wait)
        await self._channel.close()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"aio.Session({self._connection.address!r}, device={self.device!r})"

    @property
    def _session_name(self) -> str:
        return self.name

    @property
    def _max_inline_bytes(self) -> int:
        return self._info.limits.max_inline_bytes

    def _stage(
        self, array: np.ndarray, spec: TensorSpec, timeout: float | None
    ) -> _Staged:
        return _Staged(self, array, spec, timeout)

    async def _perform(
        self, operation: str, request: Any, settings: Settings, held: list[Any]
    ) -> RemoteTensor:
        await _place(held)
        method = operation.title().replace("_", "")
        response = await self._call_allocating(
            "compute", method, request, settings.timeout
        )
        out: Any = settings.out
        if out is None:
            out = RemoteTensor(self, response.result.tensor, owned=not settings.name)
        out.report = from_message(ExecutionReport, response.result.report)
        return out

    async def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: list[Any]
    ) -> Any:
        request = program_pb2.ExecuteProgramRequest(session=self.name, spec=spec)
        return await self._execute_program(request, call, held)

    async def _perform_after(
        self,
        spec: program_pb2.ProgramSpec,
        call: ProgramCall,
        held: list[Any],
        after: After,
    ) -> RemoteTensor:
        result = await self._perform_program(spec, call, held)
        return await self._add_to(result, after)

    async def _execute_program(
        self,
        request: program_pb2.ExecuteProgramRequest,
        call: ProgramCall,
        held: list[Any],
    ) -> Any:
        await _place(held)
        try:
            response = await self._call_allocating(
                "program", "ExecuteProgram", request, call.timeout
            )
        except Error as error:
            point_out(error, call.text, call.costs)
            raise
        return results_of(self, RemoteTensor, response, call)

    async def _create(
        self, spec: TensorSpec, name: str | None, timeout: float | None
    ) -> RemoteTensor:
        request = tensor_pb2.CreateTensorRequest(
            session=self.name,
            tensor_id=name or "",
            element_type=dtypes.element_type_of(spec.dtype),
            layout=spec.layout_message(),
        )
        response = await self._call_allocating(
            "tensor", "CreateTensor", request, timeout
        )
        return RemoteTensor(self, response.tensor, owned=not name)

    async def _send(
        self, full_name: str, data: np.ndarray, timeout: float | None, empty: bool
    ) -> None:
        """Fills a tensor."""
        upload = self._transfers.upload
        await asyncio.to_thread(upload, full_name, data, timeout, empty=empty)

    async def _describe_tensor(self, full_name: str) -> tensor_pb2.Tensor:
        request = tensor_pb2.DescribeTensorRequest(tensor=full_name)
        return (await self._call("tensor", "DescribeTensor", request)).tensor

    async def _call(
        self, service: str, method: str, request: Any, timeout: float | None = None
    ) -> Any:
        """Makes one unary call.

        Raises:
            Error: As the status says.
        """
        check_timeout(timeout)
        self._connection.check_open()
        deadline = self._connection.deadline(timeout)
        try:
            return await getattr(self._stubs[service], method)(
                request, timeout=deadline
            )
        except grpc.RpcError as error:
            raise self._connection.translated(error, method, deadline) from None

    async def _call_allocating(
        self, service: str, method: str, request: Any, timeout: float | None
    ) -> Any:
        """Makes a call; when memory lacks, first lets go what nobody holds."""
        deleted_before = self._keeper.deleted_count
        try:
            return await self._call(service, method, request, timeout)
        except ResourceExhausted:
            gc.collect()
            await asyncio.to_thread(self._keeper.flush)
            if self._keeper.deleted_count == deleted_before:
                raise
        return await self._call(service, method, request, timeout)


class Explainer(Describer[Awaitable[Explanation], Awaitable[ProgramExplanation]]):
    """The operations of a session, explained instead of executed."""

    async def _perform(
        self, operation: str, request: Any, settings: Settings, held: list[Any]
    ) -> Explanation:
        explain = plan_pb2.ExplainPlanRequest(**{operation: request})
        response = await self._session._call(
            "plan", "ExplainPlan", explain, settings.timeout
        )
        return explanation_of(response, request, settings, held)

    async def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: list[Any]
    ) -> ProgramExplanation:
        request = program_pb2.ExplainProgramRequest(
            session=self._session.name, spec=spec
        )
        try:
            response = await self._session._call(
                "program", "ExplainProgram", request, call.timeout
            )
        except Error as error:
            point_out(error, call.text, call.costs)
            raise
        return from_message(ProgramExplanation, response.explanation)


class _Planner(Preparer[Any, Awaitable[Program]]):
    """Prepares programs."""

    async def _perform(
        self, operation: str, request: Any, settings: Settings, held: list[Any]
    ) -> Any:
        raise NotImplementedError

    async def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: list[Any]
    ) -> Program:
        session = self._session
        await _place(held)
        create = creation(session.name, spec, call)
        try:
            response = await session._call_allocating(
                "program", "CreateProgram", create, call.timeout
            )
        except Error as error:
            point_out(error, call.text, call.costs)
            raise
        return Program(session, response.program, owned=not call.name)


class _Staged(TensorHandle):
    """A temporary tensor that gets its contents before the request that names it."""

    def __init__(
        self,
        session: Session,
        array: np.ndarray,
        spec: TensorSpec,
        timeout: float | None,
    ) -> None:
        self.session = session
        self.name = f"staged-{uuid.uuid4().hex}"
        self.full_name = f"{session.name}/tensors/{self.name}"
        self._contents = (array, spec, timeout)
        self._finalizer = None

    async def place(self) -> None:
        """Creates it; from here on it leaves the server with this object."""
        array, spec, timeout = self._contents
        discard = self.session._keeper.discard
        self._finalizer = weakref.finalize(self, discard, self.full_name)
        self._finalizer.atexit = False
        await self.session._create(spec, self.name, timeout)
        data = spec.laid_out(array)
        await self.session._send(self.full_name, data, timeout, True)


async def _place(held: list[Any]) -> None:
    """Fills the temporary tensors among those that a request needs."""
    for each in held:
        if isinstance(each, _Staged):
            await each.place()
