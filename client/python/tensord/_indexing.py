"""What stands between brackets, as it travels."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensord.errors import InvalidIndex, Unimplemented
from tensord.v1 import stages_pb2

_LARGEST = 2**63 - 1
_TAKES = "wanted ints, slices, None and one ellipsis"


def index_items(key: Any) -> list[stages_pb2.IndexItem]:
    """Returns the items of NumPy's basic indexing.

    Numbers below 0 count from the end; it is the server that knows where that is.

    Args:
        key: What `__getitem__` is given.

    Raises:
        InvalidIndex: An item is an array, a list, a bool or what else is no item of
            basic indexing (`INDEX_UNSUPPORTED`), or a number is out of range.
        Unimplemented: An item is a mask (`INDEX_UNSUPPORTED`).
        TypeError: A slice has bounds that are no ints.
    """
    items = key if isinstance(key, tuple) else (key,)
    return [_item(item, position) for position, item in enumerate(items)]


def coordinate_key(coordinate: Sequence[Any], mode_count: int) -> tuple[Any, ...]:
    """Returns what stands between NumPy's brackets for a coordinate of CuTe's slicing.

    Args:
        coordinate: For each mode its index, or None for all of it; tuples of these,
            nested in any way, stand for as many modes as they have items in all.
        mode_count: How many modes there are.

    Raises:
        InvalidIndex: An item is none of these (`INDEX_UNSUPPORTED`), or there are too
            few or too many (`MODE_COUNT_MISMATCH`).
    """
    items = tuple(_leaves(coordinate))
    for position, item in enumerate(items):
        if item is Ellipsis or isinstance(item, slice):
            raise InvalidIndex(
                f"item {position} of the coordinate is {item!r}, wanted an int or None",
                reason="INDEX_UNSUPPORTED",
            )
    if len(items) != mode_count:
        raise InvalidIndex(
            f"the coordinate has {len(items)} items, wanted {mode_count}, one for "
            "each mode",
            reason="MODE_COUNT_MISMATCH",
        )
    return tuple(slice(None) if item is None else item for item in items)


def _leaves(coordinate: Sequence[Any]) -> Iterator[Any]:
    for item in coordinate:
        if isinstance(item, tuple):
            yield from _leaves(item)
        else:
            yield item


def takes_everything(key: Any, mode_count: int) -> bool:
    """Returns whether a key stands for a whole tensor, as it is: `[...]`, `[:, :]`."""
    items = key if isinstance(key, tuple) else (key,)
    ellipsis_count = sum(item is Ellipsis for item in items)
    all_count = sum(_is_all(item) for item in items)
    return (
        ellipsis_count + all_count == len(items)
        and ellipsis_count <= 1
        and all_count <= mode_count
    )


def _item(item: Any, position: int) -> stages_pb2.IndexItem:
    if item is None:
        return stages_pb2.IndexItem(new_mode=stages_pb2.IndexNewMode())
    if item is Ellipsis:
        return stages_pb2.IndexItem(ellipsis=stages_pb2.IndexEllipsis())
    if _is_all(item):
        return stages_pb2.IndexItem(all=stages_pb2.IndexAll())
    if isinstance(item, slice):
        return stages_pb2.IndexItem(slice=_slice(item, position))
    if _is_mask(item):
        raise Unimplemented(
            f"item {position} of the index is a mask on the server: what it takes has an "
            "extent that nobody knows here; `t[mask] = number` is computed, "
            "`where(mask, a, b)` too, and `t[mask.numpy()]`",
            reason="INDEX_UNSUPPORTED",
        )
    if _is_advanced(item):
        raise InvalidIndex(
            f"item {position} of the index is of type {type(item).__name__}: that is "
            "advanced indexing, which makes no view; ints alone may be read so, "
            f"as a copy; {_TAKES} for views",
            reason="INDEX_UNSUPPORTED",
        )
    try:
        index = operator.index(item)
    except TypeError:
        raise InvalidIndex(
            f"item {position} of the index is of type {type(item).__name__}, {_TAKES}",
            reason="INDEX_UNSUPPORTED",
        ) from None
    if abs(index) > _LARGEST:
        raise InvalidIndex(
            f"index {index} at position {position} is out of range, wanted an int64",
            reason="INDEX_OUT_OF_RANGE",
        )
    return stages_pb2.IndexItem(index=index)


def _is_all(item: Any) -> bool:
    if not isinstance(item, slice):
        return False
    return item.start is None and item.stop is None and item.step is None


def _is_mask(item: Any) -> bool:
    return bool(hasattr(item, "ndim") and item.ndim > 0 and item.dtype == np.bool_)


def _is_advanced(item: Any) -> bool:
    """Whether NumPy would copy elements for it: arrays, sequences and masks."""
    if isinstance(item, (bool, np.bool_)):
        return True
    if hasattr(item, "ndim"):
        return bool(item.ndim > 0 or item.dtype == np.bool_)
    return isinstance(item, Sequence) and not isinstance(item, str)


def _slice(item: slice, position: int) -> stages_pb2.IndexSlice:
    bounds = {"start": item.start, "stop": item.stop, "step": item.step}
    try:
        # What leaves the mode is cut off, so it does not matter by how much.
        limited = {
            name: max(-_LARGEST, min(operator.index(bound), _LARGEST))
            for name, bound in bounds.items()
            if bound is not None
        }
    except TypeError:
        raise TypeError(
            f"item {position} of the index is {item!r}, wanted ints or None in it"
        ) from None
    return stages_pb2.IndexSlice(**limited)
