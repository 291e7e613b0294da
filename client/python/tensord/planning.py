"""Operations that are not carried out: explained, or prepared."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tensord.operations import Operations, Outcome, Settings
from tensord.plans import Plan
from tensord.reports import Explanation, from_message
from tensord.specs import spec_of
from tensord.subscripts import Modes
from tensord.tensor import RemoteTensor
from tensord.v1 import compute_pb2, plan_pb2

if TYPE_CHECKING:
    from tensord.session import Session


class _Describer(Operations[Outcome]):
    """Says what operands are like, and sends none of their elements."""

    def __init__(self, session: Session) -> None:
        """Use `Session.explain` or `Session.plan`."""
        self._session = session

    @property
    def _session_name(self) -> str:
        return self._session.name

    def _place(
        self, request: Any, arrays: Mapping[str, npt.ArrayLike], timeout: float | None
    ) -> list[RemoteTensor]:
        for name, array in arrays.items():
            message = spec_of(array).inline_message()
            getattr(request, name).inline.CopyFrom(message)
        return []


class Explainer(_Describer[Explanation]):
    """The operations of a session, explained instead of executed.

    Operands may be TensorSpecs, too.
    """

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: list[Any]
    ) -> Explanation:
        explain = plan_pb2.ExplainPlanRequest(**{operation: request})
        connection = self._session._connection
        response = connection.call(
            connection.plan.ExplainPlan, explain, settings.timeout
        )
        return from_message(Explanation, response)


class Planner(_Describer[Plan]):
    """The operations of a session, prepared instead of executed.

    Operands, which may be TensorSpecs, too, and `out` only say what those of the plan
    will be like; nothing of them is sent, read or kept. A plan that was made with a
    view as `out` runs with views like it alone. `name` is that of the plan: without
    one, the plan leaves the server with its last reference.

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
