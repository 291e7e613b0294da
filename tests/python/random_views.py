"""Views that tensors and arrays both have, drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tensord import RemoteTensor

KINDS = (
    "index", "reshape", "transpose", "pad", "broadcast", "flip", "windows", "diagonal"
)  # fmt: skip


def numbered(shape: tuple[int, ...], dtype: object = np.float64) -> np.ndarray:
    """Elements that differ, as far as the dtype allows."""
    return np.arange(math.prod(shape)).reshape(shape).astype(dtype)


def random_shape(rng: np.random.Generator, most_modes: int = 5) -> tuple[int, ...]:
    count = rng.integers(0, most_modes + 1)
    extents = rng.choice([0, 1, 1, 2, 3, 4, 5, 6], count, p=[0.02] + [0.14] * 7)
    return tuple(extents.tolist())


def is_small(array: np.ndarray) -> bool:
    return array.size <= 10_000 and array.ndim <= 12


def random_bound(rng: np.random.Generator, extent: int) -> int | None:
    return None if rng.random() < 0.3 else int(rng.integers(-extent - 2, extent + 3))


def random_item(rng: np.random.Generator, extent: int) -> object:
    if extent > 0 and rng.random() < 0.25:
        index = int(rng.integers(-extent, extent))
        return np.int64(index) if rng.random() < 0.3 else index
    if rng.random() < 0.2:
        return slice(None)
    step = None if rng.random() < 0.4 else int(rng.choice([-3, -2, -1, 1, 2, 3]))
    return slice(random_bound(rng, extent), random_bound(rng, extent), step)


def random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple:
    """An index for any shape: ints, slices, new modes and perhaps an ellipsis."""
    items = [random_item(rng, extent) for extent in shape]
    if rng.random() < 0.5:
        begin, end = sorted(rng.integers(0, len(items) + 1, 2))
        items[begin:end] = [Ellipsis]
    elif rng.random() < 0.5:
        del items[rng.integers(0, len(items) + 1) :]
    while rng.random() < 0.3:
        items.insert(rng.integers(0, len(items) + 1), None)
    return tuple(items)


def random_factors(rng: np.random.Generator, size: int) -> tuple[int, ...]:
    """Extents with so many elements."""
    factors = [int(rng.integers(0, 4)), 0] if size == 0 else []
    while size > 1:
        factor = rng.choice([n for n in range(2, size + 1) if size % n == 0])
        factors.append(int(factor))
        size //= int(factor)
    factors += [1] * int(rng.integers(0, 3))
    return tuple(map(int, rng.permutation(factors)))


def padded(x, pad_width, value=0):
    if isinstance(x, RemoteTensor):
        return x.pad(pad_width, value)
    return np.pad(x, pad_width, constant_values=value)


def windowed(x, window_shape, axis=None):
    if isinstance(x, RemoteTensor):
        return x.sliding_window_view(window_shape, axis)
    return sliding_window_view(x, window_shape, axis)


def flipped(x, axis=None):
    return x.flip(axis) if isinstance(x, RemoteTensor) else np.flip(x, axis)


def repeated(x, shape):
    if isinstance(x, RemoteTensor):
        return x.broadcast_to(shape)
    return np.broadcast_to(x, shape)


def random_step(
    rng: np.random.Generator, shape: tuple[int, ...]
) -> tuple[Callable[[Any], Any], str]:
    """A way to see arrays and tensors of a shape, and its name."""
    count = len(shape)
    kind = rng.choice(KINDS)
    if kind == "reshape":
        wanted = random_factors(rng, math.prod(shape))
        return lambda x: x.reshape(wanted), f"reshape{wanted}"
    if kind == "transpose":
        axes = tuple(map(int, rng.permutation(count)))
        return lambda x: x.transpose(axes), f"transpose{axes}"
    if kind == "pad" and count:
        widths = [tuple(map(int, rng.choice([0, 0, 1, 2], 2))) for _ in shape]
        return lambda x: padded(x, widths, -1), f"pad{widths}"
    if kind == "broadcast":
        front = tuple(map(int, rng.choice([1, 2, 3], rng.integers(0, 2))))
        wanted = front + tuple(int(rng.integers(1, 4)) if n == 1 else n for n in shape)
        return lambda x: repeated(x, wanted), f"broadcast{wanted}"
    if kind == "flip" and count:
        axis = int(rng.integers(0, count))
        return lambda x: flipped(x, axis), f"flip({axis})"
    if kind == "windows" and count and min(shape) > 0:
        axis = int(rng.integers(0, count))
        window = int(rng.integers(1, shape[axis] + 1))
        return lambda x: windowed(x, window, axis), f"windows({window}, {axis})"
    if kind == "diagonal" and count >= 2:
        axis1, axis2 = map(int, rng.permutation(count)[:2])
        offset = int(rng.integers(-2, 3))
        return (
            lambda x: x.diagonal(offset, axis1, axis2),
            f"diagonal({offset}, {axis1}, {axis2})",
        )
    key = random_key(rng, shape)
    return lambda x: x[key], f"{key}"


def assert_same(view: RemoteTensor, expected: np.ndarray, how: object = "") -> None:
    assert view.shape == expected.shape and view.dtype == expected.dtype, how
    np.testing.assert_array_equal(view.numpy(), expected, err_msg=str(how))
