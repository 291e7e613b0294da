"""Operators by name."""

from __future__ import annotations

from tensord._arguments import check_type
from tensord.errors import InvalidArgument
from tensord.v1 import compute_pb2


def _names(enum: object, prefix: str) -> dict[str, int]:
    return {
        name.removeprefix(prefix).lower(): value
        for name, value in enum.items()  # type: ignore[attr-defined]
        if value != 0
    }


UNARY_OPERATORS: dict[str, int] = _names(compute_pb2.UnaryOperator, "UNARY_OPERATOR_")
"""Operators that `op_a=`, `op_b=` and `op_c=` take: "sqrt", "soft_plus", ..."""

BINARY_OPERATORS: dict[str, int] = _names(
    compute_pb2.BinaryOperator, "BINARY_OPERATOR_"
)
"""Operators that `op=` and `op_ab=` take: "add", "mul", "max", "min"."""


def _look_up(name: str, operators: dict[str, int], kind: str, argument: str) -> int:
    check_type(argument, name, str, f"the name of a {kind} operator")
    try:
        return operators[name.lower()]
    except KeyError:
        raise InvalidArgument(
            f"{kind} operator {name!r} is unknown, wanted one of "
            + ", ".join(operators),
            reason="OPERATOR_UNKNOWN",
        ) from None


def unary_operator(name: str | None, argument: str) -> int:
    """Returns the `UnaryOperator` of a name; None is the identity.

    Args:
        name: E.g. "sqrt".
        argument: What the caller calls it, for the message.

    Raises:
        InvalidArgument: There is no such operator.
        TypeError: It is no string.
    """
    if name is None:
        return compute_pb2.UNARY_OPERATOR_UNSPECIFIED
    return _look_up(name, UNARY_OPERATORS, "unary", argument)


def binary_operator(name: str, argument: str) -> int:
    """Returns the `BinaryOperator` of a name.

    Args:
        name: E.g. "add".
        argument: What the caller calls it, for the message.

    Raises:
        InvalidArgument: There is no such operator.
        TypeError: It is no string.
    """
    return _look_up(name, BINARY_OPERATORS, "binary", argument)


SELECTIONS: dict[str, int] = _names(compute_pb2.Selection, "SELECTION_")
"""What `selection=` takes: "heuristic", "measure", "incremental"."""


def selection(name: str | None) -> int:
    """Returns the `Selection` of a name; None leaves it to the server.

    Raises:
        InvalidArgument: There is no such selection.
        TypeError: It is no string.
    """
    if name is None:
        return compute_pb2.SELECTION_UNSPECIFIED
    check_type("selection", name, str, "the name of a selection")
    try:
        return SELECTIONS[name.lower()]
    except KeyError:
        raise InvalidArgument(
            f"selection {name!r} is unknown, wanted one of " + ", ".join(SELECTIONS),
            reason="SELECTION_UNKNOWN",
        ) from None
