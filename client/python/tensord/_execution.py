"""Operations and plans that are carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._arguments import check_options, check_type
from tensord._arrays import array_of
from tensord._einsum_operations import EinsumOperations
from tensord._factorizations import Factorizations, Names, Results
from tensord._handle import Handle, Held
from tensord._operations import Outcome, scalar_message
from tensord._plans import FactorOptions, Plan, PlanOptions
from tensord._sending import Array, sent
from tensord._settings import Settings
from tensord._tensor_handle import Factor, TensorHandle, TensorLike, check_session
from tensord.errors import InvalidArgument
from tensord.v1 import compute_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack


_FACTORS = ("alpha", "beta", "gamma")


class Executor(EinsumOperations[Outcome]):
    """Carries operations and plans out."""

    def execute(
        self,
        plan: Plan,
        *operands: TensorLike | None,
        **options: Unpack[PlanOptions],
    ) -> Outcome:
        """Runs a plan of the session.

        >>> session.execute(plan, a, b, alpha=2)

        Args:
            plan: As `Session.plan` makes them.
            *operands, **options: As `Plan.execute` takes them.

        Raises:
            InvalidArgument: The plan is of another session (`SESSION_DIFFERS`).
            Error: As `Plan.execute` says.
        """
        check_type("plan", plan, Plan, "a Plan")
        check_options(options, PlanOptions.__annotations__)
        given: Mapping[str, Any] = {**options}
        out, name, timeout = (given.get(each) for each in ("out", "name", "timeout"))
        settings = Settings(out=out, name=name, timeout=timeout)
        settings.check_result()
        self._check_runs(plan, factorizes=False)
        request = compute_pb2.ExecutePlanRequest(
            plan=plan.full_name,
            tensor_id=name or "",
            **_factors(plan, {each: given.get(each) for each in _FACTORS}),
        )
        if out is not None:
            check_session(self.link, "out", out)
            _put_output(request, out)
        inputs = _by_name(plan, operands, {each: given.get(each) for each in "abc"})
        if plan.adds_output and out is not None:
            inputs.setdefault("c", out)
        held = self._add_planned(request, plan, inputs, timeout)
        return self._perform("execute_plan", request, settings, held)

    def _check_runs(self, plan: Plan, *, factorizes: bool) -> None:
        """Refuses a plan of another session or of another kind.

        Raises:
            InvalidArgument: It is one (`SESSION_DIFFERS`, `PLAN_RESULT_COUNT`).
        """
        if plan.session.name != self.link.name:
            raise InvalidArgument(
                f"plan {plan.name} is of another session, wanted one of this session",
                reason="SESSION_DIFFERS",
            )
        if (plan.operation == "factorize") != factorizes:
            count = 1 + len(plan.others)
            raise InvalidArgument(
                f"plan {plan.name} of {plan.operation} has {count} "
                f"result{'s' * (count > 1)}; Plan."
                f"{'execute' if factorizes else 'factorize'} runs it",
                reason="PLAN_RESULT_COUNT",
            )

    def _add_planned(
        self,
        request: compute_pb2.ExecutePlanRequest,
        plan: Plan,
        inputs: Mapping[str, TensorLike],
        timeout: float | None,
    ) -> Held:
        """Adds the inputs of an execution, and returns what must live until it ends."""
        held: Held = [plan]
        arrays: dict[str, Array] = {}
        for operand, tensor in inputs.items():
            if isinstance(tensor, TensorHandle):
                check_session(self.link, f"operand {operand}", tensor)
                tensor.put_in(getattr(request, operand))
                held.append(tensor)
            else:
                arrays[operand] = _like_planned(plan, operand, array_of(tensor))
        for operand, source in sent(self.link, arrays, timeout):
            if isinstance(source, Handle):
                getattr(request, operand).tensor = source.full_name
                held.append(source)
            else:
                getattr(request, operand).data = source
        return held


class FactorExecutor(Executor[Outcome], Factorizations[Outcome, Results, Names]):
    """Carries plans with several results out, too."""

    def execute_factorization(
        self, plan: Plan, a: TensorLike, **options: Unpack[FactorOptions]
    ) -> Results:
        """Runs a plan of the session that is a factorization.

        Args:
            plan: As `Session.plan.factorize` makes them.
            a, **options: As `Plan.factorize` takes them.

        Raises:
            Error: As `Plan.factorize` says.
        """
        check_type("plan", plan, Plan, "a Plan")
        check_options(options, FactorOptions.__annotations__)
        timeout = options.get("timeout")
        self._check_runs(plan, factorizes=True)
        results = [f"result {i}" for i in range(1 + len(plan.others))]
        places = self._places(
            Settings(timeout=timeout), options.get("out"), options.get("name"), results
        )
        for place in places:
            place.check_result()
            if place.out is not None:
                check_session(self.link, "out", place.out)
        request = compute_pb2.ExecutePlanRequest(
            plan=plan.full_name,
            tensor_id=places[0].name or "",
            others=[{"tensor_id": place.name or ""} for place in places[1:]],
        )
        if places[0].out is not None:
            _put_output(request, places[0].out)
        for place, other in zip(places[1:], request.others):
            if place.out is not None:
                place.out.put_in(other)
        held = self._add_planned(request, plan, _by_name(plan, (a,), {}), timeout)
        return self._perform_factorization(request, places, held)


def _put_output(request: compute_pb2.ExecutePlanRequest, out: TensorHandle) -> None:
    """Says which tensor is written first."""
    output = compute_pb2.PlanOutput()
    out.put_in(output)
    request.d = output.tensor
    if output.HasField("view"):
        request.d_view.CopyFrom(output.view)


def _factors(plan: Plan, factors: Mapping[str, Factor | None]) -> dict[str, Any]:
    """Returns the factors that are given, as they travel.

    Raises:
        InvalidArgument: The plan has no such factor (`PLAN_HAS_NO_FACTOR`).
    """
    messages = {}
    for name, factor in factors.items():
        if factor is None:
            continue
        if name not in plan.factors:
            raise InvalidArgument(
                f"plan {plan.name} has no factor {name}, wanted one of "
                + ", ".join(plan.factors),
                reason="PLAN_HAS_NO_FACTOR",
            )
        messages[name] = scalar_message(name, factor)
    return messages


def _like_planned(plan: Plan, operand: str, array: np.ndarray) -> Array:
    """Refuses an array that the plan was not made for.

    Raises:
        InvalidArgument: It was not (`PLAN_OPERAND_DIFFERS`), or has no such operand.
    """
    spec = plan.operands[operand]
    got = f"{dtypes.wire_dtype(array.dtype)} {array.shape}"
    if got != f"{spec.dtype} {spec.shape}" or spec.repeats:
        raise InvalidArgument(
            f"operand {operand} is an array of {got}, plan {plan.name} is for {spec}",
            reason="PLAN_OPERAND_DIFFERS",
        )
    return Array(array, spec)


def _by_name(
    plan: Plan,
    positional: tuple[TensorLike | None, ...],
    named: Mapping[str, TensorLike | None],
) -> dict[str, TensorLike]:
    """Returns the inputs of a plan that are there.

    Raises:
        InvalidArgument: It has no such inputs.
        TypeError: One is there twice.
    """
    known = [name for name in plan.operands if name != "d"]
    if len(positional) > len(known):
        raise InvalidArgument(
            f"plan {plan.name} takes {' and '.join(known) or 'no operands'}, got "
            f"{len(positional)} operands",
            reason="PLAN_HAS_NO_OPERAND",
        )
    inputs = {
        name: tensor for name, tensor in zip(known, positional) if tensor is not None
    }
    for name, tensor in named.items():
        if tensor is None:
            continue
        if name not in known:
            raise InvalidArgument(
                f"plan {plan.name} has no operand {name}, wanted {' and '.join(known)}",
                reason="PLAN_HAS_NO_OPERAND",
            )
        if name in inputs:
            raise TypeError(f"operand {name} is given twice, by position and by name")
        inputs[name] = tensor
    return inputs
