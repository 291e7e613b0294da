"""Programs as users write them: statements, Einstein sums and NCON's lists."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Sequence
from typing import Any, TypeGuard

import numpy as np

from tensord._arguments import check_type, integer_of
from tensord._messages import enum_values
from tensord._names import words
from tensord._products import PathStart, ProgramProduct
from tensord.errors import Error, InvalidArgument
from tensord.v1 import program_pb2

METHODS: dict[str, program_pb2.PathMethod] = {
    name.replace("_", "-"): value
    for name, value in enum_values(program_pb2.PathMethod, "PATH_METHOD_").items()
}
"""How paths are found, by the names that `optimize=` takes: "auto", "greedy", ..."""

_DEFINITIONS = frozenset({":=", "≔"})
_ASSIGNMENTS = _DEFINITIONS | {"+=", "-=", "="}
_PLACE = re.compile(r"(?:line (\d+), )?column (\d+)[:,] ")
_PLACE_IN_COSTS = re.compile(r"costs, column (\d+): ")
_LONGEST_SECONDS = 1e9
_LONGEST_LINE = 100


@dataclasses.dataclass(frozen=True)
class Statements:
    """What the statements of a program do to names, for all that this client can tell.

    Attributes:
        made: Names that `:=` makes, or `=` without brackets, and no later statement
            reads.
        written: Names that there are before and that are written.
        tensors: Names with brackets.
    """

    made: tuple[str, ...]
    written: tuple[str, ...]
    tensors: frozenset[str]


def read_statements(text: str, known: Container[str] = ()) -> Statements:
    """Finds out which names a program makes and writes; the server reads the rest.

    Args:
        text: The program.
        known: Names that stand for something before it.
    """
    tensors: set[str] = set()
    # (what is written, whether it is made where there is none, how, what is read)
    statements: list[tuple[str, bool, str, list[str]]] = []
    names: list[str] = []
    outputs: list[tuple[str, bool]] = []  # Before the last one, and their brackets.
    depth, parentheses, before, has_brackets = 0, 0, "", False
    is_value = False  # Of an option.
    for word, is_name in words(text):
        if word == "[" and before:
            tensors.add(before)
            has_brackets = True
        if word == "(" and before and depth == 0:  # A function.
            names.pop()
        depth += (word == "[") - (word == "]")
        parentheses += (word == "(") - (word == ")")
        before = word if is_name else ""
        if depth > 0:  # Labels.
            continue
        if is_name:
            if not is_value:
                names.append(word)
            has_brackets = is_value = False
        elif parentheses > 0 and word == "=" and names:  # An option.
            names.pop()
            is_value = True
        elif parentheses > 0 or not names:
            is_value = False
        elif word == ",":
            outputs.append((names.pop(), has_brackets))
        elif word in _ASSIGNMENTS:
            outputs.append((names.pop(), has_brackets))
            names = []
            for i, (output, has) in enumerate(outputs):
                may_make = word in _DEFINITIONS or (word == "=" and not has)
                # All is read before the first one is there.
                statements.append((output, may_make, word, [] if i else names))
            outputs = []
    made: dict[str, None] = {}
    seen: set[str] = set()
    written: dict[str, None] = {}
    for output, may_make, assignment, read in statements:
        for name in read:
            made.pop(name, None)
        is_new = output not in seen and output not in known
        if may_make and (is_new or assignment in _DEFINITIONS):
            made.pop(output, None)
            made[output] = None
            seen.add(output)
        elif output not in seen:
            written[output] = None
    return Statements(tuple(made), tuple(written), frozenset(tensors))


def einsum_source(subscripts: str) -> program_pb2.ProgramSource:
    """Returns subscripts as they travel."""
    return program_pb2.ProgramSource(einsum=subscripts)


def ncon_source(
    labels: Sequence[Sequence[int]],
    order: Sequence[int] | None,
    output: Sequence[int] | None,
) -> program_pb2.ProgramSource:
    """Returns NCON's lists as they travel.

    Raises:
        TypeError: They are no lists of ints.
    """
    check_type("labels", labels, (list, tuple), "a list of lists of ints")
    lists = [
        program_pb2.NconLabels(labels=_integers(f"the labels of operand {i}", each))
        for i, each in enumerate(labels)
    ]
    ncon = program_pb2.Ncon(
        operands=lists,
        order=_integers("order", () if order is None else order),
        output=_integers("output", () if output is None else output),
    )
    return program_pb2.ProgramSource(ncon=ncon)


def _integers(argument: str, values: Sequence[int]) -> list[int]:
    try:
        return [integer_of(argument, value) for value in values]
    except TypeError:
        raise TypeError(f"{argument} is {values!r}, wanted a list of ints") from None


def path_options(
    optimize: Any,
    memory_limit: int | None,
    seed: int,
    operand_count: int | None = None,
    element_bytes: int = 8,
    costs: str | None = None,
    start: PathStart | None = None,
) -> program_pb2.PathOptions:
    """Returns how the order of contractions is found, as it travels.

    Args:
        optimize: One of `METHODS`, seconds, a path, True, False or None; or a method
            with a memory limit in elements, as in NumPy.
        memory_limit: Most bytes of intermediate results; None for no limit.
        seed: Of searches that are random.
        operand_count: Of a single product; None for statements.
        element_bytes: What an element of the memory limit in elements takes.
        costs: What labels cost, see `ProgramOperations.einsum`; None for their extents.
        start: What an earlier search found; None where there was none.

    Raises:
        InvalidArgument: Values that are wrong (`PATH_MALFORMED`,
            `OPTION_OUT_OF_RANGE`).
        TypeError: Values of the wrong types.
    """
    message = program_pb2.PathOptions(seed=_in_int64("seed", seed))
    if costs is not None:
        check_type("costs", costs, str, "what labels cost, e.g. 'a=>χ, b=>χ^2'")
        message.costs = costs
    if start is not None:
        wanted = "a product that explain told of, or a path"
        check_type("start", start, (ProgramProduct, Sequence), wanted)
        if isinstance(start, ProgramProduct):
            message.start.sliced.extend(start.sliced)
            start = start.path
        message.start.steps.extend(_steps("start", start, operand_count))
    if memory_limit is not None:
        message.memory_limit_bytes = _in_int64("memory_limit", memory_limit, 0)
    if optimize is None or optimize is True:
        return message
    if isinstance(optimize, str):
        message.method = _method(optimize)
    elif isinstance(optimize, (int, float, np.number)) and optimize is not False:
        if not 0 < optimize < _LONGEST_SECONDS:
            raise InvalidArgument(
                f"optimize is {optimize} seconds, wanted more than 0 and less than 1e9",
                reason="OPTION_OUT_OF_RANGE",
            )
        message.time_budget.FromNanoseconds(int(float(optimize) * 1e9))
    elif _is_limited(optimize):
        name, limit = optimize
        message.method = _method(name)
        limit = integer_of("the memory limit of optimize", limit)
        message.memory_limit_bytes = min(limit * element_bytes, 2**63 - 1)
    else:
        message.steps.extend(_steps("optimize", optimize, operand_count))
    return message


def _is_limited(optimize: Any) -> TypeGuard[tuple[str, int]]:
    """Whether it is `("greedy", 1000)`."""
    return (
        isinstance(optimize, (tuple, list))
        and len(optimize) == 2
        and isinstance(optimize[0], str)
        and isinstance(optimize[1], (int, np.integer))
    )


def _method(name: str) -> program_pb2.PathMethod:
    try:
        return METHODS[name.lower().replace("_", "-")]
    except KeyError:
        raise InvalidArgument(
            f"optimize is {name!r}, wanted one of "
            + ", ".join(map(repr, METHODS))
            + ", a path, seconds, True or False",
            reason="PATH_METHOD_UNKNOWN",
        ) from None


def _steps(
    name: str, path: Any, operand_count: int | None
) -> list[program_pb2.PathStep]:
    if operand_count is None:
        raise InvalidArgument(
            f"{name} is {path!r}, a path, but those are for a single product, wanted "
            f"one of {', '.join(map(repr, METHODS))}; parentheses order statements",
            reason="PATH_MALFORMED",
        )
    if path is False:
        # The product is the last of those that are left.
        path = [(0, 1)] + [(0, left - 1) for left in range(operand_count - 1, 1, -1)]
        path = path[: max(0, operand_count - 1)]
    check_type(name, path, Sequence, "a method, a path, seconds, True or False")
    if len(path) > 0 and path[0] == "einsum_path":
        path = path[1:]
    return [
        program_pb2.PathStep(positions=_integers(f"step {i} of {name}", step))
        for i, step in enumerate(path)
    ]


def _in_int64(argument: str, value: int, least: int = -(2**63)) -> int:
    number = integer_of(argument, value)
    if not least <= number < 2**63:
        raise InvalidArgument(
            f"{argument} is {number}, wanted {least} to 2**63 - 1",
            reason="OPTION_OUT_OF_RANGE",
        )
    return number


class PointingOut:
    """A context whose errors say where in a text they are.

    >>> with PointingOut("D[a] := A[b]"):
    ...     link.call(method, request)
    """

    def __init__(self, text: str, costs: str = "") -> None:
        """
        Args:
            text: What errors are about.
            costs: Symbolic costs, which they may be about instead.
        """
        self._text = text
        self._costs = costs

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Error):
            point_out(error, self._text, self._costs)


def point_out(error: Error, text: str, costs: str = "") -> None:
    """Adds the line that an error is about to its message, with a caret below.

    Args:
        error: As the server sent it; it is changed.
        text: What it is about.
        costs: Symbolic costs, which it may be about instead.
    """
    in_costs = _PLACE_IN_COSTS.match(error.message)
    place = _PLACE.match(error.message)
    if in_costs is not None:
        number, column, text = 1, int(in_costs[1]), costs.replace("\n", " ")
    elif place is not None:
        number, column = int(place[1] or 1), int(place[2])
    else:
        return
    lines = re.split("\r\n|\r|\n", text)
    if not 0 < number <= len(lines):
        return
    line = lines[number - 1].replace("\t", " ")
    at = column - 1
    begin = max(0, min(at - _LONGEST_LINE // 2, len(line) - _LONGEST_LINE))
    shown = line[begin : begin + _LONGEST_LINE]
    error.message += f"\n    {shown}\n    {' ' * (at - begin)}^"
    error.args = (error.message,)
