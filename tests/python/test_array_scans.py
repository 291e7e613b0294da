"""What goes along a mode, solves equations and draws numbers is as NumPy has it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import tensord
import tensord.array as xp
from random_arrays import random_array
from tensord import RemoteTensor
from test_array import ALL, COMPLEX, FLOATS, WHOLE, array, assert_same, few, seeds


@pytest.fixture(scope="module", autouse=True)
def session(address: str) -> Iterator[tensord.DeferredSession]:
    """The session of the namespace, as `use` opens it."""
    with xp.use(address) as opened:
        yield opened
    xp.use(None)


def as_here(expected: Any) -> np.ndarray:
    """NumPy's result, in a dtype that the server has."""
    expected = np.asarray(expected)
    return expected.astype(np.int64) if expected.dtype == np.uint64 else expected


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@given(seeds, st.sampled_from([(1,), (5,), (0, 3), (4, 7), (2, 3, 4)]), st.data())
@few
def test_cumulative_functions_agree(name, seed, shape, data):
    x = array(seed, shape, data.draw(st.sampled_from(ALL)))
    if x.dtype.kind in "iu":
        x = np.asarray(x % np.asarray(3, x.dtype))
    axis = data.draw(st.sampled_from([None, *range(-1, len(shape))]))
    t = xp.asarray(x)
    expected = as_here(getattr(np, name)(x, axis=axis))
    terms = np.cumsum(np.abs(x), axis=axis) if name == "cumsum" else None
    assert_same(getattr(xp, name)(t, axis=axis), expected, 64, terms)
    assert_same(getattr(np, name)(t, axis=axis), expected, 64, terms)
    assert_same(t, x)  # What was summed is as it was.


def test_cumulative_functions_keep_what_is_no_number_where_it_is():
    x = np.array([[1, 2, math.nan, 3], [math.inf, 1, -math.inf, 1]])
    t = xp.asarray(x)
    with np.errstate(invalid="ignore"):
        for axis in 0, 1:
            np.testing.assert_array_equal(
                xp.cumsum(t, axis).numpy(), np.cumsum(x, axis)
            )
    out = xp.zeros((2, 4))
    assert np.cumsum(t, 1, out=out) is out
    np.testing.assert_array_equal(out[0, :2].numpy(), [1, 3])


@pytest.mark.parametrize("descending", [False, True])
@given(seeds, st.sampled_from([(1,), (5,), (0, 3), (40, 7), (2, 3, 40)]), st.data())
@few
def test_sorting_agrees(descending: bool, seed: int, shape: Any, data: Any):
    x = array(seed, shape, data.draw(st.sampled_from([*FLOATS, *WHOLE])))
    x = np.asarray(x // 2 if x.dtype.kind in "iu" else np.round(x))  # Some are equal.
    axis = data.draw(st.sampled_from([None, *range(-1, len(shape))]))
    t = xp.asarray(x)
    flat = x.reshape(-1) if axis is None else x
    along = 0 if axis is None else axis
    if descending:
        turned = np.argsort(np.flip(flat, along), along, kind="stable")
        expected = flat.shape[along] - 1 - np.flip(turned, along)
    else:
        expected = np.argsort(flat, along, kind="stable")
    indices = xp.argsort(t, axis=axis, descending=descending)
    assert indices.dtype == np.int64
    np.testing.assert_array_equal(indices.numpy(), expected)
    in_order = xp.sort(t, axis=axis, descending=descending)
    assert in_order.dtype == x.dtype
    np.testing.assert_array_equal(
        in_order.numpy(), np.take_along_axis(flat, expected, along)
    )
    if not descending:
        np.testing.assert_array_equal(np.argsort(t, axis).numpy(), expected)
        np.testing.assert_array_equal(np.sort(t, axis, kind="mergesort").numpy(),
                                      np.sort(x, axis))


@pytest.mark.parametrize("dtype", ["f4", "i2", "?"])
def test_ufuncs_accumulate(dtype: str):
    x = np.asarray(np.random.default_rng(1).integers(-3, 4, (4, 5)), dtype)
    t = xp.asarray(x)
    before = xp.downloads()
    ufuncs = [np.add, np.multiply, np.maximum, np.minimum]
    results = [u.accumulate(t, axis=axis) for u in ufuncs for axis in (0, 1)]
    assert xp.downloads() == before
    expected = [u.accumulate(x, axis=axis) for u in ufuncs for axis in (0, 1)]
    for result, wanted in zip(results, expected):
        np.testing.assert_array_equal(result.numpy(), wanted)
    out = xp.zeros((4, 5), x.dtype)
    assert np.maximum.accumulate(t, out=out) is out
    np.testing.assert_array_equal(out.numpy(), np.maximum.accumulate(x))
    with pytest.raises(TypeError, match=r"numpy.subtract.accumulate is not computed"):
        np.subtract.accumulate(t)


def test_sums_of_what_is_not_negative_never_decrease():
    rng = np.random.default_rng(2)
    for shape, axis in ((100_000,), 0), ((5000, 20), 0), ((20, 5000), 1):
        x = rng.random(shape) * (rng.random(shape) < 0.1)
        for dtype in np.float32, np.float64:
            sums = xp.cumsum(xp.asarray(x.astype(dtype)), axis).numpy()
            assert (np.diff(sums, axis=axis) >= 0).all()
            still = np.take(x, range(1, x.shape[axis]), axis) == 0
            assert (np.diff(sums, axis=axis)[still] == 0).all()


def test_products_are_what_they_are_in_order():
    for x in np.array([0.0] + [1e30] * 300), np.array([1e-30] * 20 + [1e30] * 20):
        np.testing.assert_allclose(
            xp.cumprod(xp.asarray(x)).numpy(), np.cumprod(x), rtol=1e-13
        )


def test_what_is_no_number_sorts_above_all():
    x = np.array([[2, math.nan, -math.inf, -0.0], [math.nan, 0.0, math.inf, -0.0]])
    t = xp.asarray(x)
    np.testing.assert_array_equal(xp.argsort(t).numpy(), [[2, 3, 0, 1], [1, 3, 2, 0]])
    np.testing.assert_array_equal(
        xp.argsort(t, descending=True).numpy(), [[1, 0, 3, 2], [0, 2, 1, 3]]
    )
    np.testing.assert_array_equal(xp.sort(t, 0).numpy(), np.sort(x, 0))


def test_what_cannot_be_sorted_is_refused():
    t = xp.asarray(np.ones((2, 3)))
    with pytest.raises(TypeError, match="numbers of complex128 have no order"):
        xp.sort(t + 1j)
    with pytest.raises(ValueError, match="order is 'x', but tensors have no fields"):
        np.argsort(t, order="x")
    with pytest.raises(ValueError, match="kind is 'foo', wanted None or one of quick"):
        np.sort(t, kind="foo")
    with pytest.raises(IndexError, match="axis is 2, but there are 2 modes"):
        xp.argsort(t, axis=2)


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative_functions_of_the_array_api_agree(name: str, initial: bool):
    for dtype in "i4", "f4", "c16":
        x = np.arange(1, 7).reshape(2, 3).astype(dtype)
        for axis in 0, 1, -1:
            options = {"axis": axis, "include_initial": initial}
            expected = getattr(strict, name)(strict.asarray(x), **options)
            assert_same(
                getattr(xp, name)(xp.asarray(x), **options), np.asarray(expected)
            )
    with pytest.raises(ValueError, match="axis is None for a tensor of 2 modes"):
        getattr(xp, name)(xp.asarray(x))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@given(seeds, st.sampled_from([(1,), (5,), (4, 7), (2, 3, 4)]), st.data())
@few
def test_indices_of_extremes_agree(name, seed, shape, data):
    x = array(seed, shape, data.draw(st.sampled_from(["?", *WHOLE, *FLOATS])))
    if x.dtype.kind in "iu":
        x = np.asarray(x % np.asarray(3, x.dtype))  # So that some are equal.
    axis = data.draw(st.sampled_from([None, *range(-1, len(shape))]))
    for keepdims in False, True:
        expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        result = getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims)
        assert_same(result, expected)
    assert_same(getattr(np, name)(xp.asarray(x), axis), getattr(np, name)(x, axis))


def test_indices_of_extremes_are_those_of_numpy_at_the_edges():
    x = np.array([[1, math.nan, 3, math.nan], [-math.inf, 2, math.inf, 2]])
    for name in "argmax", "argmin":
        assert_same(getattr(xp, name)(xp.asarray(x), 1), getattr(np, name)(x, 1))
    long = np.zeros(10_000, np.int8)
    long[[7777, 9999]] = 1
    t = xp.asarray(long)
    assert int(xp.argmax(t)) == 7777 and int(xp.argmin(t)) == 0
    assert int(xp.argmax(xp.asarray(3.0))) == 0
    with pytest.raises(ValueError, match="nothing of which to take the maximum"):
        xp.argmax(xp.zeros((0, 2)), axis=0)
    with pytest.raises(TypeError, match="have no order"):
        xp.argmax(xp.ones(2, dtype="c16"))


def test_differences_agree():
    for dtype in "?", "i4", "f8", "c8":
        x = array(7, (3, 5), dtype)
        t = xp.asarray(x)
        for n in 0, 1, 2, 5:
            assert_same(xp.diff(t, n), np.diff(x, n))
        first = x[:1]
        expected = np.diff(x, axis=0, prepend=first)
        assert_same(xp.diff(t, axis=0, prepend=first), expected)
        assert_same(np.diff(t, append=t[:, :2]), np.diff(x, append=x[:, :2]))
    x = np.array([1.0, 4, 9])
    assert_same(xp.diff(xp.asarray(x), prepend=0), np.diff(x, prepend=0))
    with pytest.raises(ValueError, match="n is -1"):
        xp.diff(xp.asarray(x), -1)


def assert_solves(a: np.ndarray, x: Any, b: np.ndarray, dtype: str) -> None:
    """Checks that a product is `b`, but for roundings in the order of the extent."""
    assert isinstance(x, RemoteTensor) and x.dtype == np.dtype(dtype)
    unit = np.finfo(dtype).eps
    x = x.numpy()
    magnitude = np.linalg.norm(a, axis=(-2, -1), keepdims=True) * np.linalg.norm(x)
    product = a @ x
    assert product.shape == b.shape
    limit = 16 * a.shape[-1] * unit * np.max(magnitude, initial=0)
    np.testing.assert_allclose(product, b, rtol=0, atol=limit)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("count", [1, 5, 64, 65, 150])
def test_equations_are_solved(dtype: str, count: int):
    rng = np.random.default_rng(count)
    a = random_array(rng, (count, count), dtype)
    for shape in (count,), (count, 1), (count, 3):
        b = random_array(rng, shape, dtype)
        before = xp.downloads()
        x = xp.linalg.solve(xp.asarray(a), b)
        assert xp.downloads() == before
        assert_solves(a, x, b, dtype)
    one = np.eye(count, dtype=dtype)
    assert_solves(a, np.linalg.inv(xp.asarray(a)), one, dtype)


def test_batches_of_equations_are_solved():
    rng = np.random.default_rng(3)
    a, b = random_array(rng, (2, 1, 4, 4), "f8"), random_array(rng, (3, 4, 2), "f8")
    x = np.linalg.solve(xp.asarray(a), xp.asarray(b))
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), rtol=1e-9, atol=1e-9)
    whole = np.array([[2, 1], [1, 3]])
    x = xp.linalg.solve(xp.asarray(whole), [1, 2])
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(whole, [1, 2]), rtol=1e-14)
    with pytest.raises(ValueError, match=r"\(2, 2\) have right sides of .*\(3,\)"):
        xp.linalg.solve(xp.asarray(whole), [1, 2, 3])
    with pytest.raises(ValueError, match="no square matrices"):
        xp.linalg.inv(xp.ones((2, 3)))
    # One matrix for many right sides, and one right side for many matrices.
    many = xp.linalg.solve(xp.asarray(whole), xp.asarray(b[:, :2]))
    np.testing.assert_allclose(many.numpy(), np.linalg.solve(whole, b[:, :2]), 1e-12)
    same = xp.linalg.solve(xp.asarray(whole[None]), xp.asarray(b[:, :2]))
    np.testing.assert_array_equal(same.numpy(), many.numpy())
    x = xp.linalg.solve(xp.asarray(a), b[0, :, 0])
    each = np.stack([np.linalg.solve(one, b[0, :, 0]) for one in a[:, 0]])[:, None]
    np.testing.assert_allclose(x.numpy(), each, rtol=1e-9, atol=1e-9)
    assert xp.linalg.solve(xp.ones((0, 0)), xp.ones((0, 3))).shape == (0, 3)


def test_singular_matrices_are_refused():
    for solve in xp.linalg.inv, lambda x: xp.linalg.solve(x, xp.ones(2)):
        with pytest.raises(tensord.InvalidArgument, match="is singular") as raised:
            solve(xp.zeros((2, 2))).numpy()
        assert raised.value.reason == "MATRIX_SINGULAR"
        assert "test_array_scans.py" in str(raised.value)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_triangles_are_solved_as_scipy_does(dtype: str, trans: Any, lower: bool):
    rng = np.random.default_rng(5)
    for count, shape in (4, (4,)), (70, (70, 2)):
        a = random_array(rng, (count, count), dtype) / 8
        a = a + 2 * np.eye(count, dtype=dtype)
        b = random_array(rng, shape, dtype)
        for unit_diagonal in False, True:
            options = {"trans": trans, "lower": lower, "unit_diagonal": unit_diagonal}
            if unit_diagonal:
                a = a / count
            expected = scipy.linalg.solve_triangular(a, b, **options)
            result = xp.linalg.solve_triangular(xp.asarray(a), xp.asarray(b), **options).numpy()
            limit = 64 * count * np.finfo(dtype).eps * np.max(np.abs(expected))
            np.testing.assert_allclose(result, expected, rtol=0, atol=limit)


def test_triangles_know_their_forms():
    with pytest.raises(ValueError, match="trans is 3"):
        xp.linalg.solve_triangular(xp.ones((2, 2)), xp.ones(2), trans=3)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_what_has_no_inverse_has_a_pseudo_inverse_and_a_rank(dtype: str):
    rng = np.random.default_rng(6)
    parts = random_array(rng, (2, 5, 2), dtype), random_array(rng, (2, 2, 7), dtype)
    x = parts[0] @ parts[1]
    t = xp.asarray(x)
    expected = np.linalg.pinv(x, rtol=1e-4)
    limit = 1e3 * np.finfo(dtype).eps * np.max(np.abs(expected)) ** 2
    result = xp.linalg.pinv(t, rtol=1e-4).numpy()
    np.testing.assert_allclose(result, expected, rtol=0, atol=limit)
    assert xp.linalg.pinv(t).shape == (2, 7, 5)
    assert xp.linalg.matrix_rank(t).numpy().tolist() == [2, 2]
    assert int(xp.linalg.matrix_rank(xp.zeros((3, 3)))) == 0
    assert int(np.linalg.matrix_rank(xp.eye(3))) == 3


def test_powers_of_matrices_agree():
    for dtype in "i4", "f8", "c16":
        x = np.array([[1, 2], [3, 5]], dtype)
        t = xp.asarray(x)
        for n in 0, 1, 2, 3, 7:
            assert_same(xp.linalg.matrix_power(t, n), np.linalg.matrix_power(x, n))
        assert xp.linalg.matrix_power(t, 1) is not t
        result = np.linalg.matrix_power(t, -2).numpy()
        np.testing.assert_allclose(
            result, np.linalg.matrix_power(x.astype("c16"), -2), rtol=1e-12
        )


def test_numbers_are_those_of_numpy():
    ours, theirs = xp.random.default_rng(3), np.random.default_rng(3)
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("random", ((2, 3),)),
        ("standard_normal", (4,)),
        ("uniform", (-1, 5, (2, 2))),
        ("normal", (100.0, 0.1, 3)),
        ("integers", (3, 9, (5,))),
        ("binomial", (7, 0.3, 4)),
        ("exponential", (2.0, (2,))),
        ("gumbel", (0, 1, (2,))),
        ("poisson", (30, (2, 1))),
        ("choice", (10, (2, 3))),
        ("permutation", (6,)),
        ("normal", ()),
    ]
    for name, arguments in calls:
        assert_same(
            getattr(ours, name)(*arguments), getattr(theirs, name)(*arguments), 0
        )
    assert xp.random.default_rng(ours) is ours
    theirs32 = np.random.default_rng(1).random(3, np.float32)
    assert_same(xp.random.default_rng(1).random(3, np.float32), theirs32, 0)
    assert ours.random(3, np.float16).dtype == np.float16


def test_parts_of_tensors_are_drawn():
    x = np.arange(12.0).reshape(3, 4) * 1.5
    for name, arguments in (
        ("choice", ((2, 2), True, None, 1)),
        ("choice", (2, False, [0, 0.5, 0.5])),
        ("permutation", (1,)),
        ("permutation", ()),
    ):
        ours, theirs = xp.random.default_rng(8), np.random.default_rng(8)
        before = xp.downloads()
        result = getattr(ours, name)(xp.asarray(x), *arguments)
        assert xp.downloads() == before
        assert_same(result, getattr(theirs, name)(x, *arguments), 0)


def test_a_seed_begins_what_all_share():
    def drawn() -> list[list[float]]:
        xp.random.seed(4)
        makers = xp.random.uniform, xp.random.normal, xp.random.randint
        bounds = (0, 1), (0, 1), (0, 9)
        return [make(*each, 3).numpy().tolist() for make, each in zip(makers, bounds)]

    assert drawn() == drawn()
    assert drawn()[0] != xp.random.random(3).numpy().tolist()
    assert xp.random.uniform(size=(2,), dtype="f4").dtype == np.float32


def test_random_numbers_refuse_what_would_download():
    t = xp.asarray(2.0)
    for refused in (
        lambda: xp.random.default_rng(1).normal(t),
        lambda: xp.random.uniform(0, t),
        lambda: xp.random.default_rng(t),
    ):
        with pytest.raises(TypeError, match="download"):
            refused()
    with pytest.raises(AttributeError, match="nearest name is 'normal'"):
        xp.random.lognormal  # noqa: B018
