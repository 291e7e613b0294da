"""`tensord.array` arranges, multiplies and decomposes as NumPy and the array API do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
import tensord.array as xp
from random_arrays import random_array
from tensord import RemoteTensor
from test_array import ALL, COMPLEX, FLOATS, WHOLE, array, assert_same, few, seeds


@pytest.fixture(scope="module", autouse=True)
def session(address: str) -> Iterator[tensord.Session]:
    """The session of the namespace, one that waits."""
    with tensord.connect(address) as opened:
        assert xp.use(opened) is opened
        yield opened
        xp.use(None)


SHAPES = [(4,), (2, 3), (3, 3), (3, 1, 2), (2, 3, 4), (1, 1)]

# What is called of each: the namespace, a tensor or an array, and a number.
LAYOUTS: dict[str, Callable[[Any, Any, int], Any]] = {
    "reshape": lambda np, x, i: np.reshape(x, (-1,)),
    "permute_dims": lambda np, x, i: np.permute_dims(x, _rotated(x, i)),
    "moveaxis": lambda np, x, i: np.moveaxis(x, i % x.ndim, -1),
    "expand_dims": lambda np, x, i: np.expand_dims(x, axis=i % (x.ndim + 1)),
    "squeeze": lambda np, x, i: np.squeeze(x, axis=_ones(x)),
    "broadcast_to": lambda np, x, i: np.broadcast_to(x, (i, *x.shape)),
    "flip": lambda np, x, i: np.flip(x, axis=i % x.ndim),
    "roll": lambda np, x, i: np.roll(x, i - 2, axis=i % x.ndim),
    "concat": lambda np, x, i: np.concat([x, x, x], axis=i % x.ndim),
    "stack": lambda np, x, i: np.stack([x, x], axis=i % (x.ndim + 1)),
    "unstack": lambda np, x, i: np.unstack(x, axis=i % x.ndim)[0],
    "tril": lambda np, x, i: (
        np.tril(x, k=i - 2) if x.ndim > 1 else np.tril(x[None, ...])
    ),
    "triu": lambda np, x, i: (
        np.triu(x, k=i - 2) if x.ndim > 1 else np.triu(x[None, ...])
    ),
    "matrix_transpose": lambda np, x, i: np.matrix_transpose(x[None, ...]),
    "slice": lambda np, x, i: x[::-1, ...][: max(i, 1)],
}
NUMPY_LAYOUTS: dict[str, Callable[[Any, Any, int], Any]] = {
    "transpose": lambda np, x, i: np.transpose(x),
    "swapaxes": lambda np, x, i: np.swapaxes(x, 0, i % x.ndim),
    "ravel": lambda np, x, i: np.ravel(x),
    "diagonal": lambda np, x, i: np.diagonal(_matrix(x), i - 2, -2, -1),
    "trace": lambda np, x, i: np.trace(_matrix(x), i - 2, -1, -2),
    "split": lambda np, x, i: np.split(x, x.shape[-1], axis=-1)[-1],
    "split at": lambda np, x, i: np.split(x, [1, i], axis=i % x.ndim)[i % 3],
    "triu by place": lambda np, x, i: np.triu(_matrix(x), i - 2),
    "take": lambda np, x, i: np.take(x, -1, axis=i % x.ndim),
    "take of many": lambda np, x, i: np.take(x, [0, -1, 0], axis=i % x.ndim),
    "take of all": lambda np, x, i: np.take(x, [0, -1, 0]),
    "pad": lambda np, x, i: np.pad(x, (i, 1), constant_values=3),
    "kron": lambda np, x, i: np.kron(x, x[..., 0]),
    "diag": lambda np, x, i: np.diag(x.reshape(-1)[:5], i - 2),
    "concatenate of all": lambda np, x, i: np.concatenate([x, x.T], axis=None),
    "None": lambda np, x, i: x[..., :, None],
}


def _rotated(x: Any, i: int) -> tuple[int, ...]:
    return tuple((axis + i) % x.ndim for axis in range(x.ndim))


def _ones(x: Any) -> tuple[int, ...]:
    return tuple(i for i, extent in enumerate(x.shape) if extent == 1)


def _matrix(x: Any) -> Any:
    return x if x.ndim > 1 else x[None, ...]


@pytest.mark.parametrize("name", [*LAYOUTS, *NUMPY_LAYOUTS])
@given(seeds, st.sampled_from(SHAPES), st.sampled_from(ALL), st.integers(0, 4))
@few
def test_layouts_agree(name, seed, shape, dtype, number):
    x = array(seed, shape, dtype)
    function = LAYOUTS.get(name) or NUMPY_LAYOUTS[name]
    if name == "pad" and dtype == "?":
        return
    result = function(xp, xp.asarray(x), number)
    if name in ("permute_dims", "concat", "unstack", "matrix_transpose"):
        expected = np.asarray(function(strict, strict.asarray(x), number))
    else:
        expected = np.asarray(function(np, x, number))
    if name in ("trace",) and expected.dtype == np.uint64:
        expected = expected.astype(np.int64)
    assert_same(result, expected)
    if name not in ("slice", "None", "permute_dims", "concat", "unstack"):
        if hasattr(np, name.split()[0]):
            assert_same(function(np, xp.asarray(x), number), expected)


def test_dtypes_are_promoted_when_put_together():
    parts = [np.ones(2, "i4"), np.ones(2, "f4"), np.ones(2, "c8")]
    result = xp.concat([xp.asarray(parts[0]), *parts[1:]])
    assert_same(result, np.concatenate(parts))
    assert_same(np.stack([parts[0], xp.asarray(parts[1])]), np.stack(parts[:2]))
    with pytest.raises(
        tensord.InvalidArgument, match="wanted equal extents but for mode 0"
    ):
        xp.concat([xp.ones((2, 3)), xp.ones((2, 4))])
    with pytest.raises(tensord.InvalidArgument, match="wanted equal ones"):
        xp.stack([xp.ones(2), xp.ones(3)])
    with pytest.raises(IndexError, match="index 7"):
        xp.take(xp.ones(3), [0, 7])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (100, 50), (0, 2)])
def test_tensors_are_made(shape: tuple[int, ...]):
    for name in "zeros", "ones", "empty":
        expected = np.zeros(shape) if name == "empty" else getattr(np, name)(shape)
        assert_same(getattr(xp, name)(shape), expected)
    assert_same(xp.full(shape, 2.5), np.full(shape, 2.5))
    assert_same(xp.full(shape, 7), np.full(shape, 7))
    assert_same(xp.full(shape, True), np.full(shape, True))
    like = xp.ones(shape, "c8")
    assert_same(xp.zeros_like(like), np.zeros(shape, "c8"))
    assert_same(np.ones_like(like), np.ones(shape, "c8"))
    assert_same(xp.full_like(like, 2, "i4"), np.full(shape, 2, "i4"))
    assert_same(xp.empty_like(like), np.zeros(shape, "c8"))


def test_matrices_and_vectors_are_made():
    for arguments in (3,), (2, 4), (100, 120), (0,):
        for k in -1, 0, 2:
            assert_same(xp.eye(*arguments, k=k), np.eye(*arguments, k=k))
    assert_same(xp.identity(3, "f4"), np.identity(3, "f4"))
    assert_same(xp.arange(5), np.arange(5))
    assert_same(xp.arange(1, 10, 2, dtype="f4"), np.arange(1, 10, 2, dtype="f4"))
    assert_same(xp.linspace(0, 1, 7), np.linspace(0, 1, 7))
    assert_same(xp.indices((2, 3)), np.indices((2, 3)))
    with pytest.raises(ValueError, match="device is 'tpu'"):
        xp.zeros(3, device="tpu")


def test_arrays_become_tensors(session):
    x = np.arange(6.0).reshape(2, 3)
    a = xp.asarray(x)
    assert xp.asarray(a) is a and xp.asarray(a, dtype="f8") is a
    assert xp.asarray(a, copy=True) is not a and xp.array(a) is not a
    assert_same(xp.asarray(a, "f4"), x.astype("f4"))
    assert_same(xp.asarray([1, 2, 3]), np.array([1, 2, 3]))
    assert_same(xp.from_dlpack(x), x)
    large = np.random.rand(200, 200)
    assert_same(xp.asarray(large), large)
    np.testing.assert_array_equal(np.from_dlpack(a), x)
    np.testing.assert_array_equal(xp.to_numpy(a), x)
    with pytest.raises(ValueError, match="copied"):
        xp.asarray(x, copy=False)


PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "matmul": lambda np, x, y: np.matmul(x, np.swapaxes(y, -1, -2)),
    "tensordot 1": lambda np, x, y: np.tensordot(x, y, ([-1], [-1])),
    "tensordot all": lambda np, x, y: np.tensordot(x, y, x.ndim),
    "tensordot 0": lambda np, x, y: np.tensordot(x, y, 0),
    "einsum": lambda np, x, y: np.einsum("...i,...i->...", x, y),
    "inner": lambda np, x, y: np.inner(x, y),
    "dot": lambda np, x, y: np.dot(x, np.swapaxes(y, -1, -2)),
    "outer": lambda np, x, y: np.outer(x, y),
    "vdot": lambda np, x, y: np.vdot(x, y),
    "vecdot": lambda np, x, y: np.vecdot(x, y),
    "vecdot 0": lambda np, x, y: np.vecdot(x, y, axis=0),
    "kron": lambda np, x, y: np.kron(x, y),
}


@pytest.mark.parametrize("name", PRODUCTS)
@given(
    seeds,
    st.sampled_from([(2, 3), (3, 3), (2, 2, 3)]),
    st.sampled_from([*FLOATS, *COMPLEX, "i4", "i8"]),
    st.sampled_from([*FLOATS, *COMPLEX]),
)
@few
def test_products_agree(name, seed, shape, left, right):
    x, y = array(seed, shape, left), array(seed + 1, shape, right)
    function = PRODUCTS[name]
    expected = np.asarray(function(np, x, y))
    terms = function(np, np.abs(x), np.abs(y))
    result = function(xp, xp.asarray(x), xp.asarray(y))
    assert_same(result, expected, 64, terms)
    mixed = function(np, xp.asarray(x), xp.asarray(y))
    assert_same(mixed, expected, 64, terms)


def matrices(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.asarray(random_array(np.random.default_rng(seed), shape, dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3)])
def test_factors_multiply_to_the_matrix(dtype: str, shape: tuple[int, ...]):
    x = matrices(1, shape, dtype)
    a = xp.asarray(x)
    real = np.zeros(0, dtype).real.dtype
    q, r = xp.linalg.qr(a)
    assert_same(q @ r, x, 64)
    assert_same(np.linalg.qr(a).R, r.numpy(), 0)
    u, s, v = xp.linalg.svd(a)
    assert s.dtype == real and u.shape[-1] == min(shape[-2:])
    assert_same(u * s[..., None, :] @ v, x, 64)
    expected = np.linalg.svd(x, compute_uv=False)
    assert_same(s, expected, 64)
    assert_same(xp.linalg.svdvals(a), expected, 64)
    h = x @ x.conj().swapaxes(-1, -2) + 3 * np.eye(shape[-2], dtype=dtype)
    b = xp.asarray(h)
    w, vectors = xp.linalg.eigh(b)
    assert_same(w, np.linalg.eigvalsh(h), 64)
    assert_same(xp.linalg.eigvalsh(b), np.linalg.eigvalsh(h), 64)
    assert_same(vectors * w[..., None, :] @ xp.conj(vectors).mT, h, 64)
    lower = xp.linalg.cholesky(b)
    assert_same(lower, np.linalg.cholesky(h), 64)
    upper = xp.linalg.cholesky(b, upper=True)
    assert_same(xp.conj(upper).mT @ upper, h, 64)


@given(
    seeds,
    st.sampled_from([(4,), (3, 4), (2, 3, 2)]),
    st.sampled_from([*FLOATS, *COMPLEX]),
)
@few
def test_norms_agree(seed: int, shape: tuple[int, ...], dtype: str):
    x = array(seed, shape, dtype)
    a = xp.asarray(x)
    assert_same(xp.linalg.norm(a), np.linalg.norm(x), 64)
    assert_same(np.linalg.norm(a, axis=-1), np.linalg.norm(x, axis=-1), 64)
    for order in 0, 1, 2, 3, math.inf, -math.inf:
        expected = np.linalg.norm(x, order, axis=-1, keepdims=True)
        assert_same(
            xp.linalg.vector_norm(a, ord=order, axis=-1, keepdims=True), expected, 64
        )
        assert_same(xp.linalg.norm(a, order, -1, True), expected, 64)
    if len(shape) == 1:
        return
    for order in "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf:
        expected = np.linalg.norm(x, order, axis=(-2, -1))
        # The least singular value is as exact as the largest one.
        terms = np.linalg.norm(x, 2, axis=(-2, -1)) if order == -2 else None
        assert_same(xp.linalg.matrix_norm(a, ord=order), expected, 64, terms)
        assert_same(xp.linalg.norm(a, order, (-2, -1)), expected, 64, terms)


def test_what_is_not_computed_says_so():
    a = xp.ones((3, 3))
    with pytest.raises(tensord.Unimplemented, match="full_matrices"):
        xp.linalg.svd(a, full_matrices=True)
    with pytest.raises(tensord.Unimplemented, match="wanted 'reduced'"):
        xp.linalg.qr(a, mode="complete")
    with pytest.raises(tensord.Unimplemented, match="wanted 'constant'"):
        xp.pad(a, 1, mode="edge")
    with pytest.raises(tensord.Unimplemented, match="order is 'F'"):
        xp.reshape(a, (9,), order="F")
    with pytest.raises(tensord.InvalidArgument, match="ord is 'other'"):
        xp.linalg.matrix_norm(a, ord="other")
    for function in xp.linalg.qr, xp.linalg.matrix_norm:
        with pytest.raises(tensord.InvalidArgument, match="two modes or more"):
            function(xp.ones(3))


def test_results_stay_on_the_server():
    a = xp.ones((3, 3))
    before = xp.downloads()
    for name in WHOLE:
        assert isinstance(a.astype(name), RemoteTensor)
    assert xp.downloads() == before
