"""Operations that the server has prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypedDict

from tensord._blocking_link import BlockingHandle, BlockingLink
from tensord._handle import SessionHandle
from tensord._messages import from_message
from tensord._specs import TensorSpec, spec_of_message
from tensord._tensor import RemoteTensor
from tensord._tensor_handle import Factor, TensorHandle, TensorLike
from tensord.reports import KernelCandidate, PlanInfo
from tensord.v1 import plan_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OPERANDS = ("a", "b", "c", "d")


class PlanOptions(TypedDict, total=False):
    """What `Plan.execute` takes by name."""

    a: TensorLike | None
    b: TensorLike | None
    c: TensorLike | None
    out: TensorHandle | None
    name: str | None
    alpha: Factor | None
    beta: Factor | None
    gamma: Factor | None
    timeout: float | None


class FactorOptions(TypedDict, total=False):
    """What `Plan.factorize` takes by name."""

    out: tuple[TensorHandle | None, ...] | None
    name: tuple[str | None, ...] | None
    timeout: float | None


class PlanSession(Protocol):
    """What a plan asks of its session."""

    @property
    def name(self) -> str: ...

    @property
    def link(self) -> BlockingLink: ...

    def execute(
        self,
        plan: Plan,
        *operands: TensorLike | None,
        **options: Unpack[PlanOptions],
    ) -> RemoteTensor: ...

    def execute_factorization(
        self,
        plan: Plan,
        a: TensorLike,
        **options: Unpack[FactorOptions],
    ) -> tuple[RemoteTensor, ...]: ...


class Plan(SessionHandle, BlockingHandle):
    """An operation that is validated and has its kernel, to be run on many tensors.

    >>> plan = session.plan.contract(a, "ik", b, "kj", "ij", selection="incremental")
    >>> c = plan(a, b)

    It runs on operands that have the dtype, shape and strides of those that it was made
    for; it keeps none of these. A plan that the server named is deleted after the last
    reference to this object. One that the user named stays until it is deleted or its
    session ends.

    Attributes:
        session: The session that it belongs to.
        link: What ties that session to the server.
        name: Its name within the session, as `Session.get_plan` takes it.
        full_name: Its name on the wire, `sessions/{session}/plans/{plan}`.
        operation: "permute", "elementwise", "reduce", "contract", "factorize"
            or "solve".
        device: The device that it runs on.
        selection: How its kernel is chosen: "heuristic", "measure" or "incremental".
        operands: What its operands "a", "b", "c" and the result "d" are like, those
            that it has.
        others: What results after "d" are like, those of "factorize", in their order.
        kernel: The kernel that runs it, as of the plan's creation; `describe` asks
            anew for it and all that follows.
        workspace_bytes: Scratch memory of that kernel.
        min_workspace_bytes: That of the kernel that could run with the least of it.
        max_workspace_bytes: That of the kernel that needs the most.
        flops: Additions and multiplications, complex ones as the real ones they are.
        moved_bytes: Bytes of all operands, each read or written once.
        problem: The problem as kernels see it, for people.
        candidates: The kernels that were asked.
    """

    session: PlanSession
    link: BlockingLink

    def __init__(
        self, session: PlanSession, message: plan_pb2.Plan, *, owned: bool
    ) -> None:
        """Use `Session.plan`."""
        super().__init__(session, message, owned=owned)
        info = from_message(PlanInfo, message)
        self.operation = info.operation
        self.selection = info.selection
        self.operands: dict[str, TensorSpec] = {
            operand: spec_of_message(getattr(message, operand))
            for operand in _OPERANDS
            if message.HasField(operand)
        }
        self.others = tuple(spec_of_message(other) for other in message.others)
        self.kernel = info.kernel
        self.workspace_bytes = info.workspace_bytes
        self.min_workspace_bytes = info.min_workspace_bytes
        self.max_workspace_bytes = info.max_workspace_bytes
        self.flops = info.flops
        self.moved_bytes = info.moved_bytes
        self.problem = info.problem
        self.candidates: tuple[KernelCandidate, ...] = info.candidates

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of its factors, "alpha" and so on."""
        if self.operation == "permute":
            return ("alpha",)
        if self.operation in ("factorize", "solve"):
            return ()
        if self.operation != "elementwise":
            return ("alpha", "beta")
        return (
            ("alpha", "beta", "gamma") if "b" in self.operands else ("alpha", "gamma")
        )

    @property
    def adds_output(self) -> bool:
        """Whether `out` can stand for an addend that is left out."""
        addend = self.operands.get("c")
        return self.operation != "elementwise" and addend == self.operands["d"]

    def execute(
        self, *operands: TensorLike | None, **options: Unpack[PlanOptions]
    ) -> RemoteTensor:
        """Runs it; `plan(a, b)` is the same.

        >>> plan.execute(a, b, out=d, alpha=2)

        Args:
            *operands: Its inputs in the order a, b, c, those that it has: RemoteTensors
                or arrays, of which small ones travel in the request.
            a, b, c: Inputs by their names. Without the addend `c` of a reduction or
                contraction, `out` is added to.
            out: Existing tensor that receives the result; it is returned.
            name: Name of a new result. Without one the server chooses, and the result
                leaves the server with its last reference.
            alpha, beta, gamma: Factors; None for those that it was made with. A factor
                of zero means that its operand is not read; it may be None then.
            timeout: Deadline in seconds.

        Returns:
            The result; its `report` says how it came about.

        Raises:
            InvalidArgument: An operand has another dtype, shape or strides than the
                plan was made for (`PLAN_OPERAND_DIFFERS`), or is missing
                (`INPUT_MISSING`); or the plan has no such operand
                (`PLAN_HAS_NO_OPERAND`) or factor (`PLAN_HAS_NO_FACTOR`).
                It is a factorization (`PLAN_RESULT_COUNT`): `factorize` runs it.
            NotFound: The plan was deleted (`PLAN_NOT_FOUND`), or an operand was.
            Error: As the operation itself.
        """
        return self.session.execute(self, *operands, **options)

    __call__ = execute

    def factorize(
        self, a: TensorLike, **options: Unpack[FactorOptions]
    ) -> tuple[RemoteTensor, ...]:
        """Runs it, if it is a factorization.

        >>> plan = session.plan.factorize("ij->ik,kj", a, method="qr")
        >>> q, r = plan.factorize(a)

        Args:
            a: What is factorized, as for `execute`.
            out: Existing tensors that receive the results, or None for new ones.
            name: Names of new results, as in `Session.factorize`.
            timeout: Deadline in seconds.

        Raises:
            InvalidArgument: It is none (`PLAN_RESULT_COUNT`).
            Error: As `execute`.
        """
        return self.session.execute_factorization(self, a, **options)

    def describe(self, timeout: float | None = None) -> PlanInfo:
        """Returns what it is as of now: its kernel, how far tuning has come.

        Args:
            timeout: Deadline in seconds; None for the default.

        Raises:
            NotFound: It was deleted.
        """
        return from_message(PlanInfo, self.link.describe(self.full_name, timeout))

    def __repr__(self) -> str:
        operands = "".join(f"{name}={spec}, " for name, spec in self.operands.items())
        return (
            f"Plan({self.name!r}, {self.operation}, {operands}"
            f"kernel={self.kernel!r}, device={self.device!r})"
        )
