"""What shape a view will have, before there is one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensord._indexing import index_items
from tensord.errors import Error
from tensord.transforms import (
    Diagonal,
    Embed,
    FixedStage,
    Freeze,
    Index,
    Insert,
    Merge,
    Pad,
    PassThrough,
    Placed,
    Slice,
    Stage,
    Unmerge,
)

_Shape = tuple[int, ...]
_ONE = np.zeros((), np.bool_)


def viewed_shape(shape: _Shape, stages: Sequence[Stage]) -> _Shape | None:
    """Returns the shape that stages make of another; None if only the server can say.

    None also where something is wrong with them, which the server says best.
    """
    seen: _Shape | None = shape
    for stage in stages:
        if seen is None:
            return None
        if isinstance(stage, Index):
            seen = _indexed(seen, stage)
        elif not isinstance(stage, FixedStage):
            seen = _made(seen, stage)
        elif seen in stage.shapes:
            seen = stage.shapes[seen]
        else:
            below = seen
            seen = stage.shapes[below] = _made(below, stage)
    return seen


def are_injective(stages: Sequence[Stage]) -> bool:
    """Whether it is known here that no element is seen twice."""
    return all(
        isinstance(stage, Index) or all(map(_is_injective, stage)) for stage in stages
    )


def _is_injective(placed: Placed) -> bool:
    transform = placed.transform
    if isinstance(transform, Insert):
        return transform.extent <= 1
    return isinstance(
        transform, (PassThrough, Merge, Unmerge, Slice, Pad, Freeze, Diagonal)
    )


def _indexed(shape: _Shape, stage: Index) -> _Shape | None:
    try:
        index_items(stage.key)
        seen: _Shape = np.broadcast_to(_ONE, shape)[stage.key].shape
    except (Error, IndexError, TypeError, ValueError):
        return None
    return seen


def _made(shape: _Shape, stage: Sequence[Placed]) -> _Shape | None:
    extents: dict[int, int] = {}
    lower: list[int] = []
    for placed in stage:
        if not isinstance(placed, Placed) or any(
            not 0 <= i < len(shape) for i in placed.lower
        ):
            return None
        upper = _upper(placed, tuple(shape[i] for i in placed.lower))
        if upper is None or len(upper) != len(placed.upper):
            return None
        if any(i in extents for i in placed.upper):
            return None
        extents.update(zip(placed.upper, upper))
        lower += placed.lower
    if sorted(lower) != list(range(len(shape))):
        return None
    if sorted(extents) != list(range(len(extents))):
        return None
    return tuple(extents[i] for i in range(len(extents)))


def _upper(placed: Placed, lower: _Shape) -> _Shape | None:
    """The extents of the modes above, of a transform that is right."""
    transform = placed.transform
    if isinstance(transform, Merge):
        return (math.prod(lower),)
    if isinstance(transform, Insert):
        return (transform.extent,) if not lower and transform.extent >= 0 else None
    if isinstance(transform, Diagonal):
        return lower[:1] if len(set(lower)) == 1 else None
    if len(lower) != 1:
        return None
    (extent,) = lower
    if isinstance(transform, PassThrough):
        return lower
    if isinstance(transform, Unmerge):
        return transform.extents if math.prod(transform.extents) == extent else None
    if isinstance(transform, Freeze):
        return () if 0 <= transform.index < extent else None
    if isinstance(transform, Slice) and transform.step:
        indices = range(transform.start, transform.stop, transform.step)
        fits = not indices or (0 <= min(indices) and max(indices) < extent)
        return (len(indices),) if fits else None
    if isinstance(transform, Embed) and transform.constant >= 0:
        fits = all(each >= 0 for each in transform.coefficients + transform.extents)
        last = transform.constant + sum(
            (n - 1) * each for n, each in zip(transform.extents, transform.coefficients)
        )
        fits = fits and 0 not in transform.extents and last < extent
        return transform.extents if fits else None
    if isinstance(transform, Pad) and min(transform.before, transform.after) >= 0:
        return (transform.before + extent + transform.after,)
    return None
