"""Transforms of modes, side by side in stages, for `RemoteTensor.view`.

They are CK Tile's coordinate transforms. Each takes indices of upper modes, those of
the new view, to indices of lower ones, those of the tensor that is viewed. A stage is
a list of transforms with their places: every lower and every upper mode belongs to
exactly one of them, and a stage permutes as it pleases.

>>> from tensord.transforms import Merge, Pad, PassThrough, Unmerge, place
>>> t.shape
(4, 30)
>>> t.view([
...     [place(PassThrough(), 0, 0), place(Pad(0, 2), 1, 1)],
...     [place(PassThrough(), 0, 1), place(Unmerge((8, 4)), 1, (0, 2))],
... ]).shape
(8, 4, 4)

A CK Tile user finds `transform_tensor_view(t, (f, g), (i, j), (k, l))` as
`t.view([[place(f, i, k), place(g, j, l)]])`, and

    make_pass_through_transform(length)          as PassThrough()
    make_merge_transform(lengths)                as Merge()
    make_unmerge_transform(lengths)              as Unmerge(lengths)
    make_slice_transform(length, begin, end)     as Slice(begin, end)
    make_pad_transform(length, left, right)      as Pad(left, right)
    make_left_pad_transform(length, left)        as Pad(left, 0)
    make_right_pad_transform(length, right)      as Pad(0, right)
    make_freeze_transform(index)                 as Freeze(index)
    make_insert_transform(index)                 as Insert(extent)
    make_replicate_transform(lengths)            as Replicate(lengths)
    make_embed_transform(lengths, coefficients)  as Embed(lengths, coefficients)
    make_modulo_transform(modulus, length)       as Modulo(modulus, length)
    make_xor_transform(lengths)                  as Xor()
    make_offset_transform(length, offset)        as Offset(offset, length)

Lower extents are known, so they are not said. Beyond those there are `Diagonal` and,
as a stage of its own, `Index`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any, Union

from tensord._arguments import check_type, integer_of, integers_of
from tensord._indexing import index_items
from tensord._wire import length_delimited
from tensord.errors import InvalidArgument
from tensord.v1 import stages_pb2, tensor_pb2

# The tag of `ViewSpec.stages`.
_STAGES = bytes([stages_pb2.ViewSpec.STAGES_FIELD_NUMBER << 3 | 2])
_ORDERS = {
    "C": tensor_pb2.ORDER_LAST_MODE_FASTEST,
    "F": tensor_pb2.ORDER_FIRST_MODE_FASTEST,
}


class Transform:
    """One of the transforms below; immutable."""

    def __post_init__(self) -> None:
        """Makes ints of NumPy's integers, and tuples of sequences."""
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            name = f"{type(self).__name__}.{field.name}"
            value = getattr(self, field.name)
            if field.type == "int":
                value = integer_of(name, value)
            elif field.type == "tuple[int, ...]":
                value = integers_of(name, value)
            else:
                _check_order(name, value)
            object.__setattr__(self, field.name, value)


@dataclasses.dataclass(frozen=True)
class PassThrough(Transform):
    """1 mode of 1: the index stays as it is."""


@dataclasses.dataclass(frozen=True)
class Merge(Transform):
    """1 mode of any number: counts through the lower modes.

    Attributes:
        order: "C" when the last lower mode is the fastest, "F" when the first one is.
    """

    order: str = "C"


@dataclasses.dataclass(frozen=True)
class Unmerge(Transform):
    """Any number of modes of 1: undoes a `Merge` of modes of these extents.

    Attributes:
        extents: Their product is the lower extent.
        order: As for `Merge`.
    """

    extents: tuple[int, ...]
    order: str = "C"


@dataclasses.dataclass(frozen=True)
class Slice(Transform):
    """1 mode of 1: the indices `range(start, stop, step)`.

    No number counts from the end: all of extent n backwards is `Slice(n - 1, -1, -1)`.
    `Index` reads numbers as NumPy does.
    """

    start: int
    stop: int
    step: int = 1


@dataclasses.dataclass(frozen=True)
class Pad(Transform):
    """1 mode of 1: padding before the first index, and after the last one."""

    before: int
    after: int


@dataclasses.dataclass(frozen=True)
class Freeze(Transform):
    """No mode of 1: its index is `index`."""

    index: int


@dataclasses.dataclass(frozen=True)
class Insert(Transform):
    """1 mode of none: everything is there `extent` times."""

    extent: int = 1


@dataclasses.dataclass(frozen=True)
class Replicate(Transform):
    """Any number of modes of none: everything is there for each of their indices."""

    extents: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Embed(Transform):
    """Any number of modes of 1: `constant + sum(coefficient * index)`.

    Attributes:
        extents: Of the upper modes.
        coefficients: One for each of them.
        constant: The lower index that all indices 0 lead to.
    """

    extents: tuple[int, ...]
    coefficients: tuple[int, ...]
    constant: int = 0


@dataclasses.dataclass(frozen=True)
class Modulo(Transform):
    """1 mode of 1: `index % modulus`, for `extent` indices."""

    modulus: int
    extent: int


@dataclasses.dataclass(frozen=True)
class Xor(Transform):
    """2 modes of 2, a swizzle: (i, j) leads to `(i, j ^ (i % n))`.

    The extent of the second mode, n, is a power of two.
    """


@dataclasses.dataclass(frozen=True)
class Offset(Transform):
    """1 mode of 1: `index + offset`, for `extent` indices that stay in the mode."""

    offset: int
    extent: int


@dataclasses.dataclass(frozen=True)
class Diagonal(Transform):
    """1 mode of several, which have one extent: all their indices are `index`."""


@dataclasses.dataclass(frozen=True)
class Placed:
    """A transform and the modes that it is between; see `place`."""

    transform: Transform
    lower: tuple[int, ...]
    upper: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Index:
    """A stage that is what NumPy's brackets would do: `Index(np.s_[1, ::-1, None])`."""

    key: Any


class FixedStage(tuple[Placed, ...]):
    """Transforms side by side that nobody changes: what is once known of them stays.

    Attributes:
        shapes: Those that it makes of others, None where only the server knows.
        encoded: As it travels, once it did.
    """

    shapes: dict[tuple[int, ...], tuple[int, ...] | None]
    encoded: bytes | None

    def __new__(cls, placed: Iterable[Placed]) -> FixedStage:
        stage = super().__new__(cls, placed)
        stage.shapes = {}
        stage.encoded = None
        return stage


Stage = Union[Sequence[Placed], Index]
"""One step from a tensor to a view: transforms side by side, or an index."""


def place(
    transform: Transform,
    lower: int | Sequence[int],
    upper: int | Sequence[int],
) -> Placed:
    """Says which modes a transform is between.

    >>> place(Unmerge((2, 3)), lower=1, upper=(1, 2))

    Args:
        transform: One of the transforms.
        lower: Positions of modes of what is viewed; `()` for none.
        upper: Positions of modes of the view; `()` for none.

    Raises:
        TypeError: `transform` is none, or a position is no int.
    """
    check_type("transform", transform, Transform, "one of tensord.transforms")
    return Placed(transform, integers_of("lower", lower), integers_of("upper", upper))


def encoded_view(stages: Sequence[Stage]) -> bytes:
    """Returns how a tensor is seen, a `ViewSpec`; raises as `stage_message` does."""
    return b"".join(_STAGES + length_delimited(_encoded(stage)) for stage in stages)


def _encoded(stage: Stage) -> bytes:
    if not isinstance(stage, FixedStage):
        return stage_message(stage).SerializeToString()
    if stage.encoded is None:
        stage.encoded = stage_message(stage).SerializeToString()
    return stage.encoded


def stage_message(stage: Stage) -> stages_pb2.ViewStage:
    """Returns a stage as it travels.

    Raises:
        InvalidArgument: A number is not an int64 (`NUMBER_OUT_OF_RANGE`), or what
            stands in an index is no item (`INDEX_UNSUPPORTED`).
        TypeError: It is neither a list of placed transforms nor an `Index`.
    """
    if isinstance(stage, Index):
        index = stages_pb2.IndexStage(items=index_items(stage.key))
        return stages_pb2.ViewStage(index=index)
    check_type("stage", stage, Sequence, "a list of place(...), or an Index")
    transforms = [_transform_message(placed) for placed in stage]
    return stages_pb2.ViewStage(transform=stages_pb2.TransformStage(transforms=transforms))


def _transform_message(placed: Placed) -> stages_pb2.Transform:
    check_type("transform of a stage", placed, Placed, "place(transform, lower, upper)")
    transform = placed.transform
    values = {
        field.name: getattr(transform, field.name)
        for field in dataclasses.fields(transform)  # type: ignore[arg-type]
    }
    if "order" in values:
        values["order"] = _ORDERS[values["order"]]
    name = type(transform).__name__
    field = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    try:
        kind = getattr(stages_pb2.Transform, name)(**values)
        return stages_pb2.Transform(
            lower=placed.lower, upper=placed.upper, **{field: kind}
        )
    except ValueError:  # Protobuf's, which names neither field nor transform.
        raise InvalidArgument(
            f"{placed} has a number that is out of range, wanted int64, and int32 "
            "for positions",
            reason="NUMBER_OUT_OF_RANGE",
        ) from None


def _check_order(argument: str, order: str) -> None:
    check_type(argument, order, str, "'C' or 'F'")
    if order not in _ORDERS:
        raise InvalidArgument(
            f"{argument} is {order!r}, wanted 'C' or 'F'", reason="ORDER_UNKNOWN"
        )
