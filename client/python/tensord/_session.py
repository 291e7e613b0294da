"""Sessions with a server."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy.typing as npt

from tensord._arguments import check_timeout
from tensord._arrays import array_of
from tensord._blocking_link import BlockingLink
from tensord._execution import FactorExecutor
from tensord._handle import Held
from tensord._messages import from_message
from tensord._pipeline import Pipeline
from tensord._operator import Operator
from tensord._plan_cache import PlanCache
from tensord._planning import Explainer, Planner
from tensord._plans import Plan
from tensord._program_operations import After, ProgramCall
from tensord._program_reports import ProgramExplanation
from tensord._programs import Program, Results
from tensord._session_base import SessionBase
from tensord._specs import TensorSpec, packed_spec
from tensord._tensor import RemoteTensor
from tensord.reports import Explanation, Kernel, ServerStats, SessionInfo
from tensord.v1 import admin_pb2, plan_pb2, program_pb2, session_pb2, tensor_pb2

_open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


class Session(
    FactorExecutor[RemoteTensor, tuple[RemoteTensor, ...]],
    SessionBase[RemoteTensor, Results, tuple[RemoteTensor, RemoteTensor]],
):
    """A session with a server: owns tensors, plans and programs, runs operations.

    Results stay on the server as RemoteTensors. Leaving the context, or `close()`,
    deletes all that it owns. Safe for use by many threads.

    Attributes:
        name: Its name on the wire, `sessions/{session}`.
        device: The device that its operations run on.
        link: What ties it, and all that it hands out, to the server.
    """

    link: BlockingLink
    _tensor_class = RemoteTensor

    def __init__(self, link: BlockingLink) -> None:
        """Use `tensord.connect`."""
        super().__init__(link)
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
        spec = packed_spec(source)
        message = self.link.upload(source, spec, name, timeout)
        return self._told(message, owned=not name)

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
        message = self.link.create(TensorSpec(shape, dtype), name, timeout)
        return self._told(message, owned=not name)

    def tensor(self, name: str) -> RemoteTensor:
        """Returns the tensor of a name.

        Args:
            name: As given at creation, or in full.

        Raises:
            NotFound: The session has none of that name.
        """
        message = self.link.describe(self.link.full_name("tensor", name))
        return self._told(message, owned=False)

    def open_shared(
        self, share: str, name: str | None = None, timeout: float | None = None
    ) -> RemoteTensor:
        """Returns a tensor that another session shares, to be read like a view.

        Args:
            share: What `RemoteTensor.share` returned.
            name: As for `upload`.
            timeout: Deadline in seconds; None for the default.

        Raises:
            NotFound: There is no such share, or not for this tenant
                (`SHARE_NOT_FOUND`).
            InvalidArgument: It is on another device (`DEVICE_DIFFERS`).
        """
        request = tensor_pb2.OpenSharedTensorRequest(
            session=self.name, share=share, tensor_id=name or ""
        )
        method = self.link.connection.tensor.OpenSharedTensor
        response = self.link.call(method, request, timeout)
        return self._told(response.tensor, owned=not name)

    def list(self) -> tuple[RemoteTensor, ...]:
        """Returns all tensors of the session in the order of their names."""
        messages = self.link.list("tensor")
        return tuple(self._told(message, owned=False) for message in messages)

    def delete(
        self, tensors: Iterable[RemoteTensor | str], timeout: float | None = None
    ) -> int:
        """Deletes tensors, all in one call unless they are thousands.

        Args:
            tensors: RemoteTensors of the session, or their names.
            timeout: Deadline of a call in seconds; None for the default.

        Returns:
            How many were deleted.

        Raises:
            NotFound: One of them was deleted before; others of its call are gone.
        """
        check_timeout(timeout)
        calls = self.link.deletions(self.link.connection, tensors)
        return sum(self.link.call(*call, timeout).deleted_count for call in calls)

    # These refer to the session. It makes them anew each time: if it kept them, only
    # the garbage collector could free it.

    @property
    def explain(self) -> Explainer[Explanation, ProgramExplanation]:
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
        return PlanCache(self, self.link)

    @property
    def operator(self) -> Operator:
        """What operators see of all sessions, and have the server do.

        >>> session.operator.trim().heap_bytes
        """
        return Operator(self, self.link)

    def get_plan(self, name: str) -> Plan:
        """Returns the plan of a name.

        Args:
            name: As given at creation, or in full.

        Raises:
            NotFound: The session has none of that name.
        """
        message = self.link.describe(self.link.full_name("plan", name))
        return Plan(self, message, owned=False)

    def plans(self) -> tuple[Plan, ...]:
        """Returns all plans of the session in the order of their names."""
        messages = self.link.list("plan")
        return tuple(Plan(self, message, owned=False) for message in messages)

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
            ResourceExhausted: It has as many as it may have (`TOO_MANY_PROGRAMS`), or
                its plans and programs take too much memory (`PREPARED_TOO_LARGE`).
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
        message = self.link.describe(self.link.full_name("program", name))
        return Program(self, message, owned=False)

    def programs(self) -> tuple[Program, ...]:
        """Returns all programs of the session in the order of their names."""
        messages = self.link.list("program")
        return tuple(Program(self, message, owned=False) for message in messages)

    def kernels(self, device: str | None = None) -> tuple[Kernel, ...]:
        """Returns the kernels of a device in the order in which they are asked.

        Args:
            device: E.g. `cpu:0`; None for that of the session.

        Raises:
            InvalidArgument: The server has no such device (`DEVICE_NOT_FOUND`).
        """
        request = plan_pb2.ListKernelsRequest(device=device or self.device)
        response = self.link.call(self.link.connection.plan.ListKernels, request)
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

    def stats(self) -> ServerStats:
        """Returns the server's counters, and its memory and queues as of now."""
        request = admin_pb2.GetServerStatsRequest()
        stats = self.link.call(self.link.connection.admin.GetServerStats, request)
        return from_message(ServerStats, stats)

    def describe(self) -> SessionInfo:
        """Returns what the session is and uses as of now.

        Raises:
            NotFound: Its lease ran out.
        """
        request = session_pb2.DescribeSessionRequest(session=self.name)
        response = self.link.call(self.link.connection.session.DescribeSession, request)
        return from_message(SessionInfo, response.session)

    def close(self, timeout: float | None = None) -> None:
        """Closes the session; its tensors are deleted. A second time does nothing.

        Args:
            timeout: Most seconds to wait; None for the default deadline.
        """
        check_timeout(timeout)
        _open_sessions.discard(self)
        self._stop()
        default = self.link.connection.timeout
        self.link.keeper.join(default if timeout is None else timeout)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.link.connection.address!r}, device={self.device!r})"

    def _told(self, message: tensor_pb2.Tensor, *, owned: bool) -> RemoteTensor:
        """Returns the tensor that a message tells of."""
        tensor_class: Any = self._tensor_class
        tensor: RemoteTensor = tensor_class(self, message, owned=owned)
        return tensor

    def _einsum_again(
        self, subscripts: Any, operands: tuple[Any, ...]
    ) -> RemoteTensor | None:
        request = self._shortcuts.find(subscripts, operands)
        if request is None:
            return None
        method: Any = self.link.connection.encoded[request.operation]
        message = request.message(operands)
        response = self.link.call_allocating(method, message, None)
        return request.result(self, RemoteTensor, response.result, message)

    def _perform_after(
        self,
        spec: program_pb2.ProgramSpec,
        call: ProgramCall,
        held: Held,
        after: After,
    ) -> RemoteTensor:
        return self._add_to(self._perform_program(spec, call, held), after)


@atexit.register
def _close_open_sessions() -> None:
    for session in list(_open_sessions):
        session.close(timeout=1.0)
