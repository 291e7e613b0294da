"""Sessions with a server."""

from __future__ import annotations

import atexit
import datetime
import gc
import os
import types
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arguments import check_address, check_timeout, lease_value
from tensord._arrays import array_of
from tensord._connection import Connection, Method
from tensord.errors import (
    UNREACHABLE,
    Error,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from tensord._execution import Executor
from tensord._keeper import Keeper
from tensord._notation import point_out
from tensord._operations import Settings
from tensord._pipeline import Pipeline
from tensord._plan_cache import PlanCache
from tensord._planning import Explainer, Planner
from tensord._plans import Plan
from tensord._program_operations import After, ProgramCall, ProgramOperations
from tensord._programs import Program, Results, results_of
from tensord.reports import (
    ExecutionReport,
    Kernel,
    ServerInfo,
    ServerStats,
    SessionInfo,
    from_message,
)
from tensord._specs import TensorSpec
from tensord._tensor import RemoteTensor
from tensord._transfer import Transfers
from tensord.v1 import (
    admin_pb2,
    compute_pb2,
    plan_pb2,
    program_pb2,
    session_pb2,
    tensor_pb2,
)

DEFAULT_ADDRESS = "localhost:8470"
_DEFAULT_SECONDS = 60.0

_open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def connect(
    address: str | None = None,
    *,
    timeout: float | None = None,
    job: str = "",
    lease: float | datetime.timedelta | None = None,
    quota_bytes: int = 0,
    device: str = "",
) -> Session:
    """Opens a session.

    >>> with tensord.connect("localhost:8470") as session:
    ...     a = session.upload(np.random.rand(500, 40, 60))

    Args:
        address: `host:port` or `unix:/path`; by default $TENSORD_ADDRESS, or else
            localhost:8470.
        timeout: Default deadline of every call, in seconds; None for 60, `math.inf`
            for none.
        job: Who asks, for the server's logs and statistics.
        lease: Seconds that the session outlives this program, should it be killed;
            by default the server's choice. A thread renews it meanwhile.
        quota_bytes: Most device memory that the session may hold; 0 for the server's
            default.
        device: E.g. `cpu:0`; by default the server's first.

    Raises:
        Unavailable: There is no server, or it is shutting down.
        ResourceExhausted: The server has as many sessions as it takes.
        InvalidArgument: It knows no such device, the lease is out of bounds, the
            address is malformed (`ADDRESS_MALFORMED`) or `timeout` is not positive.
    """
    return Session(*open_session(address, timeout, job, lease, quota_bytes, device))


def open_session(
    address: str | None,
    timeout: float | None,
    job: str,
    lease: float | datetime.timedelta | None,
    quota_bytes: int,
    device: str,
) -> tuple[Connection, ServerInfo, session_pb2.Session]:
    """Does what `connect` says, and returns what a session is made of."""
    address = address or os.environ.get("TENSORD_ADDRESS") or DEFAULT_ADDRESS
    check_address(address)
    check_timeout(timeout)
    request = session_pb2.OpenSessionRequest(
        job=job, memory_quota_bytes=quota_bytes, device=device
    )
    if lease is not None:
        request.lease.FromTimedelta(lease_value(lease))
    connection = Connection(address, _DEFAULT_SECONDS if timeout is None else timeout)
    try:
        info = from_message(ServerInfo, _greet(connection))
        opened = connection.call(connection.session.OpenSession, request)
    except BaseException:
        connection.close()
        raise
    return connection, info, opened.session


def _greet(connection: Connection) -> admin_pb2.GetServerInfoResponse:
    try:
        return connection.call(
            connection.admin.GetServerInfo, admin_pb2.GetServerInfoRequest()
        )
    except Unavailable as error:
        if error.reason != UNREACHABLE:
            raise
        address = connection.address
        raise Unavailable(
            f"no tensord server answers at {address} ({error}). Start one with "
            f"`tensord --listen={address}`, name another as the address or in "
            "$TENSORD_ADDRESS, or run a private one for as long as it is needed: "
            "`with tensord.serve() as address:`",
            reason=UNREACHABLE,
        ) from None


class Session(Executor[RemoteTensor], ProgramOperations[RemoteTensor, Results]):
    """A session with a server: owns tensors, plans and programs, runs operations.

    Results stay on the server as RemoteTensors. Leaving the context, or `close()`,
    deletes all that it owns. Safe for use by many threads.

    Attributes:
        name: Its name on the wire, `sessions/{session}`.
        device: The device that its operations run on.
    """

    def __init__(
        self, connection: Connection, info: ServerInfo, opened: session_pb2.Session
    ) -> None:
        """Use `tensord.connect`."""
        self.name: str = opened.name
        self.device: str = opened.device
        self._info = info
        self._connection = connection
        self._transfers = Transfers(connection, info.limits.max_chunk_bytes)
        lease_seconds = opened.lease.seconds + opened.lease.nanos / 1e9
        self._keeper = Keeper(connection, self.name, lease_seconds)
        self._finalizer = weakref.finalize(self, self._keeper.stop)
        self._finalizer.atexit = False
        _open_sessions.add(self)

    def upload(
        self,
        array: npt.ArrayLike,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """Uploads an array.

        Args:
            array: Any shape, strides and byte order; or what has `__dlpack__`, e.g. a
                tensor of another library.
            name: 1 to 128 letters, digits, `_`, `-` or `.`; None lets the server
                choose.
            timeout: Deadline in seconds; None for the default and as long as the
                transfer takes at 8 MiB/s.

        Raises:
            AlreadyExists: The name is taken.
            ResourceExhausted: It does not fit the quota or the device.
            DataLoss: The data arrived damaged several times.
        """
        source = array_of(array)
        spec = TensorSpec(source.shape, source.dtype)
        return self._upload(source, spec, name, timeout)

    def create(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """Creates a tensor without contents, for `out=` or `RemoteTensor.write`.

        Args:
            shape: Extents.
            dtype: NumPy's dtype.
            name: As for `upload`.
            timeout: Deadline in seconds; None for the default.

        Raises:
            AlreadyExists: The name is taken.
            ResourceExhausted: It does not fit the quota or the device.
        """
        return self._create(TensorSpec(shape, dtype), name, timeout)

    def tensor(self, name: str) -> RemoteTensor:
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
        return RemoteTensor(self, self._describe_tensor(full_name), owned=False)

    def list(self) -> tuple[RemoteTensor, ...]:
        """Returns all tensors of the session in the order of their names."""
        pages = self._connection.pages(
            self._connection.tensor.ListTensors,
            tensor_pb2.ListTensorsRequest(session=self.name),
        )
        return tuple(
            RemoteTensor(self, message, owned=False)
            for page in pages
            for message in page.tensors
        )

    # These refer to the session, so it has none of them: it is to go without the
    # garbage collector.

    @property
    def explain(self) -> Explainer:
        """The same operations, explained instead of executed.

        >>> session.explain.contract(a, "ik", b, "kj", "ij").kernel
        """
        return Explainer(self)

    @property
    def plan(self) -> Planner:
        """The same operations, prepared instead of executed.

        >>> plan = session.plan.contract(a, "ik", b, "kj", "ij")
        >>> c = plan(a, b)
        """
        return Planner(self)

    @property
    def plan_cache(self) -> PlanCache:
        """What the server has learned about kernels, from all sessions.

        >>> session.plan_cache.stats().hit_count
        """
        return PlanCache(self)

    def get_plan(self, name: str) -> Plan:
        """Returns the plan of a name.

        Args:
            name: As given at creation, or in full.

        Raises:
            NotFound: The session has none of that name.
        """
        full_name = name if "/" in name else f"{self.name}/plans/{name}"
        if not full_name.startswith(f"{self.name}/"):
            raise NotFound(
                f"plan {name} is not one of {self.name}", reason="PLAN_NOT_FOUND"
            )
        request = plan_pb2.DescribePlanRequest(plan=full_name)
        response = self._connection.call(self._connection.plan.DescribePlan, request)
        return Plan(self, response.plan, owned=False)

    def plans(self) -> tuple[Plan, ...]:
        """Returns all plans of the session in the order of their names."""
        pages = self._connection.pages(
            self._connection.plan.ListPlans,
            plan_pb2.ListPlansRequest(session=self.name),
        )
        return tuple(
            Plan(self, message, owned=False) for page in pages for message in page.plans
        )

    def program(
        self,
        notation: str | Sequence[Sequence[int]],
        *operands: Any,
        constants: Iterable[str | int] = (),
        **named: Any,
    ) -> Program:
        """Prepares a program: its notation is read and its paths are found once.

        >>> program = session.program("D[a,b] := A[a,c]*B[c,b]", A=a, B=b)
        >>> d = program(A=a, B=b)
        >>> product = session.program("ij,jk,kl->il", a, b, c, optimize="optimal")
        >>> folded = session.program("ij,jk,kl->il", a, b, c, constants=[0, 1])
        >>> d = folded(c)

        Args:
            notation: Statements as `run` takes them, subscripts as `einsum`, or the
                labels of `ncon`.
            *operands: Of subscripts and labels, in their order; of statements perhaps a
                mapping from names. RemoteTensors, arrays or TensorSpecs: they say what
                those of the program will be like, nothing of them is sent or kept, but
                for constants.
            constants: Operands that are not expected to change from one run to the
                next: names of statements' operands, or places. What depends on them
                alone is computed by the first run and kept in the session's memory
                until the program is deleted; and computed again after one of them has
                changed. Runs need not name them. Arrays among them are uploaded.
            **named: Operands of statements by name, numbers among them, which are kept;
                and what `run`, `einsum` or `ncon` take besides. `name` is that of the
                program: without one, it leaves the server with its last reference.

        Raises:
            AlreadyExists: The session has a program of that name.
            ResourceExhausted: It has as many as it may have (`TOO_MANY_PROGRAMS`).
            Error: As `run`, `einsum` and `ncon`.
        """
        return Planner(self).program(notation, *operands, constants=constants, **named)

    def get_program(self, name: str) -> Program:
        """Returns the program of a name.

        Args:
            name: As given at creation, or in full.

        Raises:
            NotFound: The session has none of that name.
        """
        full_name = name if "/" in name else f"{self.name}/programs/{name}"
        if not full_name.startswith(f"{self.name}/"):
            raise NotFound(
                f"program {name} is not one of {self.name}", reason="PROGRAM_NOT_FOUND"
            )
        request = program_pb2.DescribeProgramRequest(program=full_name)
        response = self._connection.call(
            self._connection.program.DescribeProgram, request
        )
        return Program(self, response.program, owned=False)

    def programs(self) -> tuple[Program, ...]:
        """Returns all programs of the session in the order of their names."""
        pages = self._connection.pages(
            self._connection.program.ListPrograms,
            program_pb2.ListProgramsRequest(session=self.name),
        )
        return tuple(
            Program(self, message, owned=False)
            for page in pages
            for message in page.programs
        )

    def kernels(self, device: str | None = None) -> tuple[Kernel, ...]:
        """Returns the kernels of a device in the order in which they are asked.

        Args:
            device: E.g. `cpu:0`; None for that of the session.

        Raises:
            InvalidArgument: The server has no such device (`DEVICE_NOT_FOUND`).
        """
        request = plan_pb2.ListKernelsRequest(device=device or self.device)
        response = self._connection.call(self._connection.plan.ListKernels, request)
        return tuple(from_message(Kernel, kernel) for kernel in response.kernels)

    def pipeline(self, timeout: float | None = None) -> Pipeline:
        """Starts operations that do not wait for each other's responses.

        >>> with session.pipeline() as pipeline:
        ...     pipeline.contract(a, "ik", b, "kj", "ij", out=c)
        ...     pending = pipeline.reduce(c, "ij", "j")
        >>> pending.result()

        Args:
            timeout: Deadline of the whole pipeline in seconds; None for the default.
        """
        check_timeout(timeout)
        return Pipeline(self, timeout)

    def info(self) -> ServerInfo:
        """Returns the server's version, devices and limits, as of the start."""
        return self._info

    def stats(self) -> ServerStats:
        """Returns the server's counters, and its memory and queues as of now."""
        request = admin_pb2.GetServerStatsRequest()
        stats = self._connection.call(self._connection.admin.GetServerStats, request)
        return from_message(ServerStats, stats)

    def describe(self) -> SessionInfo:
        """Returns what the session is and uses as of now.

        Raises:
            NotFound: Its lease ran out.
        """
        request = session_pb2.DescribeSessionRequest(session=self.name)
        response = self._connection.call(
            self._connection.session.DescribeSession, request
        )
        return from_message(SessionInfo, response.session)

    def close(self, timeout: float | None = None) -> None:
        """Closes the session; its tensors are deleted. A second time does nothing.

        Args:
            timeout: Most seconds to wait; None for the default deadline.
        """
        check_timeout(timeout)
        _open_sessions.discard(self)
        self._finalizer.detach()
        self._keeper.stop()
        self._keeper.join(self._connection.timeout if timeout is None else timeout)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self._connection.address!r}, device={self.device!r})"

    @property
    def _session_name(self) -> str:
        return self.name

    @property
    def _max_inline_bytes(self) -> int:
        return self._info.limits.max_inline_bytes

    def _stage(
        self, array: np.ndarray, spec: TensorSpec, timeout: float | None
    ) -> RemoteTensor:
        return self._upload(array, spec, None, timeout)

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: list[Any]
    ) -> RemoteTensor:
        # ExecutePlan of execute_plan.
        method = getattr(self._connection.compute, operation.title().replace("_", ""))
        result: compute_pb2.Result
        result = self._call_allocating(method, request, settings.timeout).result
        out = settings.out
        if out is None:
            out = RemoteTensor(self, result.tensor, owned=not settings.name)
        out.report = from_message(ExecutionReport, result.report)
        return out

    def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: list[Any]
    ) -> Results:
        request = program_pb2.ExecuteProgramRequest(session=self.name, spec=spec)
        return self._execute_program(request, call, held)

    def _perform_after(
        self,
        spec: program_pb2.ProgramSpec,
        call: ProgramCall,
        held: list[Any],
        after: After,
    ) -> RemoteTensor:
        return self._add_to(self._perform_program(spec, call, held), after)

    def _execute_program(
        self,
        request: program_pb2.ExecuteProgramRequest,
        call: ProgramCall,
        held: list[Any],
    ) -> Results:
        """Runs a program, and returns its results as `run` says."""
        try:
            response = self._call_allocating(
                self._connection.program.ExecuteProgram, request, call.timeout
            )
        except Error as error:
            point_out(error, call.text, call.costs)
            raise
        return results_of(self, RemoteTensor, response, call)

    def _create(
        self, spec: TensorSpec, name: str | None, timeout: float | None
    ) -> RemoteTensor:
        """Creates a tensor without contents."""
        request = tensor_pb2.CreateTensorRequest(
            session=self.name,
            tensor_id=name or "",
            element_type=dtypes.element_type_of(spec.dtype),
            layout=spec.layout_message(),
        )
        response = self._call_allocating(
            self._connection.tensor.CreateTensor, request, timeout
        )
        return RemoteTensor(self, response.tensor, owned=not name)

    def _upload(
        self,
        array: np.ndarray,
        spec: TensorSpec,
        name: str | None,
        timeout: float | None,
    ) -> RemoteTensor:
        """Creates a tensor with the contents of an array that `spec` fits."""
        data = spec.laid_out(array)
        tensor = self._create(spec, name, timeout)
        try:
            self._transfers.upload(tensor.full_name, data, timeout, empty=True)
        except BaseException:
            tensor._discard()
            raise
        return tensor

    def _describe_tensor(self, full_name: str) -> tensor_pb2.Tensor:
        request = tensor_pb2.DescribeTensorRequest(tensor=full_name)
        return self._connection.call(
            self._connection.tensor.DescribeTensor, request
        ).tensor

    def _call_allocating(
        self, method: Method[Any], request: Any, timeout: float | None
    ) -> Any:
        """Makes a call; when memory lacks, first lets go what nobody holds."""
        check_timeout(timeout)
        deleted_before = self._keeper.deleted_count
        try:
            return self._connection.call(method, request, timeout)
        except ResourceExhausted:
            gc.collect()
            self._keeper.flush()
            if self._keeper.deleted_count == deleted_before:
                raise
        return self._connection.call(method, request, timeout)


@atexit.register
def _close_open_sessions() -> None:
    for session in list(_open_sessions):
        session.close(timeout=1.0)
