"""Quantiles, what leaves out NaN, roundings and copies in rows are as NumPy has them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
import tensord.array as xp
from test_array import FLOATS, WHOLE, array, assert_same, few, seeds

SHAPES = [(1,), (6,), (5, 4), (2, 3, 4)]
AXES = [None, 0, -1, (0, -1)]


@pytest.fixture(scope="module", autouse=True)
def session(address: str) -> Iterator[tensord.DeferredSession]:
    """The session of the namespace, as `use` opens it."""
    with xp.use(address) as opened:
        yield opened
    xp.use(None)


def axis_for(axis: Any, shape: tuple[int, ...]) -> Any:
    return 0 if isinstance(axis, tuple) and len(shape) == 1 else axis


@given(
    seeds,
    st.sampled_from([(1,), (6,), (5, 4), (2, 3, 4), (0,), (3, 0)]),
    st.sampled_from(AXES),
    st.sampled_from(["linear", "lower", "higher", "midpoint", "nearest"]),
    st.sampled_from([50, 0, 100.0, 30, [25, 75], [[10.0, 50], [20, 90]]]),
    st.booleans(),
    st.data(),
)
@few
def test_percentiles_agree(seed, shape, axis, method, q, keepdims, data):
    x = array(seed, shape, data.draw(st.sampled_from(["f4", "f8", *WHOLE])))
    if x.dtype.kind == "f" and x.size and data.draw(st.booleans()):
        x.reshape(-1)[0] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    axis = axis_for(axis, shape)
    t = xp.asarray(x)
    options = {"axis": axis, "method": method, "keepdims": keepdims}
    if x.size == 0:  # NumPy says of nothing now NaN, now an error.
        wanted = np.median(np.zeros(shape), axis, keepdims=keepdims)
        result = xp.median(t, axis, keepdims=keepdims)
        assert result.shape == wanted.shape and bool(xp.isnan(result).all())
        return
    with np.errstate(invalid="ignore"):
        expected = np.percentile(x, q, **options)
    result = np.percentile(t, q, **options)
    assert result.shape == expected.shape
    scale = 8 * np.finfo(np.float32 if x.dtype == "f4" else np.float64).eps
    finite = x[np.isfinite(x)] if x.dtype.kind == "f" else x
    bound = scale * float(np.abs(finite.astype(np.float64)).max(initial=0))
    if np.isfinite(x).all():
        np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=bound)
    else:
        known = ~np.isnan(expected)  # Between infinities NumPy has NaN.
        np.testing.assert_allclose(
            result.numpy()[known], expected[known], rtol=0, atol=bound
        )
    parts = np.quantile(t, np.asarray(q) / 100, **options)
    np.testing.assert_array_equal(parts.numpy(), result.numpy())
    if q == 50 and method == "linear":
        middle = np.median(t, axis, keepdims=keepdims).numpy()
        np.testing.assert_array_equal(middle, result.numpy())


def test_what_is_no_percentile_is_refused() -> None:
    t = xp.asarray([1.0, 2])
    for call in lambda: xp.percentile(t, 101), lambda: xp.quantile(t, [0.5, -0.1]):
        with pytest.raises(ValueError, match="q is .*, wanted 0 to 1"):
            call()
    with pytest.raises(tensord.Unimplemented, match="method is 'hazen', wanted one of"):
        xp.percentile(t, 50, method="hazen")
    with pytest.raises(tensord.Unimplemented, match="out is given"):
        xp.median(t, out=xp.zeros(()))
    with pytest.raises(TypeError, match="have no order"):
        xp.median(xp.asarray([1j, 2]))


@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]
)
@given(seeds, st.sampled_from(SHAPES), st.sampled_from(AXES), st.data())
@few
def test_nan_is_left_out(name, seed, shape, axis, data):
    dtype = data.draw(st.sampled_from(["f4", "f8", "i4"]))
    x = np.asarray(array(seed, shape, dtype) % 3)
    if x.dtype.kind == "f" and data.draw(st.booleans()):
        x.reshape(-1)[-1] = data.draw(st.sampled_from([math.inf, -math.inf]))
    if x.dtype.kind == "f":
        x[np.random.default_rng(seed).random(shape) < 0.4] = math.nan
    axis = axis_for(axis, shape)
    keepdims = data.draw(st.booleans())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    t = xp.asarray(x)
    for function in getattr(xp, name), getattr(np, name):
        result = function(t, axis=axis, keepdims=keepdims)
        assert result.shape == expected.shape and result.dtype == expected.dtype
        rtol = 64 * np.finfo(np.float32 if dtype == "f4" else np.float64).eps
        np.testing.assert_allclose(result.numpy(), expected, rtol=rtol, atol=rtol)


def test_results_without_nan_go_where_they_are_wanted() -> None:
    t = xp.asarray([[1.0, math.nan], [3, 5]])
    for name, expected in ("nansum", [4, 5]), ("nanmax", [3, 5]), ("nanmean", [2, 5]):
        out = xp.zeros(2)
        assert getattr(np, name)(t, axis=0, out=out) is out
        assert out.numpy().tolist() == expected


@given(seeds, st.sampled_from([*FLOATS, "i4"]), st.sampled_from([0, 1, 3, -1]))
@few
def test_roundings_agree(seed, dtype, decimals):
    x = array(seed, (40,), dtype)
    if np.dtype(dtype).kind == "i":
        decimals = 0
    else:
        halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -3.2, 2.0**40])
        special = np.array([math.inf, -math.inf, math.nan])
        more = special if decimals == 0 else special[:0]
        x = np.concatenate([x, halves, more]).astype(dtype)
    t = xp.asarray(x)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.round(x, decimals)
    if dtype == "f2" and decimals:  # NumPy rounds in a wider type.
        return
    np.testing.assert_array_equal(np.round(t, decimals).numpy(), expected)
    np.testing.assert_array_equal(xp.around(t, decimals).numpy(), expected)
    if decimals == 0 and x.dtype.kind == "f":
        np.testing.assert_array_equal(np.rint(t).numpy(), np.rint(x))


def test_what_is_not_rounded_is_refused() -> None:
    with pytest.raises(TypeError, match="are not rounded"):
        xp.round(xp.asarray([1j]))


def test_numbers_at_the_edge_are_as_numpy_has_them() -> None:
    for x in [1, math.inf, 2], [
        [math.inf, -math.inf, math.nan],
        [math.inf, math.inf, 1],
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = np.nanvar(x, axis=-1), np.nanstd(x, axis=-1, ddof=1)
        out = xp.zeros(expected[1].shape)
        t = xp.asarray(x)
        np.testing.assert_array_equal(xp.nanvar(t, axis=-1).numpy(), expected[0])
        assert np.nanstd(t, axis=-1, ddof=1, out=out) is out
        np.testing.assert_array_equal(out.numpy(), expected[1])
    many = np.arange(70000) % 7 / 4
    for short in "f2", xp.bfloat16:  # More than float16 counts to.
        t = xp.asarray(many).astype(short)
        assert xp.nanmean(t).dtype == np.dtype(short)
        assert abs(float(xp.nanmean(t)) - many.mean()) < 0.004
        assert abs(float(xp.nanvar(t, dtype="f4")) - many.var()) < 1e-4
    t = xp.asarray(many)
    for name in "nanmean", "nanvar", "nanstd":
        result = getattr(np, name)(t, dtype="f4")
        expected = getattr(np, name)(many)
        assert result.dtype == np.float32 and abs(float(result) - expected) < 1e-6
    for dtype, large in ("f8", 1.7e308), ("f2", 60000):
        t = xp.asarray(np.array([-large, large], dtype))
        assert float(xp.median(t)) == 0
    half = xp.asarray(np.array([1, 2, math.nan], "f4")).astype(xp.bfloat16)
    assert math.isnan(float(xp.median(half)))
    assert xp.median(half[:0]).dtype == xp.nanmean(half).dtype == xp.bfloat16
    assert float(xp.nanmean(half)) == 1.5
    for dtype in "f2", "f4", "f8":
        x = np.array([-0.4, -0.5, 0.5, -0.0, 0.3, -math.inf], dtype)
        result = np.rint(xp.asarray(x)).numpy()
        np.testing.assert_array_equal(np.signbit(result), np.signbit(np.rint(x)))
    assert_same(np.round(xp.asarray([True])), np.round(np.array([True])))
    for dtype in "u1", "i2", "i4", "i8":
        x = np.array([5, 15, 25], dtype)
        assert_same(np.rint(xp.asarray(x)), np.rint(x))
        for decimals in -1, 0, 1:
            assert_same(np.round(xp.asarray(x), decimals), np.round(x, decimals))
    assert math.isnan(float(xp.round(xp.asarray(1.5), 400)))
    wide = np.percentile(xp.asarray(np.arange(5, dtype="f4")), [37.3])
    assert wide.dtype == np.float64 and abs(float(wide) - 1.492) < 1e-12


@given(seeds, st.sampled_from(SHAPES), st.data())
@few
def test_rows_and_copies_agree(seed, shape, data):
    x, y = array(seed, shape, "f8"), array(seed + 1, shape, "i4")
    t, u = xp.asarray(x), xp.asarray(y)
    for name in "vstack", "hstack", "dstack":
        expected = getattr(np, name)([x, y])
        for function in getattr(xp, name), getattr(np, name):
            assert_same(function([t, u]), expected)
    for name in "atleast_1d", "atleast_2d", "atleast_3d":
        assert_same(getattr(np, name)(t), getattr(np, name)(x))
        both = getattr(xp, name)(t, 1.0)
        assert_same(both[1], getattr(np, name)(1.0))
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    for repeats in 0, 1, 3:
        assert_same(np.repeat(t, repeats, axis=axis), np.repeat(x, repeats, axis))
    extent = x.size if axis is None else shape[axis]
    each = np.arange(extent) % 3
    assert_same(xp.repeat(t, each, axis=axis), np.repeat(x, each, axis))
    for counts in 2, (2, 1), (1, 2, 1, 3), (0,):
        assert_same(np.tile(t, counts), np.tile(x, counts))


def test_what_others_have_is_refused() -> None:
    t = xp.asarray([1.0, 2])
    masked = np.ma.masked_greater(np.array([1.0, 2]), 1.5)
    before = xp.downloads()
    for call in (
        lambda: xp.asarray(masked),
        lambda: t + masked,
        lambda: np.where(t > 1, t, masked),
        lambda: xp.sum(masked),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="has 1 items for 2 modes"):
        np.ravel_multi_index((xp.asarray([1]),), (3, 4))
    with pytest.raises(ValueError, match="reps is .-1, 2., wanted 0 and more"):
        xp.tile(t, (-1, 2))
    assert xp.downloads() == before


def test_likenesses_and_least_modes_are_as_asked_for() -> None:
    t = xp.asarray(np.ones((2, 3), "f4"))
    for name in "zeros_like", "ones_like", "empty_like":
        made = getattr(np, name)(t, dtype="i4", shape=(4, 1))
        assert isinstance(made, tensord.RemoteTensor)
        assert made.dtype == np.int32 and made.shape == (4, 1)
        assert getattr(xp, name)(t, order="C", subok=False).dtype == np.float32
    full = np.full_like(t, 7, shape=5)
    assert full.numpy().tolist() == [7] * 5 and full.dtype == np.float32
    with pytest.raises(tensord.Unimplemented, match="order is 'F'"):
        xp.zeros_like(t, order="F")
    with pytest.raises(TypeError, match="without fields"):
        np.empty_like(t, dtype=[("a", "f8")])
    assert np.array(t, ndmin=4, like=t).shape == (1, 1, 2, 3)
    assert np.asanyarray(t, like=t) is t
    assert np.zeros(3, like=t).numpy().tolist() == [0, 0, 0]
    assert np.ones(2, order="C", like=t).numpy().tolist() == [1, 1]
    assert np.asarray([1.0], order="C", like=t).numpy().tolist() == [1]
    for make in xp.zeros, xp.asarray:
        with pytest.raises(tensord.Unimplemented, match="order is 'F'"):
            make(3, order="F")
    with pytest.raises(OverflowError):
        xp.full_like(t, 300, dtype="i1")


def test_universal_functions_compute_in_a_dtype() -> None:
    t = xp.asarray(np.array([1, 2], "i4"))
    assert np.add(t, t, dtype="f8").dtype == np.float64
    assert np.add(t, 1, dtype=None).dtype == np.int32
    assert np.multiply(np.ones(2), xp.asarray([0.5, 2]), dtype="f4").dtype == np.float32
    small = xp.asarray(np.arange(3, dtype="u1"))
    assert_same(np.add(small, 3, dtype="u1"), np.arange(3, 6, dtype="u1"))
    with pytest.raises(OverflowError):
        np.add(small, 300, dtype="u1")
    assert np.add(t, 2.5, dtype="f4").numpy().tolist() == [3.5, 4.5]
    wrong: list[tuple[Any, Any, Any]] = [
        (np.add, ([0.5], [1]), "i4"),
        (np.true_divide, ([1], [2]), "i8"),
        (np.sqrt, ([4],), "i8"),
        (np.absolute, ([1j],), "f4"),
    ]
    for ufunc, operands, dtype in wrong:
        with pytest.raises(TypeError):
            ufunc(*map(xp.asarray, operands), dtype=dtype)
    with pytest.raises(TypeError, match="equal with dtype is not computed"):
        np.equal(t, t, dtype=object)
