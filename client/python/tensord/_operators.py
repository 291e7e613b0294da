"""Operators, selections and methods by name."""

from __future__ import annotations

from tensord._arguments import check_type, look_up
from tensord._messages import enum_values
from tensord._subscripts import mode_labels
from tensord.errors import InvalidArgument
from tensord.v1 import compute_pb2

UNARY_OPERATORS: dict[str, compute_pb2.UnaryOperator] = enum_values(
    compute_pb2.UnaryOperator, "UNARY_OPERATOR_"
)
"""Operators that `op_a=`, `op_b=` and `op_c=` take: "sqrt", "soft_plus", ..."""

BINARY_OPERATORS: dict[str, compute_pb2.BinaryOperator] = enum_values(
    compute_pb2.BinaryOperator, "BINARY_OPERATOR_"
)
"""Operators that `op=` and `op_ab=` take: "add", "div", "less", "where", "take", ..."""

SELECTIONS: dict[str, compute_pb2.Selection] = enum_values(
    compute_pb2.Selection, "SELECTION_"
)
"""What `selection=` takes: "heuristic", "measure", "incremental"."""

_METHODS: dict[str, compute_pb2.FactorizationMethod] = enum_values(
    compute_pb2.FactorizationMethod, "FACTORIZATION_METHOD_"
)

_STRUCTURES: dict[str, compute_pb2.MatrixStructure] = enum_values(
    compute_pb2.MatrixStructure, "MATRIX_STRUCTURE_"
)

_SORTINGS: dict[str, compute_pb2.Sorting] = enum_values(
    compute_pb2.Sorting, "SORTING_"
)

_ABSORBING: dict[str, compute_pb2.Absorb] = enum_values(compute_pb2.Absorb, "ABSORB_")


def unary_operator(name: str | None, argument: str) -> compute_pb2.UnaryOperator:
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
    check_type(argument, name, str, "the name of a unary operator")
    return look_up("unary operator", name, UNARY_OPERATORS, "OPERATOR_UNKNOWN")


def binary_operator(name: str, argument: str) -> compute_pb2.BinaryOperator:
    """Returns the `BinaryOperator` of a name, e.g. "add".

    Args:
        name: E.g. "add".
        argument: What the caller calls it, for the message.

    Raises:
        InvalidArgument: There is no such operator.
        TypeError: It is no string.
    """
    check_type(argument, name, str, "the name of a binary operator")
    return look_up("binary operator", name, BINARY_OPERATORS, "OPERATOR_UNKNOWN")


def selection(name: str | None) -> compute_pb2.Selection:
    """Returns the `Selection` of a name; None leaves it to the server.

    Raises:
        InvalidArgument: There is no such selection.
        TypeError: It is no string.
    """
    if name is None:
        return compute_pb2.SELECTION_UNSPECIFIED
    check_type("selection", name, str, "the name of a selection")
    return look_up("selection", name, SELECTIONS, "SELECTION_UNKNOWN")


def along(mode: str | int | None, sort: str | None) -> compute_pb2.Along:
    """Returns the mode along which a reduction goes, and whether it sorts.

    Args:
        mode: Its label.
        sort: "ascending", "descending" or None.

    Raises:
        InvalidArgument: It is not one mode (`MODES_MISSING`, `MODE_COUNT_MISMATCH`); or
            there is no such order (`SORTING_UNKNOWN`).
        TypeError: The order is no string.
    """
    if mode is None:
        raise InvalidArgument(
            f"sort is {sort!r}, but there is no mode along which, wanted along",
            reason="MODES_MISSING",
        )
    labels = mode_labels(mode if isinstance(mode, str) else [mode], "along")
    if len(labels) != 1:
        raise InvalidArgument(
            f"along is {mode!r}, wanted one mode, e.g. 'j'",
            reason="MODE_COUNT_MISMATCH",
        )
    if sort is None:
        return compute_pb2.Along(mode=labels[0])
    check_type("sort", sort, str, "'ascending' or 'descending'")
    sorting = look_up("sort", sort, _SORTINGS, "SORTING_UNKNOWN")
    return compute_pb2.Along(mode=labels[0], sorting=sorting)


def factorization_method(name: str) -> compute_pb2.FactorizationMethod:
    """Returns the `FactorizationMethod` of a name.

    Args:
        name: E.g. "qr".

    Raises:
        InvalidArgument: There is no such method.
        TypeError: It is no string.
    """
    check_type("method", name, str, "the name of a factorization")
    return look_up("method", name, _METHODS, "METHOD_UNKNOWN")


def matrix_structure(name: str) -> compute_pb2.MatrixStructure:
    """Returns the `MatrixStructure` of a name.

    Args:
        name: E.g. "general".

    Raises:
        InvalidArgument: There is no such structure.
        TypeError: It is no string.
    """
    check_type("structure", name, str, "the name of a structure")
    return look_up("structure", name, _STRUCTURES, "STRUCTURE_UNKNOWN")


def absorb(name: str | None) -> compute_pb2.Absorb:
    """Returns the `Absorb` of a name; None is none.

    Raises:
        InvalidArgument: There is no such way.
        TypeError: It is no string.
    """
    if name is None:
        return compute_pb2.ABSORB_UNSPECIFIED
    check_type("absorb", name, str, "'left', 'right' or 'both'")
    return look_up("absorb", name, _ABSORBING, "ABSORB_UNKNOWN")
