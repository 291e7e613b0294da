"""Elements of tensors that are taken by indices, which are tensors or arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._conversions import holds_tensors, refuse_tensors
from tensord._indexing import takes_everything
from tensord._tensor_handle import TensorHandle
from tensord.errors import InvalidArgument, InvalidIndex, Unimplemented

_LARGEST = np.iinfo(np.int64).max
_PLAIN = (int, slice, type(None), type(Ellipsis))


def index_operand(name: str, indices: Any) -> Any:
    """Returns indices as an operand: a tensor as it is, all else as an array.

    Args:
        name: What they are called, for the message.
        indices: Integers.

    Raises:
        InvalidIndex: One is beyond int64 (`INDEX_OUT_OF_RANGE`).
        TypeError: They are none, or a list has tensors.
    """
    if isinstance(indices, TensorHandle):
        if indices.dtype.kind in "iu":
            return indices
        raise TypeError(f"{name} has dtype {indices.dtype}, wanted an integer dtype")
    refuse_tensors(name, indices)
    array = np.asarray(indices)
    if array.size == 0 and not hasattr(indices, "dtype"):
        array = array.astype(np.int64)  # Of an empty list.
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} is {indices!r}, wanted ints")
    if array.dtype == np.uint64 and array.size and array.max() > _LARGEST:
        raise InvalidIndex(
            f"{name} has index {array.max()}, wanted an int64",
            reason="INDEX_OUT_OF_RANGE",
        )
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    return array.astype(dtypes.wire_dtype(array.dtype), copy=False)


def take(x: Any, axis: int, indices: Any) -> Any:
    """Returns the elements of a tensor that have indices along a mode.

    Args:
        x: The tensor.
        axis: The mode, from 0.
        indices: As from `index_operand`; their modes stand in the mode's place.

    Raises:
        InvalidIndex: Indices that are here are out of range. The server says it of
            others.
    """
    check_range(x, axis, indices)
    own = range(x.ndim, x.ndim + indices.ndim)
    modes = [*range(axis), *own, *range(axis + 1, x.ndim)]
    modes_x = [x.ndim + indices.ndim if i == axis else i for i in range(x.ndim)]
    return taken(x, modes_x, indices, own, modes)


def taken(
    x: Any,
    modes_x: Sequence[int],
    indices: Any,
    modes_indices: Sequence[int],
    modes: Sequence[int],
) -> Any:
    """Takes from the mode of `x` that the result lacks, as `op="take"` does."""
    return x.session.elementwise(x, modes_x, indices, modes_indices, modes, op="take")


def check_range(x: Any, axis: int, indices: Any) -> None:
    """Refuses indices that are here and not in the mode.

    Raises:
        InvalidIndex: They are not (`INDEX_OUT_OF_RANGE`).
    """
    if isinstance(indices, TensorHandle) or not indices.size:
        return
    extent = x.shape[axis]
    lowest, highest = int(indices.min()), int(indices.max())
    if -extent <= lowest and highest < extent:
        return
    raise InvalidIndex(
        f"index {lowest if lowest < -extent else highest} is out of range, mode {axis} "
        f"has extent {extent}",
        reason="INDEX_OUT_OF_RANGE",
    )


def place_of_indices(x: Any, key: Any) -> tuple[Any, int, Any] | None:
    """Finds ints of this computer along one mode in a key.

    Returns:
        The part that its other items are, of which that mode is all, its number there,
        and the ints; None where no item has several ints.

    Raises:
        InvalidIndex: A mask does not fit (`MODE_EXTENT_MISMATCH`).
        Unimplemented: Several items are ints, or they are a tensor or have several modes,
            or are apart from an int (`INDEX_UNSUPPORTED`).
    """
    if isinstance(key, _PLAIN):
        return None
    items = _without_masks(x, list(key) if isinstance(key, tuple) else [key])
    places = [i for i, item in enumerate(items) if _is_indices(item)]
    if not places:
        return None
    place = places[0]
    given: Any = items[place]
    mode_count = 0 if isinstance(given, TensorHandle) else np.ndim(given)
    items[place] = slice(None)
    together = [i for i, item in enumerate(items) if i == place or _is_index(item)]
    wrong = None
    if len(places) > 1:
        wrong = f"items {places} of the index are ints, wanted one such item"
    elif isinstance(given, TensorHandle):
        wrong = f"item {place} of the index is a tensor, wanted ints of this computer"
    elif mode_count != 1:
        wrong = f"item {place} of the index has {mode_count} modes, wanted 1"
    elif together[-1] - together[0] >= len(together):
        wrong = f"item {place} of the index is apart from another, wanted beside it"
    if wrong is not None:
        raise Unimplemented(
            f"{wrong}, as elements are overwritten along one mode",
            reason="INDEX_UNSUPPORTED",
        )
    seen = x if takes_everything(tuple(items), x.ndim) else x[tuple(items)]
    return seen, _axis_of(place, items, seen), given


def _without_masks(x: Any, items: list[Any]) -> list[Any]:
    """The items of an index, with masks of this computer as the ints of what they take.

    Raises:
        InvalidIndex: One has not the extents of its modes (`MODE_EXTENT_MISMATCH`).
    """
    masks = {i: m for i, item in enumerate(items) if (m := host_mask(item)) is not None}
    if not masks:
        return items
    seen = [
        masks[i].ndim if i in masks else int(item is not None and item is not Ellipsis)
        for i, item in enumerate(items)
    ]
    found: list[Any] = []
    mode = 0
    for i, item in enumerate(items):
        if item is Ellipsis:
            mode += x.ndim - sum(seen)
        if i in masks:
            extents = x.shape[mode : mode + seen[i]]
            if masks[i].shape != extents:
                raise InvalidIndex(
                    f"item {i} of the index is a mask of shape {masks[i].shape}, wanted "
                    f"that of its modes, {extents}",
                    reason="MODE_EXTENT_MISMATCH",
                )
            found += masks[i].nonzero()
        else:
            found.append(item)
        mode += seen[i]
    return found


def host_mask(item: Any) -> np.ndarray | None:
    """Returns an item of an index that is a mask of this computer, as an array."""
    mask: Any = item
    if isinstance(item, list) and item and isinstance(item[0], (bool, np.bool_, list)):
        mask = None if holds_tensors(item) else np.asarray(item)
    is_mask = isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.ndim
    return mask if is_mask else None


def _axis_of(place: int, items: Sequence[Any], seen: Any) -> int:
    """The mode of a part that an item stands for, which is all of that mode."""
    if any(item is Ellipsis for item in items[:place]):
        behind = sum(not _is_index(item) for item in items[place + 1 :])
        return int(seen.ndim) - 1 - behind
    return sum(not _is_index(item) for item in items[:place])


def _is_index(item: Any) -> bool:
    return not (item is None or item is Ellipsis or isinstance(item, slice))


def indexed(x: Any, key: Any) -> Any:
    """Returns `x[key]` where items of the key are arrays or tensors of indices.

    As in NumPy, they broadcast against each other, and their modes stand where they
    stand; or in front, where something is between them, or between one and an int.

    Returns:
        None where no item is one.

    Raises:
        InvalidIndex: One is out of range; or they do not broadcast
            (`MODE_EXTENT_MISMATCH`).
    """
    if isinstance(key, _PLAIN):
        return None
    items = list(key) if isinstance(key, tuple) else [key]
    if all(isinstance(item, _PLAIN) for item in items):
        return None
    items = _without_masks(x, items)
    indices = {
        place: index_operand(f"item {place} of the index", item)
        for place, item in enumerate(items)
        if _is_indices(item)
    }
    if not indices:
        return None
    for place in indices:
        items[place] = slice(None)
    together = [i for i, item in enumerate(items) if _is_index(item) or i in indices]
    seen = x if takes_everything(tuple(items), x.ndim) else x[tuple(items)]
    axes = [_axis_of(place, items, seen) for place in indices]
    is_apart = together[-1] - together[0] + 1 != len(together)
    if len(axes) == 1 and not is_apart:
        return take(seen, axes[0], *indices.values())
    result = _take_all(seen, axes, list(indices.values()))
    if is_apart or axes[0] == 0:
        return result
    count = result.ndim - seen.ndim + len(axes)
    own = range(count)
    before, behind = range(count, count + axes[0]), range(count + axes[0], result.ndim)
    return result.transpose([*before, *own, *behind])


def _take_all(x: Any, axes: Sequence[int], indices: Sequence[Any]) -> Any:
    """Returns elements by indices along several modes; those of `indices` come first."""
    try:
        count = len(np.broadcast_shapes(*(each.shape for each in indices)))
    except ValueError:
        shapes = " and ".join(str(each.shape) for each in indices)
        raise InvalidIndex(
            f"indices have shapes {shapes}, wanted such that broadcast",
            reason="MODE_EXTENT_MISMATCH",
        ) from None
    for axis, each in zip(axes, indices):
        check_range(x, axis, each)
    modes = [count + i for i in range(x.ndim)]
    for axis, each in zip(axes, indices):
        first = count - each.ndim
        own = [first + i for i in range(each.ndim) if each.shape[i] != 1]
        dropped = tuple(i for i in range(each.ndim) if each.shape[i] == 1)
        left = sorted({*modes, *own} - {count + axis})
        x = taken(x, modes, each.squeeze(dropped) if dropped else each, own, left)
        modes = left
    missing = tuple(i for i in range(count) if i not in modes)
    return x.expand_dims(missing) if missing else x


def _is_indices(item: Any) -> bool:
    """Whether NumPy would take elements for it: arrays and sequences of ints."""
    if isinstance(item, _PLAIN):
        return False
    if hasattr(item, "ndim") and hasattr(item, "dtype"):
        is_taken = item.ndim > 0 or isinstance(item, TensorHandle)
        return bool(is_taken and item.dtype.kind in "iu")
    if not isinstance(item, Sequence) or isinstance(item, (str, bytes)):
        return False
    if holds_tensors(item):
        return False
    array = np.asarray(item)
    return array.dtype.kind in "iu" or not array.size


def shape_along(x: Any, indices: Any, axis: int) -> tuple[int, ...]:
    """Returns the shape of what indices take along a mode of a tensor like them.

    Raises:
        InvalidArgument: Their other modes do not go together (`MODE_EXTENT_MISMATCH`,
            `MODE_COUNT_MISMATCH`).
    """
    if x.ndim != indices.ndim:
        raise InvalidArgument(
            f"indices has {indices.ndim} modes and the tensor {x.ndim}, wanted as many",
            reason="MODE_COUNT_MISMATCH",
        )
    of_x = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    try:
        return np.broadcast_shapes(of_x, indices.shape)
    except ValueError:
        raise InvalidArgument(
            f"shapes {x.shape} and {indices.shape} do not broadcast but for mode {axis}, "
            "wanted equal extents or 1",
            reason="MODE_EXTENT_MISMATCH",
        ) from None
