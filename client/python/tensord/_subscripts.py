"""Modes and einsum subscripts."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Union

from tensord._arguments import check_type
from tensord.errors import InvalidArgument

Modes = Union[str, Sequence[int]]
"""One label for each mode of a tensor: "ijk", or any int32 numbers."""

# NumPy's letters for 0 to 51, and then as many others as anyone will want.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FIRST_FURTHER_LETTER = 0x4E00
_FURTHER_LETTER_COUNT = 20_000


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


def modes_in_one(modes_a: Modes, modes_b: Modes) -> list[int]:
    """Returns the modes that only one of two tensors has, those of the first first."""
    a, b = mode_labels(modes_a, "modes_a"), mode_labels(modes_b, "modes_b")
    return [label for label in a if label not in b] + [
        label for label in b if label not in a
    ]


class Subscripts(NamedTuple):
    """Subscripts, read.

    Attributes:
        inputs: Labels of one or two operands.
        output: Labels of the result.
    """

    inputs: tuple[str, ...]
    output: str


def single_operation(
    subscripts: str, shapes: Sequence[tuple[int, ...]]
) -> Subscripts | None:
    """Reads einsum subscripts if one operation can do what they say.

    That is the contraction of two operands or the transposition or sum of one, each
    label once per operand, without an ellipsis, and all extents of a label equal.

    Args:
        subscripts: E.g. "ijk,kjl->il"; blanks do not matter.
        shapes: Those of the operands.

    Returns:
        None for everything else, also for what is malformed.
    """
    read = _simple_subscripts(subscripts)
    if read is None or len(read.inputs) != len(shapes):
        return None
    extents: dict[str, int] = {}
    for labels, shape in zip(read.inputs, shapes):
        if len(labels) != len(shape):
            return None
        for label, extent in zip(labels, shape):
            if extents.setdefault(label, extent) != extent:
                return None
    return read


@functools.lru_cache(maxsize=1024)
def _simple_subscripts(subscripts: str) -> Subscripts | None:
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = tuple(left.split(","))
    if len(inputs) > 2 or not all(map(_are_distinct_letters, (*inputs, output))):
        return None
    counts = Counter("".join(inputs))
    if not arrow:
        output = "".join(sorted(label for label, n in counts.items() if n == 1))
    if not all(label in counts for label in output):
        return None
    return Subscripts(inputs, output)


def _are_distinct_letters(labels: str) -> bool:
    return (not labels or labels.isalpha()) and len(set(labels)) == len(labels)


class Factors(NamedTuple):
    """Subscripts of a factorization, read.

    Attributes:
        a: Labels of the operand.
        results: Those of the results.
    """

    a: str
    results: tuple[str, ...]


def factor_subscripts(subscripts: str, names: Sequence[str]) -> Factors:
    """Reads subscripts of one operand and of the results that `names` has.

    >>> factor_subscripts("abcd->abk,kcd", ("q", "r"))
    Factors(a='abcd', results=('abk', 'kcd'))

    Raises:
        InvalidArgument: They are malformed (`SUBSCRIPTS_MALFORMED`).
    """
    left, *right = _sides(subscripts, "abcd->abk,kcd")
    if len(left) != 1 or len(right) != 1 or len(right[0]) != len(names):
        raise InvalidArgument(
            f"subscripts are {subscripts!r}, wanted one operand, '->' and "
            f"{len(names)} result{'s' * (len(names) > 1)}, {' and '.join(names)}",
            reason="SUBSCRIPTS_MALFORMED",
        )
    return Factors(left[0], tuple(right[0]))


def equation_subscripts(subscripts: str, *, has_b: bool) -> tuple[str, str, str]:
    """Reads subscripts of equations: labels of `a`, `b`, or "", and `d`.

    >>> equation_subscripts("ij,ik->jk", has_b=True)
    ('ij', 'ik', 'jk')

    Raises:
        InvalidArgument: They are malformed (`SUBSCRIPTS_MALFORMED`).
    """
    left, *right = _sides(subscripts, "ij,ik->jk")
    operands = ["a", "b"][: 1 + has_b]
    if len(left) != len(operands) or len(right) != 1 or len(right[0]) != 1:
        raise InvalidArgument(
            f"subscripts are {subscripts!r}, wanted those of {' and '.join(operands)}, "
            "'->' and one result",
            reason="SUBSCRIPTS_MALFORMED",
        )
    return left[0], left[1] if has_b else "", right[0][0]


def _sides(subscripts: str, example: str) -> list[list[str]]:
    """Returns the terms of each side of the arrows.

    Raises:
        InvalidArgument: There are other characters (`SUBSCRIPTS_MALFORMED`).
    """
    check_type("subscripts", subscripts, str, f"a string, e.g. {example!r}")
    for column, character in enumerate(subscripts.replace("->", "  "), 1):
        if not (_is_letter(character) or character in ", "):
            raise InvalidArgument(
                f"column {column}: got {character!r}, wanted letters, ',' and '->'",
                reason="SUBSCRIPTS_MALFORMED",
            )
    return [side.split(",") for side in subscripts.replace(" ", "").split("->")]


def _is_letter(character: str) -> bool:
    """As the server has it for `einsum`: opt_einsum goes on behind the letters."""
    return character.isalpha() or character >= "\xc0"


class Einsum(NamedTuple):
    """An Einstein sum as it travels.

    Attributes:
        subscripts: E.g. "ij,jk->ik".
        operands: What they are for.
    """

    subscripts: str
    operands: tuple[Any, ...]


def read_einsum(subscripts: Any, operands: tuple[Any, ...]) -> Einsum:
    """Returns what NumPy takes in either form as subscripts and operands.

    >>> read_einsum(a, ([0, 1], b, [1, 2], [0, 2]))
    Einsum(subscripts='AB,BC->AC', operands=(a, b))

    Args:
        subscripts: Letters; or, of NumPy's other form, the first operand.
        operands: The operands; or, of the other form, the labels of the first operand
            and so on, and perhaps those of the result.

    Raises:
        InvalidArgument: A label is out of range.
        TypeError: Labels are no ints.
    """
    if isinstance(subscripts, str):
        return Einsum(subscripts, operands)
    items = (subscripts, *operands)
    if len(items) < 2:
        raise TypeError(
            f"subscripts is of type {type(subscripts).__name__}, wanted a string, e.g. "
            "'ij,jk->ik', or an operand, the list of its labels, and so on"
        )
    count = len(items) // 2
    inputs = ",".join(
        _letters(f"the labels of operand {i}", items[2 * i + 1]) for i in range(count)
    )
    if len(items) % 2 == 1:
        inputs += "->" + _letters("the labels of the result", items[-1])
    return Einsum(inputs, items[: 2 * count : 2])


def _letters(argument: str, labels: Iterable[Any]) -> str:
    """Returns the letters, in the same order, for labels that are numbers."""
    try:
        numbers = [
            label if label is Ellipsis else operator.index(label) for label in labels
        ]
    except TypeError:
        raise TypeError(
            f"{argument} are {labels!r}, wanted a list of ints and ..."
        ) from None
    return "".join(_letter(argument, number) for number in numbers)


def _letter(argument: str, number: Any) -> str:
    if number is Ellipsis:
        return "..."
    if not 0 <= number < len(_LETTERS) + _FURTHER_LETTER_COUNT:
        raise InvalidArgument(
            f"{argument} have {number}, wanted 0 to "
            f"{len(_LETTERS) + _FURTHER_LETTER_COUNT - 1}",
            reason="MODE_OUT_OF_RANGE",
        )
    if number < len(_LETTERS):
        return _LETTERS[number]
    return chr(_FIRST_FURTHER_LETTER + number - len(_LETTERS))


def letters(count: int) -> str:
    """Returns as many labels for modes."""
    return "".join(_letter("labels", number) for number in range(count))
