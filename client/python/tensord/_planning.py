"""Operations that are not carried out: explained, or prepared."""

from __future__ import annotations

import copy
import dataclasses
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensord._arrays import array_of
from tensord._einsum_operations import EinsumSettings
from tensord.errors import Error, InvalidArgument, Unimplemented
from tensord._notation import point_out
from tensord._operations import Key, Outcome, Settings
from tensord._plans import Plan
from tensord._program_operations import (
    After,
    ProgramCall,
    ProgramOperations,
    ProgramOutcome,
)
from tensord._program_reports import ProgramExplanation, ProgramProduct, TreeNode
from tensord._programs import Program
from tensord.reports import Explanation, from_message
from tensord._specs import spec_of
from tensord._subscripts import Modes
from tensord._tensor_handle import TensorHandle
from tensord.v1 import compute_pb2, plan_pb2, program_pb2

if TYPE_CHECKING:
    from tensord._notation import Statements
    from tensord._operations import Factor, TensorLike


class Describer(ProgramOperations[Outcome, ProgramOutcome]):
    """Says what operands are like, and sends none of their elements."""

    def __init__(self, session: Any) -> None:
        """Use `Session.explain` or `Session.plan`."""
        self._session = session

    @property
    def _session_name(self) -> str:
        return self._session.name

    def _sources(
        self, arrays: Mapping[Key, npt.ArrayLike], timeout: float | None
    ) -> Iterator[tuple[Key, compute_pb2.InlineTensor | TensorHandle]]:
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
        describer = copy.copy(self)
        describer._constants = _constants(constants)
        return describer._program(notation, *operands, **named)

    def _program(self, notation: Any, *operands: Any, **named: Any) -> ProgramOutcome:
        if not isinstance(notation, str):
            return self.ncon(operands, notation, **named)
        if "=" in notation:
            return self.run(notation, *operands, **named)
        how = EinsumSettings(
            **{key: named.pop(key) for key in EinsumSettings._fields if key in named}
        )
        settings = Settings.of(named)  # type: ignore[arg-type]
        einsum = self._read_einsum(notation, operands, how, settings)
        return self._einsum_program(einsum, how, settings)  # type: ignore[return-value]

    def _found(
        self,
        values: Mapping[Any, TensorLike | Factor],
        statements: Statements | None,
        timeout: float | None,
    ) -> tuple[list[program_pb2.ProgramOperand], list[Any]]:
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
        held: list[Any],
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


class Explainer(Describer[Explanation, ProgramExplanation]):
    """The operations of a session, explained instead of executed.

    Operands may be TensorSpecs, too. Programs, among them what `einsum` does not do by
    one operation, give a `ProgramExplanation`; both have `text`, `products`, `svg()` and
    `save()`.
    """

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: list[Any]
    ) -> Explanation:
        explain = plan_pb2.ExplainPlanRequest(**{operation: request})
        connection = self._session._connection
        response = connection.call(
            connection.plan.ExplainPlan, explain, settings.timeout
        )
        return explanation_of(response, request, settings, held)

    def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: list[Any]
    ) -> ProgramExplanation:
        connection = self._session._connection
        request = program_pb2.ExplainProgramRequest(
            session=self._session.name, spec=spec
        )
        try:
            response = connection.call(
                connection.program.ExplainProgram, request, call.timeout
            )
        except Error as error:
            point_out(error, call.text, call.costs)
            raise
        return from_message(ProgramExplanation, response.explanation)


class Preparer(Describer[Outcome, ProgramOutcome]):
    """A describer that sends the elements of constants, which programs keep."""

    def _sources(
        self, arrays: Mapping[Key, npt.ArrayLike], timeout: float | None
    ) -> Iterator[tuple[Key, compute_pb2.InlineTensor | TensorHandle]]:
        for name, array in arrays.items():
            if name in self._constants:
                # Packed, whatever is here. The program has it when its name is gone.
                packed = np.ascontiguousarray(array_of(array))
                packed = packed.reshape(np.shape(array))
                yield name, self._session._stage(packed, spec_of(packed), timeout)
            else:
                yield name, spec_of(array).inline_message()


class Planner(Preparer[Plan, Program]):
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

    def _output(self, settings: Settings, modes: Modes) -> compute_pb2.Output:
        return super()._output(dataclasses.replace(settings, name=None), modes)

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: list[Any]
    ) -> Plan:
        session = self._session
        create = plan_pb2.CreatePlanRequest(
            plan_id=settings.name or "", **{operation: request}
        )
        response = session._call_allocating(
            session._connection.plan.CreatePlan, create, settings.timeout
        )
        return Plan(session, response.plan, owned=not settings.name)

    def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: list[Any]
    ) -> Program:
        session = self._session
        create = creation(session.name, spec, call)
        try:
            response = session._call_allocating(
                session._connection.program.CreateProgram, create, call.timeout
            )
        except Error as error:
            point_out(error, call.text, call.costs)
            raise
        return Program(session, response.program, owned=not call.name)


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


def explanation_of(
    response: plan_pb2.ExplainPlanResponse,
    request: Any,
    settings: Settings,
    held: list[Any],
) -> Explanation:
    """Returns how an operation would be computed, with its tree.

    Args:
        response: The server's.
        request: The operation.
        settings: What it was told besides.
        held: The tensors that it reads.
    """
    shapes = {tensor.full_name: tensor.shape for tensor in held}
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


def creation(
    session: str, spec: program_pb2.ProgramSpec, call: ProgramCall
) -> program_pb2.CreateProgramRequest:
    """Returns the request that prepares a program; `name` is that of the program."""
    for output in spec.outputs:
        output.tensor_id = ""
    return program_pb2.CreateProgramRequest(
        session=session, program_id=call.name or "", spec=spec
    )
