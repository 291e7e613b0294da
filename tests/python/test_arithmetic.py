"""Operators and methods of tensors do what NumPy's do, on the server."""

from __future__ import annotations

import gc
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
from bounds import assert_within_bound, widened
from random_arrays import random_array
from tensord import RemoteTensor
from test_einsum_programs import count_calls

FLOATS = [np.dtype(t) for t in ("f4", "f8", "c8", "c16")]
SHAPES = [
    (),
    (1,),
    (3,),
    (2, 3),
    (2, 1),
    (1, 1),
    (4, 2, 3),
    (4, 1, 1),
    (0, 3),
    (2, 0, 3),
]
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv]


def assert_agrees(result, expected: np.ndarray, magnitude, terms: int = 3) -> None:
    """Checks a result that must be on the server, its dtype too."""
    assert isinstance(result, RemoteTensor)
    expected = np.asarray(expected)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    assert_within_bound(result.numpy(), widened(expected), np.asarray(magnitude), terms)


def bound_of(function, x, y) -> np.ndarray:
    """The sum of the absolute values of what is added."""
    x, y = np.asarray(x), np.asarray(y)
    if function in (operator.add, operator.sub):
        return np.abs(widened(x)) + np.abs(widened(y))
    return np.abs(function(widened(x), widened(y)))


def away_from_zero(rng: np.random.Generator, shape, dtype) -> np.ndarray:
    """Numbers that can be divided by."""
    array = np.asarray(random_array(rng, shape, dtype))
    return array + np.asarray(2, dtype)


@given(
    st.sampled_from(BINARY),
    st.sampled_from(SHAPES),
    st.sampled_from(SHAPES),
    st.sampled_from(FLOATS),
    st.sampled_from(["remote", "left", "right"]),
    st.integers(0, 100),
)
def test_operators_broadcast_as_in_numpy(
    session, function, shape, other, dtype, where, seed
):
    rng = np.random.default_rng(seed)
    x, y = away_from_zero(rng, shape, dtype), away_from_zero(rng, other, dtype)
    a = x if where == "right" else session.upload(x)
    b = y if where == "left" else session.upload(y)
    try:
        expected = function(x, y)
    except ValueError:
        with pytest.raises(
            tensord.InvalidArgument, match="do not broadcast"
        ) as failure:
            function(a, b)
        assert failure.value.reason == "MODE_EXTENT_MISMATCH"
        return
    assert_agrees(function(a, b), expected, bound_of(function, x, y))


@pytest.mark.parametrize(
    "number", [2, -3, 0.5, True, 1.5 - 2j, np.float32(4), np.int8(3)]
)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", BINARY)
def test_numbers_are_promoted_as_in_numpy(session, rng, function, dtype, number):
    x = away_from_zero(rng, (2, 3), dtype)
    t = session.upload(x)
    expected = function(x, number)
    assert_agrees(function(t, number), expected, bound_of(function, x, number))
    reverse = function(number, x)
    assert_agrees(function(number, t), reverse, bound_of(function, number, x))


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "?"])
def test_integers_wrap_as_in_numpy(session, rng, dtype):
    x, y = random_array(rng, (4, 5), dtype), random_array(rng, (5,), dtype)
    a, b = session.upload(x), session.upload(y)
    np.testing.assert_array_equal((a + b).numpy(), x + y)
    np.testing.assert_array_equal((a * b).numpy(), x * y)
    np.testing.assert_array_equal((a @ b).numpy(), x @ y)
    if dtype == "?":
        for refused in (lambda: a - b, lambda: -a, lambda: +a):
            with pytest.raises(TypeError, match="bools"):
                refused()
        return
    np.testing.assert_array_equal((a - b).numpy(), x - y)
    np.testing.assert_array_equal((-a).numpy(), -x)
    np.testing.assert_array_equal((a * 3).numpy(), x * 3)
    np.testing.assert_array_equal((7 - a).numpy(), 7 - x)
    for number in 2**70, 2 ** (8 * x.dtype.itemsize):
        for refused in (
            lambda: a + number,
            lambda: number * a,
            lambda: operator.isub(a, number),
        ):
            with pytest.raises(OverflowError):
                refused()


@pytest.mark.parametrize("other", ["i2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "i4", "i8"])
@pytest.mark.parametrize("function", BINARY)
def test_integers_are_promoted_as_in_numpy(session, rng, function, dtype, other):
    x, y = random_array(rng, (3, 4), dtype), away_from_zero(rng, (3, 1), other)
    if function is operator.sub and dtype == other == "?":
        return
    a, b = session.upload(x), session.upload(y)
    expected, magnitude = function(x, y), bound_of(function, x, y)
    for result in function(a, b), function(a, y), function(x, b):
        assert_agrees(result, expected, magnitude)
    if function is not operator.truediv:
        assert_agrees(function(b, a), function(y, x), bound_of(function, y, x))


@pytest.mark.parametrize("number", [2, 0.5, 1j, np.float32(2), np.float16(2)])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "i4", "i8", "f2"])
@pytest.mark.parametrize("function", BINARY)
def test_numbers_and_integers_are_promoted_as_in_numpy(
    session, rng, function, dtype, number
):
    x = random_array(rng, (3, 4), dtype)
    t = session.upload(x)
    expected = function(x, number)
    assert_agrees(function(t, number), expected, bound_of(function, x, number))
    x = np.abs(x) + np.asarray(1, dtype)
    t = session.upload(x)
    expected = function(number, x)
    assert_agrees(function(number, t), expected, bound_of(function, number, x))


def test_mixed_floating_point_types_are_promoted(session, rng):
    x = {t: away_from_zero(rng, (3, 3), t) for t in FLOATS}
    for left, right in [("f4", "f8"), ("f8", "f4"), ("c8", "c16"), ("f8", "c16")]:
        a, b = x[np.dtype(left)], x[np.dtype(right)]
        for function in BINARY:
            expected = function(a, b)
            magnitude = bound_of(function, a, b)
            assert_agrees(
                function(session.upload(a), session.upload(b)), expected, magnitude
            )
            assert_agrees(function(session.upload(a), b), expected, magnitude)
            assert_agrees(function(a, session.upload(b)), expected, magnitude)


@pytest.mark.parametrize(
    "function", [operator.iadd, operator.isub, operator.imul, operator.itruediv]
)
def test_operators_in_place_write_the_tensor(session, rng, function):
    x, y = rng.random((3, 4)) + 1, rng.random((1, 4)) + 1
    for other in y, session.upload(y), 3, 2.5:
        t = session.upload(x)
        same, view = t, t[1:]
        t = function(t, other)
        assert t is same
        expected = function(x.copy(), np.asarray(other))
        assert_agrees(t, expected, np.abs(expected) + np.abs(x) + 3)
        np.testing.assert_array_equal(view.numpy(), t.numpy()[1:])
    with pytest.raises(tensord.InvalidArgument, match="cannot be stored"):
        function(session.upload(y), x)
    with pytest.raises(TypeError, match="complex128 cannot be stored"):
        function(session.upload(y), 1j)


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "i1", "i4"])
@pytest.mark.parametrize(
    "function", [operator.iadd, operator.isub, operator.imul, operator.itruediv]
)
def test_operators_in_place_take_other_dtypes_of_a_kind(session, rng, function, dtype):
    for other in ["?", "i1", "i8", "u1", "f2", "f4", "f8", "c8", "c16"]:
        x = away_from_zero(rng, (3, 4), dtype)
        y = away_from_zero(rng, (4,), other)
        expected = x.copy()
        for operand in (y, session.upload(y)):
            t = session.upload(x)
            try:
                expected = function(x.copy(), y)
            except TypeError:
                with pytest.raises(TypeError, match="cannot be stored"):
                    function(t, operand)
                continue
            same, t = t, function(t, operand)
            assert t is same
            magnitude = np.abs(widened(x)) + np.abs(widened(y)) + np.abs(expected)
            assert_agrees(t, expected, magnitude)


def test_operators_in_place_may_overlap(session, rng):
    x = rng.random(10)
    t = session.upload(x)
    t[1:] += t[:-1]
    x[1:] += x[:-1].copy()
    np.testing.assert_array_equal(t.numpy(), x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_numbers_of_zero_divide_as_in_numpy(session, dtype):
    values = [1, -2, 0] if dtype.kind == "f" else [1, -2, 0, 1 + 2j, -3j]
    x = np.array(values, dtype)
    t = session.upload(x)
    for zero in [0, 0.0, -0.0] + ([0j] if dtype.kind == "c" else []):
        with np.errstate(all="ignore"):
            expected = x / zero
        np.testing.assert_array_equal((t / zero).numpy(), expected)


@pytest.mark.parametrize(
    "function",
    [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge],
)
def test_comparisons_are_tensors_of_bools(session, rng, function):
    x, y = rng.integers(0, 3, (3, 4)).astype("f8"), rng.integers(0, 3, 4).astype("i4")
    t, u = session.upload(x), session.upload(y)
    expected = function(x, y)
    for result in function(t, u), function(t, y), function(x, u):
        assert_agrees(result, expected, expected)
    for number in 1, 2.5, [1, 1, 1, 1]:
        assert_agrees(function(t, number), function(x, number), expected)
        assert_agrees(function(number, t), function(number, x), expected)
    with pytest.raises(tensord.InvalidArgument, match="do not broadcast"):
        function(t, np.ones(3))


def test_tensors_are_hashed_as_objects(session):
    t, u = session.upload(np.ones(3)), session.upload(np.ones(3))
    assert (t == t).numpy().all() and not (t != t).numpy().any()
    assert (t != None) is True and (t == None) is False  # noqa: E711
    assert (t == "name") is False
    assert t in [None, t] and [u, t].index(u) == 0
    assert len({t, u, t}) == 2 and {t: 1, u: 2}[u] == 2
    with pytest.raises(ValueError, match="wanted one"):
        t in [u, t]
    with pytest.raises(TypeError, match="'<'|not supported"):
        t < None


def test_factors_may_be_tensors(session):
    ones, two = np.ones(3), session.upload(np.float64(2))
    assert session.einsum("i,i,i->", ones, ones, ones, alpha=two).item() == 6
    zero = session.upload(np.float64(0))
    assert session.permute(ones, "i", "i", pad_value=zero).shape == (3,)


def test_parts_are_changed_in_place(session, rng):
    x = rng.random((4, 5))
    t = session.upload(x)
    t[1:3] += 1
    t[:, 0] *= 2
    x[1:3] += 1
    x[:, 0] *= 2
    np.testing.assert_array_equal(t.numpy(), x)


@given(
    st.sampled_from([(2,), (2, 3), (3, 2), (5, 2, 3), (1, 3, 2), (4, 1, 3, 2), (0, 2)]),
    st.sampled_from([(2,), (3,), (2, 3), (3, 2), (5, 3, 2), (1, 2, 3), (2, 0)]),
    st.sampled_from([*FLOATS, np.dtype("i4")]),
)
def test_matmul_agrees_with_numpy(session, shape, other, dtype):
    rng = np.random.default_rng(3)
    x, y = random_array(rng, shape, dtype), random_array(rng, other, dtype)
    a, b = session.upload(x), session.upload(y)
    try:
        expected = x @ y
    except ValueError:
        with pytest.raises(tensord.InvalidArgument) as failure:
            a @ b
        assert failure.value.reason == "MODE_EXTENT_MISMATCH"
        return
    for result in a @ b, a @ y, x @ b, np.matmul(x, b):
        assert_agrees(result, expected, np.abs(widened(x)) @ np.abs(widened(y)), 5)


def test_matmul_stretches_nothing_but_batches(session):
    with pytest.raises(ValueError):
        np.ones((2, 1)) @ np.ones((3, 4))
    t = session.upload(np.ones((2, 1)))
    for refused in (
        lambda: t @ np.ones((3, 4)),
        lambda: t @ 2,
        lambda: np.ones(()) @ t,
    ):
        with pytest.raises(ValueError):
            refused()


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
@given(data=st.data())
def test_reductions_agree_with_numpy(session, name, data):
    shape = data.draw(st.sampled_from([(), (5,), (3, 4), (2, 3, 4), (0, 3)]))
    dtype = data.draw(st.sampled_from(FLOATS[:2] if name in ("max", "min") else FLOATS))
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    x = np.asarray(random_array(rng, shape, dtype))
    axes = st.lists(st.integers(-len(shape), len(shape) - 1), unique_by=lambda i: i % 7)
    axis = data.draw(st.none() if not shape else st.none() | axes.map(tuple))
    if axis is not None and len({i % len(shape) for i in axis}) < len(axis):
        axis = axis[:1]
    keepdims = data.draw(st.booleans())
    method = getattr(session.upload(x), name)
    if name in ("max", "min"):
        try:
            expected = getattr(x, name)(axis=axis, keepdims=keepdims)
        except ValueError:
            with pytest.raises(tensord.InvalidArgument) as failure:
                method(axis=axis, keepdims=keepdims)
            assert failure.value.reason == "REDUCTION_OF_NOTHING"
            return
    elif name == "mean" and 0 in shape:
        return
    else:
        expected = getattr(x, name)(axis=axis, keepdims=keepdims)
    absolute = getattr(np.abs(widened(x)), name)(axis=axis, keepdims=keepdims)
    result = method(axis=axis, keepdims=keepdims)
    # A product's error is relative to each factor's.
    assert_agrees(
        result, expected, absolute + np.abs(widened(expected)), 3 * x.size + 3
    )


def test_reductions_write_to_out(session, rng):
    x = rng.random((3, 4))
    t, out = session.upload(x), session.create((3,), "f8")
    assert t.sum(1, out=out) is out
    assert_within_bound(out.numpy(), x.sum(1), x.sum(1), 4)
    kept = session.create((3, 1), "f8")
    assert t.sum(1, out=kept, keepdims=True) is kept
    assert_within_bound(
        kept.numpy(), x.sum(1, keepdims=True), x.sum(1, keepdims=True), 4
    )
    wide = session.upload(x.astype("f4")).sum(dtype="f8")
    assert wide.dtype == np.float64


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "i4", "i8"])
def test_reductions_of_integers_agree_with_numpy(session, rng, dtype):
    x = random_array(rng, (40, 3), dtype)
    t = session.upload(x)
    for axis in None, 0, (0, 1), ():
        for name in "sum", "prod":
            result = getattr(t, name)(axis)
            assert result.dtype == np.int64
            np.testing.assert_array_equal(
                result.numpy(), getattr(x.astype(np.int64), name)(axis)
            )
        if dtype != "?":
            np.testing.assert_array_equal(t.max(axis).numpy(), x.max(axis))
        assert_agrees(t.mean(axis), x.mean(axis), np.abs(x.mean(axis)), 123)
    assert t.sum(dtype=dtype).numpy() == x.sum(dtype=dtype)
    assert t.sum(dtype="f8").item() == x.sum() and t.sum(dtype="f4").dtype == "f4"
    assert t.mean(dtype="f4").dtype == np.float32
    with pytest.raises(tensord.Unimplemented, match="wanted a floating-point dtype"):
        t.mean(dtype="i8")


def test_reductions_take_out_of_another_dtype(session, rng):
    x = rng.integers(0, 100, (3, 4)).astype("i1")
    t = session.upload(x)
    for dtype in "i1", "i8", "f4", "f8", "c16":
        out = session.create(3, dtype)
        assert t.sum(1, out=out) is out
        np.testing.assert_array_equal(out.numpy(), x.sum(1, out=np.empty(3, dtype)))
    single = session.create((3, 1), "f4")
    assert t.mean(1, out=single, keepdims=True) is single
    np.testing.assert_allclose(single.numpy(), x.mean(1, keepdims=True), rtol=1e-6)
    with pytest.raises(TypeError, match="cannot be stored"):
        t.mean(out=session.create((), "i8"))


def test_unary_operators_agree_with_numpy(session, rng):
    x = rng.random((3, 4)) - 0.5
    z = x + 1j * rng.random((3, 4))
    t, u = session.upload(x), session.upload(z)
    np.testing.assert_array_equal((-t).numpy(), -x)
    copy = +t
    copy[...] = 0
    np.testing.assert_array_equal((+t).numpy(), x)
    np.testing.assert_array_equal(abs(t).numpy(), abs(x))
    np.testing.assert_array_equal((-u).numpy(), -z)
    np.testing.assert_array_equal(u.conj().numpy(), z.conj())
    np.testing.assert_array_equal(u.conjugate().numpy(), np.conjugate(u).numpy())
    np.testing.assert_array_equal(t.conj().numpy(), x)
    assert_agrees(abs(u), abs(z), abs(z))
    assert_agrees(t**2, x**2, x**2)
    assert_agrees(abs(t) ** 0.5, abs(x) ** 0.5, abs(x) ** 0.5)
    np.testing.assert_allclose((t**-1).numpy(), x**-1.0, rtol=1e-14)
    np.testing.assert_allclose((abs(t) ** t).numpy(), abs(x) ** x, rtol=1e-14)
    np.testing.assert_allclose((2**t).numpy(), 2**x, rtol=1e-14)
    np.testing.assert_allclose((u**0.5).numpy(), z**0.5, rtol=1e-14)
    whole = session.upload(np.arange(4, dtype=np.int16))
    assert (whole**2).dtype == np.int16 and (whole**2.0).dtype == np.float64
    assert (whole**0.5).numpy().tolist() == (np.arange(4) ** 0.5).tolist()
    t **= 3
    np.testing.assert_allclose(t.numpy(), x**3, rtol=1e-14)
    with pytest.raises(ValueError, match="negative integer power"):
        whole**-1
    for refused in (
        lambda: t + "x",
        lambda: None * t,
        lambda: t @ "x",
        lambda: t ** "x",
    ):
        with pytest.raises(TypeError):
            refused()


def test_expressions_take_a_call_an_operator(session, rng):
    x, y = session.upload(rng.random((4, 4))), session.upload(rng.random((4, 4)))
    calls = count_calls(session)
    (2 * x @ y + np.ones(4)).sum(0)
    assert calls() == ["Permute", "Contract", "Elementwise", "Reduce"]


def test_a_single_element_is_formatted_as_pythons_numbers_are(session):
    x = session.upload(np.array([1.25, 2.5]))
    assert f"{x[0]:.3f} {x.sum():>6.1e}" == "1.250 3.8e+00"
    first = x[0]
    assert f"{first}" == str(first)
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{x:.3f}"


def test_values_from_expressions_leave_with_them(session, rng):
    x = session.upload(rng.random((4, 4)))
    gc.collect()  # What other tests have left.
    session.link.keeper.flush()
    before = session.describe().tensor_count
    total = float((x * x - x / 2 + x[:1] @ x).sum())
    assert np.isfinite(total)
    session.link.keeper.flush()
    assert session.describe().tensor_count == before
