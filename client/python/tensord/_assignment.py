"""Elements of tensors that are overwritten where masks or indices say so."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensord import _stages as stages
from tensord._arrays import assigned_array
from tensord._conversions import converted, copied, separate_from
from tensord._taking import check_range, host_mask, index_operand, place_of_indices
from tensord._tensor_handle import TensorHandle
from tensord.errors import InvalidArgument, InvalidIndex


def mask_of(key: Any) -> Any:
    """Returns a key that is a mask, as an array or a tensor of bools; None: it is none."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(key, (TensorHandle, np.ndarray)):  # Also one bool of all elements.
        return key if key.dtype == np.bool_ else None
    return host_mask(key)


def overwrite_where(x: Any, mask: Any, value: Any) -> None:
    """Overwrites elements of which a mask of the first modes says so, with a number.

    Raises:
        InvalidArgument: The value has several elements.
        InvalidIndex: The mask has other extents.
    """
    value = _value_for(x, value)
    if value.size != 1:
        raise InvalidArgument(
            f"elements by a mask get a value of shape {value.shape}, wanted one number",
            reason="MODE_COUNT_MISMATCH",
        )
    if mask.shape != x.shape[: mask.ndim]:
        raise InvalidIndex(
            f"the mask has shape {mask.shape}, wanted that of the tensor's first "
            f"modes, {x.shape[: mask.ndim]}",
            reason="MODE_EXTENT_MISMATCH",
        )
    _put(x, value.reshape(()), (), "where", mask, range(mask.ndim))


def overwrite_at(x: Any, key: Any, value: Any) -> bool:
    """Overwrites elements by ints along one mode: `t[[1, 5]] = 0`, `t[:, [2, 0]] = a`.

    Of ints that are the same the last counts.

    Returns:
        False: No item of the key is a list of ints or such an array of one mode; then
        nothing is done.

    Raises:
        InvalidArgument: The value does not broadcast to those elements.
        InvalidIndex: An int is out of range.
    """
    found = place_of_indices(x, key)
    if found is None:
        return False
    seen, axis, given = found
    indices = index_operand("the index", given)
    check_range(seen, axis, indices)
    value = _value_for(x, value)
    extent, count = seen.shape[axis], len(indices)
    target = (*seen.shape[:axis], count, *seen.shape[axis + 1 :])
    kept = stages.assigned_axes(value.shape, target)
    modes = [i - value.ndim + seen.ndim for i in kept]
    dropped = tuple(i for i in range(value.ndim) if i not in kept)
    value = value.squeeze(dropped) if dropped else value
    if axis in modes and count != 1:
        places = np.full(extent, count)  # Which of the value, or none.
        places[indices] = np.arange(count)
        modes[modes.index(axis)] = seen.ndim
        _put(seen, value, modes, "take", places, [axis])
        return True
    if axis in modes:
        value = value.squeeze(modes.index(axis))
        modes.remove(axis)
    mask = np.zeros(extent, np.bool_)
    mask[indices] = True
    _put(seen, value, modes, "where", mask, [axis])
    return True


def _value_for(x: Any, value: Any) -> Any:
    """A value in the tensor's dtype."""
    if not isinstance(value, TensorHandle):
        return assigned_array(value, x.dtype)
    return value if value.dtype == x.dtype else converted(value, x.dtype)


def _put(x: Any, value: Any, modes: Any, op: str, where: Any, modes_where: Any) -> None:
    """Overwrites `x` with what it has, or a value, as indices or a mask say."""

    def put(value: Any, where: Any) -> None:
        own = range(x.ndim)
        options = {"op": op, "b": where, "modes_b": modes_where, "out": x}
        x.session.elementwise(value, modes, x, own, own, **options)

    try:
        put(separate_from(x, value), separate_from(x, where))
        return
    except InvalidArgument as error:
        if error.reason != "OUTPUT_OVERLAPS_INPUT":
            raise
    put(
        *(
            copied(each) if isinstance(each, TensorHandle) else each
            for each in (value, where)
        )
    )
