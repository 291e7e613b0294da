"""Stages that do what NumPy's methods of the same names do."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from tensord._arguments import integer_of, integers_of
from tensord.errors import InvalidArgument, InvalidIndex
from tensord.transforms import (
    Diagonal,
    Embed,
    FixedStage,
    Freeze,
    Insert,
    Merge,
    Pad,
    PassThrough,
    Placed,
    Slice,
    Transform,
    Unmerge,
    place,
)

_LARGEST = 2**63 - 1
# Stages are made again and again by who computes in loops.
_MOST_KNOWN = 4096

Shape = tuple[int, ...]
IntOrInts = Union[int, Sequence[int]]


class Group(NamedTuple):
    """Neighbouring modes of one shape, and those of another with as many indices.

    Attributes:
        lower, upper: Their extents.
    """

    lower: Shape
    upper: Shape


def axis_of(argument: str, axis: int, mode_count: int) -> int:
    """Returns the position of a mode; a number below 0 counts from the end.

    Raises:
        InvalidIndex: There is no such mode.
        TypeError: It is no int.
    """
    number = integer_of(argument, axis)
    if not -mode_count <= number < mode_count:
        raise InvalidIndex(
            f"{argument} is {number}, but there are {mode_count} modes, wanted "
            f"{-mode_count} <= {argument} < {mode_count}",
            reason="MODE_OUT_OF_RANGE",
        )
    return number % mode_count


def axes_of(argument: str, axes: IntOrInts, mode_count: int) -> tuple[int, ...]:
    """Returns the positions of modes.

    Raises:
        InvalidIndex: There is no such mode.
        InvalidArgument: A mode is named twice.
        TypeError: They are no ints.
    """
    numbers = integers_of(argument, axes)
    positions = tuple(axis_of(argument, number, mode_count) for number in numbers)
    if len(set(positions)) < len(positions):
        raise InvalidArgument(
            f"{argument} is {numbers}, which names a mode twice, wanted each once",
            reason="MODE_REPEATED",
        )
    return positions


@functools.lru_cache(_MOST_KNOWN)
def transpose_stage(mode_count: int, axes: Shape | None) -> FixedStage:
    """Puts the modes into the order of `axes`; None reverses them."""
    if axes is None:
        order = tuple(reversed(range(mode_count)))
    else:
        order = axes_of("axes", axes, mode_count)
    if len(order) != mode_count:
        raise InvalidArgument(
            f"axes is {axes or ()} for {mode_count} modes, wanted each once",
            reason="MODE_COUNT_MISMATCH",
        )
    return FixedStage(
        place(PassThrough(), axis, upper) for upper, axis in enumerate(order)
    )


def swapped_axes(mode_count: int, axis1: int, axis2: int) -> tuple[int, ...]:
    """The order of modes of which two have changed places."""
    order = list(range(mode_count))
    first = axis_of("axis1", axis1, mode_count)
    second = axis_of("axis2", axis2, mode_count)
    order[first], order[second] = second, first
    return tuple(order)


def moved_axes(
    mode_count: int, source: IntOrInts, destination: IntOrInts
) -> tuple[int, ...]:
    """The order of modes of which some go elsewhere and the others close ranks."""
    sources = axes_of("source", source, mode_count)
    destinations = axes_of("destination", destination, mode_count)
    if len(sources) != len(destinations):
        raise InvalidArgument(
            f"source names {len(sources)} modes but destination {len(destinations)}, "
            "wanted as many",
            reason="MODE_COUNT_MISMATCH",
        )
    order = [axis for axis in range(mode_count) if axis not in sources]
    for to, axis in sorted(zip(destinations, sources)):
        order.insert(to, axis)
    return tuple(order)


def inferred_shape(shape: Shape, wanted: Shape) -> Shape:
    """Returns `wanted` with -1 replaced by what is left of the elements of `shape`.

    Raises:
        InvalidArgument: There is no such extent, or the elements do not fit.
    """
    size = math.prod(shape)
    known = math.prod(extent for extent in wanted if extent != -1)
    unknown_count = wanted.count(-1)
    if unknown_count > 1 or any(extent < -1 for extent in wanted):
        raise InvalidArgument(
            f"shape is {wanted}, wanted extents >= 0 and at most one -1",
            reason="NEGATIVE_EXTENT",
        )
    fits = known > 0 and size % known == 0 if unknown_count else known == size
    if not fits:
        raise InvalidArgument(
            f"{size} elements of shape {shape} do not fit shape {wanted}",
            reason="EXTENT_PRODUCT_MISMATCH",
        )
    return tuple(size // known if extent == -1 else extent for extent in wanted)


def matching_groups(shape: Shape, wanted: Shape) -> list[Group]:
    """Returns the finest division of two shapes into groups of equal products.

    Modes of extent 1 are groups of their own where they can be, with or without a
    counterpart. Groups of one mode on either side keep whatever strides there are.

    >>> matching_groups((4, 6, 5), (2, 2, 30))
    [Group(lower=(4,), upper=(2, 2)), Group(lower=(6, 5), upper=(30,))]

    Args:
        shape, wanted: With the same number of elements.
    """
    if math.prod(shape) == 0 and shape != wanted:
        return [Group(shape, wanted)]
    groups = []
    i = j = 0
    while i < len(shape) or j < len(wanted):
        lower, upper = shape[i : i + 1], wanted[j : j + 1]
        if lower != upper and (1,) in (lower, upper):  # One without a counterpart.
            lower, upper = (lower, ()) if lower == (1,) else ((), upper)
        while math.prod(lower) != math.prod(upper):
            if math.prod(lower) < math.prod(upper):
                lower = shape[i : i + len(lower) + 1]
            else:
                upper = wanted[j : j + len(upper) + 1]
        groups.append(Group(lower, upper))
        i += len(lower)
        j += len(upper)
    return groups


@functools.lru_cache(_MOST_KNOWN)
def reshape_stages(shape: Shape, wanted: Shape) -> tuple[FixedStage, ...]:
    """Counts the same elements, last mode fastest, through other extents.

    Each group of modes is merged to one mode, and that unmerged, so that what a group
    does to its strides leaves those of the others alone.

    Args:
        shape, wanted: With the same number of elements.
    """
    merging: list[_Made] = []
    unmerging: list[_Made] = []
    for lower, upper in matching_groups(shape, wanted):
        if not upper:
            merging.append(_DROPPED)
        elif not lower:
            unmerging.append(_Made(Insert(1), 0, 1))
        else:
            single = len(lower) == 1
            merging.append(_PASSED if single else _Made(Merge(), len(lower), 1))
            single = len(upper) == 1
            unmerging.append(
                _PASSED if single else _Made(Unmerge(upper), 1, len(upper))
            )
    return tuple(
        _in_order(stage)
        for stage in (merging, unmerging)
        if any(made is not _PASSED for made in stage)
    )


@functools.lru_cache(_MOST_KNOWN)
def squeeze_stage(shape: Shape, axis: Shape | None) -> FixedStage:
    """Drops modes of extent 1; None drops all of them."""
    if axis is None:
        dropped = tuple(i for i, extent in enumerate(shape) if extent == 1)
    else:
        dropped = axes_of("axis", axis, len(shape))
    for position in dropped:
        if shape[position] != 1:
            raise InvalidArgument(
                f"mode {position} of shape {shape} has extent {shape[position]}, "
                "wanted 1 to drop it",
                reason="MODE_EXTENT_MISMATCH",
            )
    return _in_order(
        _DROPPED if position in dropped else _PASSED for position in range(len(shape))
    )


@functools.lru_cache(_MOST_KNOWN)
def expand_stage(mode_count: int, axis: Shape) -> FixedStage:
    """Makes modes of extent 1 at these positions of the view."""
    count = mode_count + len(axis)
    made = axes_of("axis", axis, count)
    return _in_order(
        _Made(Insert(1), 0, 1) if position in made else _PASSED
        for position in range(count)
    )


@functools.lru_cache(_MOST_KNOWN)
def broadcast_stage(shape: Shape, wanted: Shape) -> FixedStage:
    """Repeats modes of extent 1, and everything along new modes in front."""
    new_count = len(wanted) - len(shape)
    stretched = shape if new_count < 0 else wanted[new_count:]
    if new_count < 0 or not all(n in (1, m) for n, m in zip(shape, stretched)):
        raise InvalidArgument(
            f"shape {shape} does not broadcast to {wanted}, wanted equal extents, or "
            "1 in the former, counted from the last mode",
            reason="MODE_EXTENT_MISMATCH",
        )
    made = [_Made(Insert(extent), 0, 1) for extent in wanted[:new_count]]
    for extent, repeated in zip(shape, stretched):
        if extent == repeated:
            made.append(_PASSED)
        else:
            made += [_DROPPED, _Made(Insert(repeated), 0, 1)]
    return _in_order(made)


def assigned_axes(shape: Shape, target: Shape) -> tuple[int, ...]:
    """Returns which modes of a value stay when it is assigned to a target.

    The others have extent 1: they are repeated, or the target has nothing for them.
    Modes belong together that are as far from the last one.

    Raises:
        InvalidArgument: The value does not broadcast to the target.
    """
    first = max(0, len(shape) - len(target))  # of the modes that both have
    trailing = shape[first:]
    opposite = target[len(target) - len(trailing) :]
    fits = all(n == 1 for n in shape[:first]) and all(
        n in (1, m) for n, m in zip(trailing, opposite)
    )
    if not fits:
        raise InvalidArgument(
            f"a value of shape {shape} does not broadcast to {target}, wanted equal "
            "extents, or 1 in the former, counted from the last mode",
            reason="MODE_EXTENT_MISMATCH",
        )
    return tuple(
        first + i for i, (n, m) in enumerate(zip(trailing, opposite)) if n == m
    )


def pad_stage(mode_count: int, pad_width: Any) -> FixedStage:
    """Adds padding before and after each mode.

    Args:
        mode_count: How many there are.
        pad_width: As `numpy.pad` takes it.
    """
    return _in_order(
        _Made(Pad(before, after), 1, 1) if before or after else _PASSED
        for before, after in pad_widths(mode_count, pad_width)
    )


def pad_widths(mode_count: int, pad_width: Any) -> list[tuple[int, int]]:
    """Returns the padding before and after each mode.

    Args:
        mode_count: How many there are.
        pad_width: `width`, `(before, after)`, one of these for all modes, or a pair
            for each, or a mapping from modes to either.

    Raises:
        InvalidArgument: It has another shape, or a number below 0.
        TypeError: It has something else than ints.
    """
    if isinstance(pad_width, Mapping):
        pairs = [(0, 0)] * mode_count
        for axis, width in pad_width.items():
            position = axis_of("axis of pad_width", axis, mode_count)
            (pairs[position],) = pad_widths(1, width)
        return pairs
    try:
        widths = np.asarray(pad_width)
        are_ints = all(isinstance(width, int) for width in widths.flat)
        if widths.dtype.kind not in "iu" and not (widths.dtype == object and are_ints):
            raise TypeError(f"pad_width is {pad_width!r}, wanted ints")
        widths = np.broadcast_to(widths, (mode_count, 2))
    except ValueError:  # Ragged, or of another shape.
        raise InvalidArgument(
            f"pad_width is {pad_width!r}, wanted an int, a pair, or a pair for each of "
            f"{mode_count} modes",
            reason="MODE_COUNT_MISMATCH",
        ) from None
    if np.any(widths < 0):
        raise InvalidArgument(
            f"pad_width is {pad_width!r}, wanted numbers >= 0",
            reason="NEGATIVE_PADDING",
        )
    if np.any(widths > _LARGEST):
        raise InvalidArgument(
            f"pad_width is {pad_width!r}, wanted numbers below 2**63",
            reason="PADDING_TOO_LARGE",
        )
    return [(before, after) for before, after in widths.tolist()]


def diagonal_stages(
    shape: Shape, offset: int, axis1: int, axis2: int
) -> list[list[Placed]]:
    """Makes one mode, the last one, of the diagonal of two."""
    count = len(shape)
    if count < 2:
        raise InvalidArgument(
            f"shape {shape} has {count} modes, wanted at least 2 for a diagonal",
            reason="MODE_COUNT_MISMATCH",
        )
    first, second = axis_of("axis1", axis1, count), axis_of("axis2", axis2, count)
    if first == second:
        raise InvalidArgument(
            f"axis1 and axis2 are both mode {first}, wanted two modes",
            reason="MODE_REPEATED",
        )
    above = integer_of("offset", offset)
    begins = {first: max(0, -above), second: max(0, above)}
    length = max(0, min(shape[axis] - begin for axis, begin in begins.items()))
    slicing = [
        place(
            Slice(begins[i], begins[i] + length) if i in begins else PassThrough(), i, i
        )
        for i in range(count)
    ]
    others = [i for i in range(count) if i not in begins]
    joining = [place(PassThrough(), i, upper) for upper, i in enumerate(others)]
    return [slicing, [*joining, place(Diagonal(), (first, second), len(others))]]


@functools.lru_cache(_MOST_KNOWN)
def flip_stage(shape: Shape, axis: Shape | None) -> FixedStage:
    """Turns modes around; None turns all of them."""
    count = len(shape)
    turned = range(count) if axis is None else axes_of("axis", axis, count)
    return _in_order(
        _Made(Slice(extent - 1, -1, -1), 1, 1) if position in turned else _PASSED
        for position, extent in enumerate(shape)
    )


def window_stage(
    shape: Shape, window_shape: IntOrInts, axis: IntOrInts | None
) -> list[Placed]:
    """Makes modes of windows that slide along modes; they are the last ones.

    Args:
        shape: Extents.
        window_shape: Extents of the windows.
        axis: The mode of each of them, perhaps one for several; None for all modes.
    """
    count = len(shape)
    windows = integers_of("window_shape", window_shape)
    if axis is None:
        axes: tuple[int, ...] = tuple(range(count))
    else:
        axes = tuple(axis_of("axis", i, count) for i in integers_of("axis", axis))
    if len(windows) != len(axes):
        raise InvalidArgument(
            f"window_shape is {windows} for {len(axes)} modes, wanted as many extents",
            reason="MODE_COUNT_MISMATCH",
        )
    stage = []
    for position, extent in enumerate(shape):
        uppers = [i for i, each in enumerate(axes) if each == position]
        within = tuple(windows[i] for i in uppers)
        places = extent - sum(window - 1 for window in within)
        if any(window < 0 for window in within) or places < 1 and within:
            raise InvalidArgument(
                f"window_shape is {windows}, wanted extents >= 0 that fit mode "
                f"{position} of extent {extent}",
                reason="MODE_EXTENT_MISMATCH",
            )
        if within:
            embed = Embed((places, *within), (1,) * (1 + len(within)))
            stage.append(
                place(embed, position, (position, *(count + i for i in uppers)))
            )
        else:
            stage.append(place(PassThrough(), position, position))
    return stage


class _Made(NamedTuple):
    """A transform, and how many modes it makes of how many."""

    transform: Transform
    lower_count: int
    upper_count: int


_PASSED = _Made(PassThrough(), 1, 1)
_DROPPED = _Made(Freeze(0), 1, 0)


def _in_order(transforms: Iterable[_Made]) -> FixedStage:
    """Places transforms so that modes keep their order on both sides."""
    stage = []
    lower = upper = 0
    for transform, lower_count, upper_count in transforms:
        lowers = range(lower, lower + lower_count)
        uppers = range(upper, upper + upper_count)
        stage.append(place(transform, lowers, uppers))
        lower, upper = lowers.stop, uppers.stop
    return FixedStage(stage)
