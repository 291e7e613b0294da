"""Operations and plans that are carried out."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arguments import check_type
from tensord._arrays import array_of
from tensord._einsum_operations import EinsumOperations
from tensord.errors import InvalidArgument
from tensord._operations import (
    Factor,
    Key,
    Outcome,
    Settings,
    TensorLike,
    scalar_message,
)
from tensord._plans import Plan
from tensord._specs import TensorSpec
from tensord._tensor_handle import TensorHandle
from tensord.v1 import compute_pb2

if TYPE_CHECKING:
    from tensord._tensor import RemoteTensor


class Sender(EinsumOperations[Outcome]):
    """Sends operands that are here; what becomes of a request is up to the subclass."""

    @abc.abstractmethod
    def _stage(
        self, array: np.ndarray, spec: TensorSpec, timeout: float | None
    ) -> TensorHandle:
        """Makes a temporary tensor for an array that is too large to go inline.

        Args:
            array: Its elements.
            spec: What it is like on the server.
            timeout: Deadline in seconds; None for the default.
        """

    @property
    @abc.abstractmethod
    def _max_inline_bytes(self) -> int:
        """Most bytes of inline operands in one request."""

    def _sources(
        self, arrays: Mapping[Key, npt.ArrayLike], timeout: float | None
    ) -> Iterator[tuple[Key, compute_pb2.InlineTensor | TensorHandle]]:
        packed = {name: _packed(array_of(array)) for name, array in arrays.items()}
        for name, source in self._sent(packed, timeout):
            if isinstance(source, TensorHandle):
                yield name, source
            else:
                message = packed[name].spec.inline_message()
                message.data = source
                yield name, message

    def _sent(
        self, arrays: Mapping[Key, _Array], timeout: float | None
    ) -> Iterator[tuple[Key, bytes | TensorHandle]]:
        """Yields the memory of arrays, or temporary tensors, by their names.

        From small to large, arrays go inline as long as they fit in the message.
        """
        room = self._max_inline_bytes
        for name, (array, spec) in sorted(
            arrays.items(), key=lambda item: item[1].spec.span_bytes
        ):
            room -= spec.span_bytes
            if room >= 0:
                yield name, spec.laid_out(array).tobytes()
            else:
                yield name, self._stage(array, spec, timeout)


class Executor(Sender[Outcome]):
    """Carries operations and plans out."""

    def execute(
        self,
        plan: Plan,
        *operands: TensorLike | None,
        a: TensorLike | None = None,
        b: TensorLike | None = None,
        c: TensorLike | None = None,
        out: RemoteTensor | None = None,
        name: str | None = None,
        alpha: Factor | None = None,
        beta: Factor | None = None,
        gamma: Factor | None = None,
        timeout: float | None = None,
    ) -> Outcome:
        """Runs a plan of the session.

        >>> session.execute(plan, a, b, alpha=2)

        Args:
            plan: As `Session.plan` makes them.
            *operands, a, b, c, out, name, alpha, beta, gamma, timeout: As
                `Plan.execute` takes them.

        Raises:
            InvalidArgument: The plan is of another session (`SESSION_DIFFERS`).
            Error: As `Plan.execute` says.
        """
        check_type("plan", plan, Plan, "a Plan")
        settings = Settings(out=out, name=name, timeout=timeout)
        settings.check_result()
        if plan.session.name != self._session_name:
            raise InvalidArgument(
                f"plan {plan.name} is of another session, wanted one of this session",
                reason="SESSION_DIFFERS",
            )
        request = compute_pb2.ExecutePlanRequest(
            plan=plan.full_name,
            d="" if out is None else out.full_name,
            tensor_id=name or "",
            **_factors(plan, {"alpha": alpha, "beta": beta, "gamma": gamma}),
        )
        inputs = _by_name(plan, operands, {"a": a, "b": b, "c": c})
        if plan.adds_output and out is not None:
            inputs.setdefault("c", out)
        held: list[Any] = [plan]
        arrays: dict[str, _Array] = {}
        for operand, tensor in inputs.items():
            if isinstance(tensor, TensorHandle):
                getattr(request, operand).tensor = tensor.full_name
                held.append(tensor)
            else:
                arrays[operand] = _like_planned(plan, operand, array_of(tensor))
        for operand, source in self._sent(arrays, timeout):
            if isinstance(source, TensorHandle):
                getattr(request, operand).tensor = source.full_name
                held.append(source)
            else:
                getattr(request, operand).data = source
        return self._perform("execute_plan", request, settings, held)


class _Array(NamedTuple):
    """An array, and what it is like once it has been sent."""

    array: np.ndarray
    spec: TensorSpec


def _packed(array: np.ndarray) -> _Array:
    return _Array(array, TensorSpec(array.shape, array.dtype))


def _factors(
    plan: Plan, factors: Mapping[str, Factor | None]
) -> dict[str, compute_pb2.Scalar]:
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


def _like_planned(plan: Plan, operand: str, array: np.ndarray) -> _Array:
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
    return _Array(array, spec)


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
