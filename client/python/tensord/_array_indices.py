"""Functions of `tensord.array` that take elements by indices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tensord._arguments import extents_of
from tensord._array_layout import check_order
from tensord._array_numbers import floor
from tensord._array_session import tensor_of
from tensord._conversions import stored
from tensord._stages import IntOrInts, axis_of
from tensord._taking import check_range, index_operand, shape_along, taken
from tensord._taking import take as take_indices
from tensord.errors import InvalidArgument, Unimplemented


def take(x: Any, indices: Any, /, axis: int | None = None, out: Any = None) -> Any:
    """Returns the elements of a tensor that have indices along a mode.

    Args:
        x: The tensor.
        indices: An int, for a view; ints as an array or a sequence, or a tensor of ints,
            for a copy in which their modes stand in the mode's place. Those below 0
            count from the end.
        axis: The mode; None numbers all elements.
        out: Tensor that receives the result.

    Raises:
        InvalidIndex: One is out of range. Of tensors the server says it, when the
            result is used; `out` has no contents then.
    """
    x = tensor_of(x, indices, out)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of("axis", axis, x.ndim)
    indices = index_operand("indices", indices)
    if isinstance(indices, np.ndarray) and indices.ndim == 0:
        result = x[(*(slice(None),) * axis, operator.index(indices))]
    else:
        result = take_indices(x, axis, indices)
    return result if out is None else stored(result, out)


def take_along_axis(x: Any, indices: Any, /, axis: int | None = -1) -> Any:
    """Returns for each index the element that a tensor has at the same place.

    Args:
        x: The tensor.
        indices: Ints, as an array or a tensor, with the modes of `x`; they broadcast
            against each other but for the mode.
        axis: The mode that they are of; None numbers all elements.
    """
    x = tensor_of(x, indices)
    indices = index_operand("indices", indices)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of("axis", axis, x.ndim)
    shape = shape_along(x, indices, axis)
    check_range(x, axis, indices)

    def kept(extents: tuple[int, ...]) -> list[int]:
        return [i for i in range(x.ndim) if i == axis or extents[i] == shape[i]]

    def dropped(extents: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(i for i in range(x.ndim) if i not in kept(extents))

    modes_x = [x.ndim if i == axis else i for i in kept(x.shape)]
    modes_indices = kept(indices.shape)
    seen = x.squeeze(dropped(x.shape)) if dropped(x.shape) else x
    if dropped(indices.shape):
        indices = indices.squeeze(dropped(indices.shape))
    return taken(seen, modes_x, indices, modes_indices, range(x.ndim))


def unravel_index(indices: Any, shape: IntOrInts, order: str = "C") -> tuple[Any, ...]:
    """Returns for each number of an element its index along each mode of a shape.

    Numbers out of range, and of 2**52 and more, are not told.
    """
    check_order(order)
    left = _numbers("indices", indices)
    found = []
    for extent in reversed(extents_of(shape)):
        whole = floor(left / extent).astype(np.int64)
        found.append(left - whole * extent)
        left = whole
    return tuple(reversed(found))


def ravel_multi_index(
    multi_index: Any, dims: IntOrInts, mode: str = "raise", order: str = "C"
) -> Any:
    """Returns numbers of elements from their indices along each mode of a shape.

    Indices out of range are not told.

    Raises:
        Unimplemented: `mode` is "wrap" or "clip" (`OPTION_UNSUPPORTED`).
    """
    check_order(order)
    if mode != "raise":
        raise Unimplemented(
            f"mode is {mode!r}, wanted 'raise'", reason="OPTION_UNSUPPORTED"
        )
    extents = extents_of(dims)
    if len(multi_index) != len(extents):
        raise InvalidArgument(
            f"multi_index has {len(multi_index)} items for {len(extents)} modes, wanted "
            "one for each",
            reason="MODE_COUNT_MISMATCH",
        )
    number: Any = 0
    for index, extent in zip(multi_index, extents):
        number = number * extent + _numbers("multi_index", index, *multi_index)
    return number


def _numbers(name: str, indices: Any, *others: Any) -> Any:
    """Integers as int64."""
    known = tensor_of(indices, *others)
    if known.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {known.dtype}, wanted an integer dtype")
    return known.astype(np.int64, copy=False)


__all__ = ["ravel_multi_index", "take", "take_along_axis", "unravel_index"]
