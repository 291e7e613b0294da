"""Operations that are not carried out: explained, or prepared."""

from __future__ import annotations

import copy
import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from tensord._arrays import array_of
from tensord._blocking_link import BlockingLink
from tensord._einsum_operations import EinsumSettings
from tensord._expectations import add_own_extents
from tensord._factorizations import Factorizations, Names
from tensord._handle import Handle, Held
from tensord._messages import from_message
from tensord._notation import Statements
from tensord._operations import Outcome
from tensord._plans import Plan
from tensord._products import ProgramProduct
from tensord._program_operations import (
    After,
    ProgramCall,
    ProgramOperations,
    ProgramOutcome,
)
from tensord._program_reports import ProgramExplanation
from tensord._programs import Program, ProgramHandle
from tensord._sending import Key
from tensord._session_link import Question
from tensord._settings import Settings
from tensord._specs import spec_of
from tensord._subscripts import Modes
from tensord._tensor_handle import Factor, TensorHandle, TensorLike
from tensord._trees import TreeNode
from tensord.errors import InvalidArgument, Unimplemented
from tensord.reports import Explanation
from tensord.v1 import compute_pb2, plan_pb2, program_pb2


class Describer(ProgramOperations[Outcome, ProgramOutcome]):
    """Says what operands are like, and sends none of their elements."""

    def __init__(self, session: Any) -> None:
        """Use `Session.explain` or `Session.plan`."""
        self._session = session
        self.link = session.link

    def _sources(
        self, arrays: Mapping[Key, npt.ArrayLike], timeout: float | None
    ) -> Iterator[tuple[Key, compute_pb2.InlineTensor | Handle]]:
        for name, array in arrays.items():
            yield name, spec_of(array).inline_message()

    def program(
        self,
        notation: Any,
        *operands: Any,
        constants: Iterable[str | int] = (),
        **named: Any,
    ) -> ProgramOutcome:
        """Treats a program; always as one, also where one operation would do.

        Args:
            notation: Statements, subscripts or NCON's labels.
            *operands, **named: As `run`, `einsum` and `ncon` take them.
            constants: As `Session.program` takes them.
        """
        return copy.copy(self)._program(
            _constants(constants), notation, *operands, **named
        )

    def _program(
        self, constants: frozenset[Any], notation: Any, *operands: Any, **named: Any
    ) -> ProgramOutcome:
        self._constants = constants
        if not isinstance(notation, str):
            return self.ncon(operands, notation, **named)
        if "=" in notation:
            return self.run(notation, *operands, **named)
        keys = [field.name for field in dataclasses.fields(EinsumSettings)]
        how = EinsumSettings(**{key: named.pop(key) for key in keys if key in named})
        settings = Settings.of(named)  # type: ignore[arg-type]
        einsum = self._read_einsum(notation, operands, how, settings)
        return cast("ProgramOutcome", self._einsum_program(einsum, how, settings))

    def _found(
        self,
        values: Mapping[Any, TensorLike | Factor],
        statements: Statements | None,
        timeout: float | None,
    ) -> tuple[list[program_pb2.ProgramOperand], Held]:
        unknown = [key for key in self._constants if key not in values]
        if unknown:
            raise InvalidArgument(
                f"constants has {unknown[0]!r}, which is no operand, wanted some of "
                + (", ".join(map(repr, values)) or "none"),
                reason="NAME_UNKNOWN",
            )
        return super()._found(values, statements, timeout)

    def _perform_after(
        self,
        spec: program_pb2.ProgramSpec,
        call: ProgramCall,
        held: Held,
        after: After,
    ) -> Any:
        raise Unimplemented(
            f"'{call.text}' takes several operations, which are neither explained nor "
            "prepared together with alpha, beta, c or out",
            reason="SUBSCRIPTS_UNSUPPORTED",
        )

    @property
    def _carries_out(self) -> bool:
        return False


class Explainer(
    Describer[Outcome, ProgramOutcome], Factorizations[Outcome, Outcome, Names]
):
    """The operations of a session, explained instead of executed.

    Operands may be TensorSpecs, too. Programs, among them what `einsum` does not do by
    one operation, give a `ProgramExplanation`; both have `text`, `products`, `svg()` and
    `save()`.
    """

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: Held
    ) -> Outcome:
        return self._explain(
            plan_pb2.ExplainPlanRequest(**{operation: request}),
            settings,
            lambda response: _explanation(response, request, settings, held),
            held,
        )

    def _perform_factorization(
        self,
        request: Any,
        places: tuple[Settings, ...],
        held: Held,
    ) -> Outcome:
        return self._explain(
            plan_pb2.ExplainPlanRequest(factorize=request),
            places[0],
            lambda response: from_message(Explanation, response),
            held,
        )

    def _explain(
        self,
        request: plan_pb2.ExplainPlanRequest,
        settings: Settings,
        answer: Callable[[plan_pb2.ExplainPlanResponse], Explanation],
        held: Held,
    ) -> Outcome:
        question = Question(
            "plan", "ExplainPlan", request, settings.timeout, answer, held
        )
        return cast("Outcome", self.link.ask(question))

    def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: Held
    ) -> ProgramOutcome:
        question = Question(
            "program",
            "ExplainProgram",
            program_pb2.ExplainProgramRequest(session=self.link.name, spec=spec),
            call.timeout,
            lambda response: from_message(ProgramExplanation, response.explanation),
            errors=call.pointing_out(),
        )
        return cast("ProgramOutcome", self.link.ask(question))


class Preparer(Describer[Outcome, ProgramOutcome]):
    """A describer that sends the elements of constants, which programs keep."""

    _program_class: ClassVar[type[ProgramHandle]]

    def _sources(
        self, arrays: Mapping[Key, npt.ArrayLike], timeout: float | None
    ) -> Iterator[tuple[Key, compute_pb2.InlineTensor | Handle]]:
        for name, array in arrays.items():
            if name in self._constants:
                # Packed, whatever is here. The program has it when its name is gone.
                packed = np.ascontiguousarray(array_of(array))
                packed = packed.reshape(np.shape(array))
                yield name, self.link.stage(packed, spec_of(packed), timeout)
            else:
                yield name, spec_of(array).inline_message()

    def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: Held
    ) -> ProgramOutcome:
        for output in spec.outputs:
            output.tensor_id = ""  # `name` is that of the program.
        question = Question(
            "program",
            "CreateProgram",
            program_pb2.CreateProgramRequest(
                session=self.link.name, program_id=call.name or "", spec=spec
            ),
            call.timeout,
            lambda response: self._program_class(
                self._session, response.program, owned=not call.name
            ),
            held,
            allocates=True,
            errors=call.pointing_out(),
        )
        return cast("ProgramOutcome", self.link.ask(question))


class Planner(Preparer[Plan, Program], Factorizations[Plan, Plan, str]):
    """The operations of a session, prepared instead of executed.

    Operands, which may be TensorSpecs, too, and `out` only say what those of the plan
    will be like; nothing of them is sent, read or kept. A plan that was made with a
    view as `out` runs with views like it alone. `name` is that of the plan: without
    one, the plan leaves the server with its last reference.

    Programs, among them what `einsum` does not do by one operation, give a `Program`.

    Besides what the operations raise:
        AlreadyExists: The session has a plan of that name (`PLAN_ALREADY_EXISTS`).
        ResourceExhausted: It has as many as it may have (`TOO_MANY_PLANS`).
    """

    link: BlockingLink
    _program_class = Program

    def _output(self, settings: Settings, modes: Modes) -> compute_pb2.Output:
        return super()._output(dataclasses.replace(settings, name=None), modes)

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: Held
    ) -> Plan:
        create = plan_pb2.CreatePlanRequest(
            plan_id=settings.name or "", **{operation: request}
        )
        method = self.link.connection.plan.CreatePlan
        response = self.link.call_allocating(method, create, settings.timeout)
        return Plan(self._session, response.plan, owned=not settings.name)

    def _names(self, name: str | None, results: Sequence[str]) -> Names:
        # It is that of the plan.
        return (name, *(None for _ in results[1:]))

    def _perform_factorization(
        self,
        request: Any,
        places: tuple[Settings, ...],
        held: Held,
    ) -> Plan:
        return self._perform("factorize", request, places[0], held)


def _constants(names: Iterable[str | int]) -> frozenset[str | int]:
    """Returns names or places of operands.

    Raises:
        TypeError: They are none.
    """
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"constants is {names!r}, wanted a list of names or of places")
    found = frozenset(names)
    for name in found:
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise TypeError(
                f"constants has {name!r}, wanted names of operands or places"
            )
    return found


def _explanation(
    response: plan_pb2.ExplainPlanResponse,
    request: Any,
    settings: Settings,
    held: Held,
) -> Explanation:
    """Returns how an operation would be computed, with its tree.

    Args:
        response: The server's.
        request: The operation.
        settings: What it was told besides.
        held: The tensors that it reads.
    """
    shapes = {
        each.full_name: each.shape for each in held if isinstance(each, TensorHandle)
    }
    known = request.DESCRIPTOR.fields_by_name
    names = [name for name in "abc" if name in known and request.HasField(name)]
    nodes: list[TreeNode] = []
    extents: dict[int, int] = {}
    if settings.out is not None:
        extents.update(zip(request.d.modes, settings.out.shape))
    for name in names:
        operand = getattr(request, name)
        shape = shapes.get(operand.tensor, tuple(operand.inline.layout.extents))
        extents.update(zip(operand.modes, shape))
        nodes.append(TreeNode(name, _labels(operand.modes), shape, (), 0))
    if "structure" in known and "b" not in names:
        add_own_extents(extents, request.d.modes)
    shape = tuple(extents.get(mode, 1) for mode in request.d.modes)
    if "padding" in known and request.HasField("padding") and settings.out is None:
        widths = zip(shape, request.padding.before, request.padding.after)
        shape = tuple(map(sum, widths))
    children = tuple(range(len(nodes)))
    labels = _labels(request.d.modes)
    nodes.append(TreeNode("", labels, shape, children, response.flops))
    largest = float(math.prod(shape))
    product = ProgramProduct(
        0, (), 1, "given", response.flops, largest, "", tuple(nodes)
    )
    return dataclasses.replace(from_message(Explanation, response), products=(product,))


def _labels(modes: Iterable[int]) -> tuple[str, ...]:
    """Letters of modes that are letters, and numbers of others."""
    return tuple(
        chr(mode) if 0 <= mode <= sys.maxunicode and chr(mode).isalpha() else str(mode)
        for mode in modes
    )
