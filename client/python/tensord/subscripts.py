"""Modes and einsum subscripts."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Union

from tensord.arguments import check_type
from tensord.errors import InvalidArgument, Unimplemented

Modes = Union[str, Sequence[int]]
"""One label for each mode of a tensor: "ijk", or any int32 numbers."""

_TAKES = (
    "einsum takes what one operation can do: two operands ('ij,jk->ik'), or the "
    "transposition or sum of one ('ijk->ki'), each label once per operand"
)


def mode_labels(modes: Modes, argument: str = "modes") -> list[int]:
    """Returns the labels as numbers; a letter is its code point.

    Args:
        modes: Letters or integers.
        argument: What the caller calls them, for the message.

    Raises:
        InvalidArgument: A label is not an int32.
        TypeError: They are neither letters nor integers.
    """
    try:
        labels = [ord(m) if isinstance(m, str) else operator.index(m) for m in modes]
    except TypeError:
        raise TypeError(
            f"{argument} is {modes!r}, wanted a string or a sequence of ints"
        ) from None
    for label in labels:
        if not -(2**31) <= label < 2**31:
            raise InvalidArgument(
                f"{argument} has {label}, which is out of range, wanted an int32",
                reason="MODE_OUT_OF_RANGE",
            )
    return labels


class Subscripts(NamedTuple):
    """Parsed subscripts.

    Attributes:
        inputs: Labels of one or two operands.
        output: Labels of the result.
    """

    inputs: tuple[str, ...]
    output: str


def parse_subscripts(subscripts: str, operand_count: int) -> Subscripts:
    """Reads einsum subscripts.

    Without `->` the result has the labels that occur once, in alphabetical order, as
    in NumPy.

    Args:
        subscripts: E.g. "ijk,kjl->il"; blanks do not matter.
        operand_count: How many operands they are for.

    Raises:
        InvalidArgument: They are malformed, or do not fit the operands.
        Unimplemented: One operation cannot do it.
        TypeError: They are no string.
    """
    check_type("subscripts", subscripts, str, "a string, e.g. 'ij,jk->ik'")
    text = "".join(subscripts.split())
    if "." in text:
        raise Unimplemented(
            f"'{subscripts}' has an ellipsis; {_TAKES}", reason="SUBSCRIPTS_UNSUPPORTED"
        )
    left, arrow, output = text.partition("->")
    inputs = tuple(left.split(","))
    for labels in (*inputs, output):
        for label in labels:
            if not label.isalpha():
                raise InvalidArgument(
                    f"'{subscripts}' has '{label}', wanted letters, ',' and '->'",
                    reason="SUBSCRIPTS_MALFORMED",
                )
    if len(inputs) != operand_count:
        raise InvalidArgument(
            f"'{subscripts}' is for {len(inputs)} operands, got {operand_count}",
            reason="OPERAND_COUNT_MISMATCH",
        )
    if operand_count > 2:
        raise Unimplemented(
            f"'{subscripts}' has {operand_count} operands; {_TAKES}",
            reason="SUBSCRIPTS_UNSUPPORTED",
        )
    for labels in inputs:
        _check_unrepeated(subscripts, labels)
    counts = Counter("".join(inputs))
    if not arrow:
        output = "".join(sorted(label for label, n in counts.items() if n == 1))
    for label, count in Counter(output).items():
        if label not in counts:
            raise InvalidArgument(
                f"mode '{label}' of the result is in no operand of '{subscripts}'",
                reason="MODE_NOT_IN_INPUT",
            )
        if count > 1:
            raise InvalidArgument(
                f"mode '{label}' occurs {count} times in the result of "
                f"'{subscripts}', wanted once",
                reason="MODE_REPEATED",
            )
    return Subscripts(inputs, output)


def _check_unrepeated(subscripts: str, labels: str) -> None:
    for label, count in Counter(labels).items():
        if count > 1:
            raise Unimplemented(
                f"mode '{label}' occurs {count} times in operand '{labels}' of "
                f"'{subscripts}'; {_TAKES}",
                reason="SUBSCRIPTS_UNSUPPORTED",
            )
