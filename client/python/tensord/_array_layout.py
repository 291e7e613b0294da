"""Functions of `tensord.array` that arrange elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arguments import integers_of
from tensord._array_session import tensor_of
from tensord._conversions import converted, refuse_tensors
from tensord._elementwise import broadcast_shape, session_of
from tensord._stages import IntOrInts, axis_of, inferred_shape
from tensord._subscripts import letters
from tensord._taking import take
from tensord.errors import InvalidArgument, Unimplemented


def reshape(x: Any, /, shape: IntOrInts, order: str = "C", *, copy: Any = None) -> Any:
    """Returns a view with other extents; a copy if one is asked for.

    What has the shape already is returned as it is.
    """
    check_order(order)
    x = tensor_of(x)
    wanted = inferred_shape(x.shape, integers_of("shape", shape))
    view = x if wanted == x.shape else x.reshape(wanted)
    return view.copy() if copy else view


def ravel(x: Any, order: str = "C") -> Any:
    """Returns a view with one mode."""
    return reshape(x, -1, order)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Any:
    """Returns a view with the modes in another order."""
    return transpose(x, axes)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Returns a view with the modes in another order; in reverse without one."""
    a = tensor_of(a)
    is_same = axes is not None and tuple(axes) == tuple(range(a.ndim))
    return a if is_same else a.transpose(axes)


def matrix_transpose(x: Any, /) -> Any:
    """Returns a view with the last two modes in the other order."""
    return tensor_of(x).mT


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Returns a view in which two modes have changed places."""
    return tensor_of(x).swapaxes(axis1, axis2)


def moveaxis(x: Any, source: IntOrInts, destination: IntOrInts, /) -> Any:
    """Returns a view in which modes are elsewhere."""
    return tensor_of(x).moveaxis(source, destination)


def expand_dims(x: Any, /, axis: IntOrInts = 0) -> Any:
    """Returns a view with more modes of extent 1."""
    return tensor_of(x).expand_dims(axis)


def squeeze(x: Any, /, axis: IntOrInts | None = None) -> Any:
    """Returns a view without modes of extent 1."""
    return tensor_of(x).squeeze(axis)


def broadcast_to(x: Any, /, shape: IntOrInts) -> Any:
    """Returns a view that repeats the tensor."""
    return tensor_of(x).broadcast_to(shape)


def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """Returns views that repeat tensors to the shape that they have together."""
    known = [tensor_of(each, *arrays) for each in arrays]
    shape = broadcast_shape(*known)
    return tuple(each.broadcast_to(shape) for each in known)


def flip(x: Any, /, axis: IntOrInts | None = None) -> Any:
    """Returns a view with modes turned around."""
    return tensor_of(x).flip(axis)


def roll(x: Any, /, shift: int, axis: int | None = None) -> Any:
    """Moves elements along a mode; those that leave it come in again."""
    x = tensor_of(x)
    if axis is None:
        return roll(x.reshape(-1), shift, 0).reshape(x.shape)
    axis = axis_of("axis", axis, x.ndim)
    extent = x.shape[axis]
    if extent == 0 or shift % extent == 0:
        return x.copy()
    first = extent - shift % extent
    parts = [x[_at(axis, slice(first, None))], x[_at(axis, slice(first))]]
    return concat(parts, axis=axis)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Returns a view of the diagonal of two modes, which is the last mode then."""
    return tensor_of(x).diagonal(offset, axis1, axis2)


def trace(
    x: Any,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: npt.DTypeLike | None = None,
) -> Any:
    """Sums the diagonal of two modes."""
    return tensor_of(x).diagonal(offset, axis1, axis2).sum(-1, dtype=dtype)


def diag(v: Any, k: int = 0) -> Any:
    """Returns a matrix with a vector on a diagonal, or the view of a matrix's diagonal."""
    v = tensor_of(v)
    if v.ndim == 2:
        return v.diagonal(k)
    if v.ndim != 1:
        raise InvalidArgument(
            f"diag has a tensor of {v.ndim} modes, wanted 1 or 2",
            reason="MODE_COUNT_MISMATCH",
        )
    extent = v.shape[0] + abs(k)
    result = v.session.permute(
        v, "i", "i", pad_width=(0, extent * extent - v.shape[0])
    ).reshape(extent, extent)
    result[...] = 0
    result.diagonal(k)[...] = v
    return result


def concat(arrays: Any, /, axis: int | None = 0, *, dtype: Any = None) -> Any:
    """Puts tensors behind each other, along a mode; None: all their elements."""
    known = _together(arrays, dtype)
    if axis is None:
        known, axis = [each.reshape(-1) for each in known], 0
    first = known[0]
    axis = axis_of("axis", axis, first.ndim)
    for i, each in enumerate(known):
        fits = each.ndim == first.ndim and all(
            m == axis or each.shape[m] == first.shape[m] for m in range(first.ndim)
        )
        if not fits:
            raise InvalidArgument(
                f"operand {i} of concat has shape {each.shape} but operand 0 "
                f"{first.shape}, wanted equal extents but for mode {axis}",
                reason="MODE_EXTENT_MISMATCH",
            )
    rest = sum(each.shape[axis] for each in known[1:])
    modes = range(first.ndim)
    result = first.session.permute(first, modes, modes, pad_width={axis: (0, rest)})
    begin = first.shape[axis]
    for each in known[1:]:
        end = begin + each.shape[axis]
        if each.size:
            result[_at(axis, slice(begin, end))] = each
        begin = end
    return result


concatenate = concat


def stack(arrays: Any, /, axis: int = 0) -> Any:
    """Puts tensors behind each other, along a new mode."""
    known = _together(arrays, None)
    shapes = {each.shape for each in known}
    if len(shapes) > 1:
        raise InvalidArgument(
            f"stack has operands of shapes {sorted(shapes)}, wanted equal ones",
            reason="MODE_EXTENT_MISMATCH",
        )
    axis = axis_of("axis", axis, known[0].ndim + 1)
    return concat([each.expand_dims(axis) for each in known], axis=axis)


def atleast_1d(*arrays: Any) -> Any:
    """Returns views with a mode at least."""
    return _alike([_atleast(each, 1, arrays) for each in arrays])


def atleast_2d(*arrays: Any) -> Any:
    """Returns views with two modes at least; new ones come in front."""
    return _alike([_atleast(each, 2, arrays) for each in arrays])


def atleast_3d(*arrays: Any) -> Any:
    """Returns views with three modes at least; a matrix gets a last one."""
    known = [_atleast(each, 2, arrays) for each in arrays]
    return _alike([each.expand_dims(2) if each.ndim == 2 else each for each in known])


def vstack(tup: Any, *, dtype: Any = None) -> Any:
    """Puts tensors below each other: vectors as rows."""
    return concat([_atleast(each, 2, tup) for each in tup], axis=0, dtype=dtype)


def hstack(tup: Any, *, dtype: Any = None) -> Any:
    """Puts tensors beside each other: along their second mode, vectors along theirs."""
    known = [_atleast(each, 1, tup) for each in tup]
    axis = 0 if known and known[0].ndim == 1 else 1
    return concat(known, axis=axis, dtype=dtype)


def dstack(tup: Any) -> Any:
    """Puts tensors behind each other, along their third mode."""
    known = [_atleast(each, 2, tup) for each in tup]
    return concat(
        [each.expand_dims(2) if each.ndim == 2 else each for each in known], axis=2
    )


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Returns each element along a mode so often, one behind the other.

    Args:
        a: The tensor.
        repeats: How often, an int or one for each index of the mode.
        axis: The mode; None for all elements.
    """
    a = tensor_of(a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = axis_of("axis", axis, a.ndim)
    refuse_tensors("repeats", repeats)
    return take(a, axis, np.repeat(np.arange(a.shape[axis]), repeats))


def tile(A: Any, reps: IntOrInts) -> Any:
    """Returns a tensor of copies of another one, so many along each mode."""
    refuse_tensors("reps", reps)
    counts = integers_of("reps", reps)
    if any(count < 0 for count in counts):
        raise InvalidArgument(
            f"reps is {reps}, wanted 0 and more", reason="EXTENT_NEGATIVE"
        )
    x = tensor_of(A)
    counts = (1,) * (x.ndim - len(counts)) + counts
    extents = (1,) * (len(counts) - x.ndim) + x.shape
    pairs = [n for pair in zip((1,) * len(extents), extents) for n in pair]
    wide = [n for pair in zip(counts, extents) for n in pair]
    shape = [count * extent for count, extent in zip(counts, extents)]
    return x.reshape(pairs).broadcast_to(wide).reshape(shape).copy()


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Returns views along a mode."""
    return tuple(tensor_of(x).moveaxis(axis, 0))


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Returns views along a mode, one behind the other.

    Args:
        x: The tensor.
        indices_or_sections: How many of equal extents, or where the others begin.
        axis: The mode.
    """
    x = tensor_of(x)
    axis = axis_of("axis", axis, x.ndim)
    refuse_tensors("indices_or_sections", indices_or_sections)
    extent = x.shape[axis]
    if np.ndim(indices_or_sections):
        begins = [int(each) for each in indices_or_sections]
    else:
        count = int(indices_or_sections)
        if count < 1 or extent % count:
            raise InvalidArgument(
                f"mode {axis} of extent {extent} has no {count} parts of equal "
                "extents, wanted a divisor",
                reason="EXTENT_PRODUCT_MISMATCH",
            )
        begins = [i * (extent // count) for i in range(1, count)]
    bounds = zip([0, *begins], [*begins, extent])
    return [x[_at(axis, slice(begin, end))] for begin, end in bounds]


def pad(
    x: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0
) -> Any:
    """Puts elements of one value around a tensor."""
    if mode != "constant":
        raise Unimplemented(
            f"mode is {mode!r}, wanted 'constant': nothing else is computed on the server",
            reason="OPTION_UNSUPPORTED",
        )
    x = tensor_of(x)
    refuse_tensors("pad_width", pad_width)
    modes = range(x.ndim)
    return x.session.permute(
        x, modes, modes, pad_width=pad_width, pad_value=constant_values
    )


def kron(a: Any, b: Any) -> Any:
    """Computes the Kronecker product."""
    a, b = tensor_of(a, b), tensor_of(b, a)
    count = max(a.ndim, b.ndim)
    shape_a = (1,) * (count - a.ndim) + a.shape
    shape_b = (1,) * (count - b.ndim) + b.shape
    labels = letters(a.ndim + b.ndim)
    left, right = labels[: a.ndim], labels[a.ndim :]
    pairs = itertools.zip_longest(left[::-1], right[::-1], fillvalue="")
    order = "".join(reversed(["".join((i, j)) for i, j in pairs]))
    dtype = dtypes.wire_dtype(np.result_type(a.dtype, b.dtype))
    a, b = (each if each.dtype == dtype else converted(each, dtype) for each in (a, b))
    product = a.session.einsum(f"{left},{right}->{order}", a, b)
    return product.reshape([math.prod(each) for each in zip(shape_a, shape_b)])


def tril(x: Any, /, k: int = 0) -> Any:
    """Computes matrices that are 0 above a diagonal."""
    return _triangle(x, np.tril, k)


def triu(x: Any, /, k: int = 0) -> Any:
    """Computes matrices that are 0 below a diagonal."""
    return _triangle(x, np.triu, k)


def _triangle(x: Any, part: Any, k: int) -> Any:
    x = tensor_of(x)
    if x.ndim < 2:
        raise InvalidArgument(
            f"a tensor of shape {x.shape} has no triangles, wanted two modes or more",
            reason="MODE_COUNT_MISMATCH",
        )
    mask = part(np.ones(x.shape[-2:], np.bool_), k)
    modes = range(x.ndim)
    zero = np.zeros((), x.dtype)
    return x.session.elementwise(
        x, modes, zero, (), modes, b=mask, modes_b=modes[-2:], op="where", dtype=x.dtype
    )


def _together(arrays: Any, dtype: Any) -> list[Any]:
    """Returns operands as tensors of one dtype."""
    operands = list(arrays)
    if not operands:
        raise InvalidArgument("there are no tensors, wanted one or more")
    session_of(*operands)
    known = [tensor_of(each, *operands) for each in operands]
    common = dtypes.wire_dtype(
        np.result_type(*(each.dtype for each in known)) if dtype is None else dtype
    )
    for i, each in enumerate(known):
        if not dtypes.can_cast(each.dtype, common, "same_kind"):
            raise TypeError(
                f"operand {i} has dtype {each.dtype}, wanted one that becomes {common} "
                "by casting 'same_kind'"
            )
    return [each if each.dtype == common else converted(each, common) for each in known]


def _atleast(x: Any, count: int, others: Any) -> Any:
    x = tensor_of(x, *others)
    missing = count - x.ndim
    return x.expand_dims(tuple(range(missing))) if missing > 0 else x


def _alike(tensors: list[Any]) -> Any:
    """As NumPy returns them: the only one, or a tuple."""
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _at(axis: int, item: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, item)


def check_order(order: str | None) -> None:
    """Refuses an order of elements that is not C's, nor what a tensor has.

    Raises:
        Unimplemented: It is "F" (`OPTION_UNSUPPORTED`).
    """
    if order not in ("K", "C", "A", None):
        raise Unimplemented(
            f"order is {order!r}, wanted 'C'", reason="OPTION_UNSUPPORTED"
        )


__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "concatenate",
    "diag",
    "diagonal",
    "dstack",
    "expand_dims",
    "flip",
    "hstack",
    "kron",
    "matrix_transpose",
    "moveaxis",
    "pad",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "unstack",
    "vstack",
]
