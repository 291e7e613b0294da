"""Functions of `tensord.array` compute what NumPy's and the array API's do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensord
import tensord.array as xp
from random_arrays import random_array
from tensord import RemoteTensor

FLOATS = ["f4", "f8"]
COMPLEX = ["c8", "c16"]
WHOLE = ["i1", "i2", "i4", "i8", "u1"]
ALL = ["?", *WHOLE, *FLOATS, *COMPLEX]
SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (3, 1, 2), (0, 3)]

few = settings(max_examples=25)


@pytest.fixture(scope="module", autouse=True)
def session(address: str) -> Iterator[tensord.DeferredSession]:
    """The session of the namespace, as `use` opens it."""
    opened = xp.use(address)
    assert isinstance(opened, tensord.DeferredSession)
    with opened:
        yield opened
    xp.use(None)


def assert_same(
    result: Any, expected: Any, roundings: float = 8, terms: Any = None
) -> None:
    """Checks a tensor against an array: dtype, shape, and elements but for roundings.

    Args:
        result: A tensor.
        expected: NumPy's result.
        roundings: How many units in the last place elements may be away from it,
            measured by the largest one.
        terms: By what to measure instead: sums of absolute values, where what is summed
            may be more than the sum.
    """
    expected = np.asarray(expected)
    assert isinstance(result, RemoteTensor)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    actual = result.numpy()
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(actual, expected)
        return
    unit = np.finfo(expected.dtype).eps / 2
    of = np.abs(expected if terms is None else terms)
    largest = np.max(of, initial=0, where=np.isfinite(of))
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=roundings * unit * largest
    )


def assert_as_strict(name: str, result: RemoteTensor, *operands: Any, **options: Any):
    """Checks shape and dtype against the array API, as far as it takes the operands."""
    function = getattr(strict, name, None)
    if function is None:
        return
    try:
        expected = function(*map(strict_of, operands), **options)
    except (TypeError, ValueError):
        return  # The array API leaves it open.
    assert result.shape == expected.shape
    assert result.dtype == np.asarray(expected).dtype


def strict_of(operand: Any) -> Any:
    return strict.asarray(operand) if isinstance(operand, np.ndarray) else operand


def array(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.asarray(random_array(np.random.default_rng(seed), shape, dtype))


seeds = st.integers(0, 1000)
shapes = st.sampled_from(SHAPES)


@st.composite
def pairs(draw: st.DrawFn, dtypes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays whose shapes broadcast, of one dtype or two."""
    whole = draw(st.sampled_from([(), (3,), (2, 3), (3, 1, 2), (0, 3)]))

    def part() -> tuple[int, ...]:
        kept = whole[draw(st.integers(0, len(whole))) :]
        return tuple(draw(st.sampled_from([n, 1])) for n in kept)

    x = array(draw(seeds), part(), draw(st.sampled_from(dtypes)))
    y = array(draw(seeds), part(), draw(st.sampled_from(dtypes)))
    return x, y


BINARY = {
    "add": ALL,
    "subtract": ALL[1:],
    "multiply": ALL,
    "divide": [*FLOATS, *COMPLEX],
    "maximum": ["?", *WHOLE, *FLOATS],
    "minimum": ["?", *WHOLE, *FLOATS],
    "equal": ALL,
    "not_equal": ALL,
    "less": ALL[:-2],
    "less_equal": ALL[:-2],
    "greater": ALL[:-2],
    "greater_equal": ALL[:-2],
    "logical_and": ALL,
    "logical_or": ALL,
    "logical_xor": ALL,
}


@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
@few
def test_functions_of_two_agree(name: str, data: st.DataObject):
    x, y = data.draw(pairs(BINARY[name]))
    if name == "divide":
        y = y + np.asarray(2, y.dtype)
    a, b = xp.asarray(x), xp.asarray(y)
    expected = getattr(np, name)(x, y)
    result = getattr(xp, name)(a, b)
    assert_same(result, expected)
    assert_same(getattr(np, name)(x, b), expected)
    assert_as_strict(name, result, x, y)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("number", [2, 0.5, True, 1j])
def test_numbers_take_the_dtype_of_tensors(dtype: str, number: Any):
    x = array(1, (2, 3), dtype)
    a = xp.asarray(x)
    for name in "add", "multiply", "divide", "equal", "not_equal":
        function, expected = getattr(xp, name), getattr(np, name)
        assert_same(function(a, number), expected(x, number))
        if name != "divide":
            assert_same(function(number, a), expected(number, x))


@given(seeds, shapes, st.sampled_from(FLOATS))
@few
def test_division_is_exact(seed: int, shape: tuple[int, ...], dtype: str):
    x, y = array(seed, shape, dtype), array(seed + 1, shape, dtype)
    with np.errstate(all="ignore"):
        for divisor in y, np.asarray(3, dtype), np.zeros((), dtype):
            result = xp.asarray(x) / xp.asarray(divisor)
            np.testing.assert_array_equal(result.numpy(), x / divisor)
        np.testing.assert_array_equal((1 / xp.asarray(y)).numpy(), 1 / y)


@pytest.mark.parametrize("dtype", [*WHOLE, *FLOATS, *COMPLEX])
def test_powers_agree(dtype: str):
    x = np.asarray([0, 1, 2, 3], dtype) + np.asarray(
        0 if dtype in WHOLE else 0.5, dtype
    )
    y = np.asarray([3, 2, 1, 0], dtype)
    a, b = xp.asarray(x), xp.asarray(y)
    assert_same(a**b, x**y, 64)
    assert_same(xp.pow(a, b), np.power(x, y), 64)
    for exponent in 0, 1, 2, 3, 0.5, 1.5:
        assert_same(a**exponent, x**exponent, 64)
    assert_same(2**a, 2**x, 64)
    if dtype in WHOLE:
        with pytest.raises(ValueError, match="negative integer power"):
            a**-1
    else:
        assert_same(a**-1, x**-1, 64)


UNARY = {
    "sqrt": (0.1, 2),
    "exp": (-2, 2),
    "log": (0.1, 2),
    "log2": (0.1, 2),
    "log10": (0.1, 2),
    "sin": (-2, 2),
    "cos": (-1, 1),
    "tan": (-1, 1),
    "sinh": (-2, 2),
    "cosh": (-2, 2),
    "tanh": (-2, 2),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "atan": (-2, 2),
    "asinh": (-2, 2),
    "acosh": (1.1, 3),
    "atanh": (-0.9, 0.9),
    "floor": (-3, 3),
    "ceil": (-3, 3),
    "trunc": (-3, 3),
    "square": (-2, 2),
    "reciprocal": (0.5, 2),
    "negative": (-2, 2),
    "positive": (-2, 2),
    "abs": (-2, 2),
    "sign": (-2, 2),
}


@pytest.mark.parametrize("name", UNARY)
@given(data=st.data())
@few
def test_functions_of_one_agree(name: str, data: st.DataObject):
    low, high = UNARY[name]
    dtype = data.draw(st.sampled_from(["f2", *FLOATS]))
    rng = np.random.default_rng(data.draw(seeds))
    x = np.asarray(rng.uniform(low, high, data.draw(shapes)).astype(dtype))
    result = getattr(xp, name)(xp.asarray(x))
    expected = getattr(
        np,
        {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(
            name,
            {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}.get(
                name, name
            ),
        ),
    )(x)
    assert_same(result, expected)
    if dtype != "f2":
        assert_as_strict(name, result, x)


@pytest.mark.parametrize("dtype", WHOLE)
def test_functions_of_integers_are_promoted_as_in_numpy(dtype: str):
    x = np.asarray([0, 1, 4, 9], dtype)
    a = xp.asarray(x)
    for name in "sqrt", "exp", "sin", "floor", "abs", "square", "sign", "negative":
        assert_same(getattr(xp, name)(a), getattr(np, name)(x))
    if dtype != "u1":
        assert_same(abs(-a), x)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_functions_of_complex_numbers_agree(dtype: str):
    x = array(3, (3, 4), dtype)
    a = xp.asarray(x)
    for name in (
        "abs",
        "real",
        "imag",
        "conj",
        "negative",
        "square",
        "sign",
        "reciprocal",
    ):
        assert_same(getattr(xp, name)(a), getattr(np, name)(x))
    assert_same(a.real, x.real)
    assert_same(a.imag, x.imag)
    assert_same(xp.asarray(x.real).imag, x.real.imag)
    assert_same(xp.asarray(x.real).real, x.real)
    for name in "sqrt", "exp", "log", "sin", "cos", "sinh", "cosh", "tanh":
        assert_same(getattr(xp, name)(a), getattr(np, name)(x), 32)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_numbers_that_are_none_are_found(dtype: str):
    values = [0, 1, math.inf, -math.inf, math.nan]
    if dtype in COMPLEX:
        values += [complex(1, math.inf), complex(math.nan, 1), complex(3e38, 3e38)]
    x = np.asarray(values, dtype)
    a = xp.asarray(x)
    for name in "isfinite", "isinf", "isnan", "logical_not":
        assert_same(getattr(xp, name)(a), getattr(np, name)(x))
    assert_same(xp.isclose(a, a), np.isclose(x, x))
    assert_same(xp.isclose(a, a, equal_nan=True), np.isclose(x, x, equal_nan=True))
    assert xp.allclose(a[:4], a[:4]) and not xp.allclose(a, a)
    assert xp.array_equal(a[:4], x[:4]) and not xp.array_equal(a, x)
    if dtype in FLOATS:
        assert_same(xp.sign(a), np.sign(x))
        assert_same(xp.maximum(a, 0), np.maximum(x, 0))


@pytest.mark.parametrize("source", [*ALL, "f2"])
def test_dtypes_become_each_other(source: str):
    x = array(2, (3, 4), source)
    if source not in ("?", *WHOLE):
        x = x * np.asarray(40, source)
    a = xp.asarray(x)
    for target in [*ALL, "f2"]:
        wanted = np.dtype(target)
        value = x.real if source in COMPLEX and wanted.kind not in "c?b" else x
        with np.errstate(all="ignore"):
            expected = (
                np.asarray(value).astype(np.int64).astype(wanted)
                if (wanted.kind in "iu")
                else np.asarray(value).astype(wanted)
            )
        if wanted.kind == "u" and value.dtype.kind == "f":
            expected = np.clip(np.trunc(value), 0, 255).astype(wanted)
        assert_same(a.astype(target), expected, 1)
        assert_same(xp.astype(a, target), expected, 1)
    assert a.astype(source, copy=False) is a and a.astype(source) is not a
    with pytest.raises(TypeError, match="by casting 'safe'"):
        xp.asarray(np.ones(2)).astype("f4", casting="safe")


def test_conversions_saturate_and_wrap():
    x = xp.asarray(np.array([300.7, -300.7, math.nan, math.inf, -0.5]))
    assert x.astype("i1").numpy().tolist() == [127, -128, 0, 127, 0]
    assert x.astype("u1").numpy().tolist() == [255, 0, 0, 255, 0]
    assert x.astype("?").numpy().tolist() == [True] * 5
    assert xp.asarray(np.array([300, -1])).astype("u1").numpy().tolist() == [44, 255]


REDUCTIONS = {
    "sum": ALL,
    "prod": ALL,
    "max": ["?", *WHOLE, *FLOATS],
    "min": ["?", *WHOLE, *FLOATS],
    "mean": [*FLOATS, *COMPLEX, "i4"],
    "all": ALL,
    "any": ALL,
    "count_nonzero": ALL,
    "var": [*FLOATS, *COMPLEX],
    "std": FLOATS,
}


@pytest.mark.parametrize("name", REDUCTIONS)
@given(data=st.data())
@few
def test_reductions_agree(name: str, data: st.DataObject):
    shape = data.draw(st.sampled_from([(), (5,), (3, 4), (2, 3, 2)]))
    x = array(data.draw(seeds), shape, data.draw(st.sampled_from(REDUCTIONS[name])))
    if x.dtype.kind in "iu":
        x = np.asarray(x % np.asarray(5, x.dtype))
    axis = data.draw(
        st.sampled_from([None, *range(len(shape)), tuple(range(len(shape)))])
    )
    keepdims = data.draw(st.booleans())
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    if expected.dtype == np.uint64:
        expected = expected.astype(np.int64)  # The server has no uint64.
    result = getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims)
    size = np.abs(x)
    terms = {
        "sum": lambda: np.sum(size, axis=axis),
        "mean": lambda: np.mean(size, axis=axis),
        "var": lambda: np.mean(size * size, axis=axis),
        "std": lambda: np.sqrt(np.mean(size * size, axis=axis)),
    }
    assert_same(result, expected, 64, terms.get(name, lambda: None)())
    if x.dtype != np.uint8:
        assert_as_strict(name, result, x, axis=axis, keepdims=keepdims)


def test_reductions_of_nothing_agree():
    a = xp.zeros((0, 3))
    for name in "sum", "prod", "all", "any", "count_nonzero":
        assert_same(
            getattr(xp, name)(a, axis=0), getattr(np, name)(np.zeros((0, 3)), 0)
        )
    with pytest.raises(ValueError):
        xp.max(a, axis=0)


@given(
    pairs([*FLOATS, *COMPLEX, "i4"]), st.lists(st.booleans(), min_size=6, max_size=6)
)
@few
def test_where_chooses(operands: tuple[np.ndarray, np.ndarray], chosen: list[bool]):
    x, y = operands
    shape = np.broadcast_shapes(x.shape, y.shape)
    condition = np.resize(np.array(chosen), shape)
    expected = np.where(condition, x, y)
    a, b = xp.asarray(x), xp.asarray(y)
    assert_same(xp.where(xp.asarray(condition), a, b), expected)
    assert_same(np.where(condition, a, y), expected)
    assert_same(xp.where(a != 0, 1.0, a), np.where(x != 0, np.asarray(1, _weak(x)), x))


def _weak(x: np.ndarray) -> np.dtype:
    return np.dtype(np.float64) if x.dtype.kind in "iub" else x.dtype


def test_clip_agrees():
    x = array(5, (3, 4), "f8")
    a = xp.asarray(x)
    for low, high in (-0.2, 0.3), (None, 0.1), (0.1, None), (x[0] - 1, x[1] + 1):
        assert_same(xp.clip(a, low, high), np.clip(x, low, high))
        assert_same(np.clip(a, low, high), np.clip(x, low, high))
    assert_same(xp.clip(a, max=0.1), np.clip(x, None, 0.1))
    assert_same(a.clip(0, None), x.clip(0, None))


def test_values_of_one_element_become_pythons():
    one = xp.asarray(np.array([[2.5]]))
    assert bool(one) and float(one) == 2.5 and int(one) == 2 and complex(one) == 2.5
    three = xp.asarray(np.int64(3))
    assert range(three) == range(3) and list("abcd")[three] == "d"
    assert xp.asarray(np.arange(5))[three].item() == 3
    for wrong in one, xp.asarray(np.array([1])), xp.asarray(np.array(True)):
        with pytest.raises(TypeError, match="is no index"):
            range(wrong)
    with pytest.raises(ValueError, match="wanted one"):
        bool(xp.zeros(2))
    assert xp.arange(3).tolist() == [0, 1, 2]


def test_comparisons_are_tensors_and_order_is_real():
    a = xp.asarray(np.array([1.0, math.nan]))
    assert (a == a).numpy().tolist() == [True, False]
    assert (a != a).numpy().tolist() == [False, True]
    assert (a == None) is False and (a != None) is True  # noqa: E711
    assert (a == "name") is False
    z = xp.ones(2, "c16")
    with pytest.raises(TypeError, match="no order"):
        z < z
    with pytest.raises(TypeError, match="no order"):
        xp.maximum(z, 1)
    big = xp.asarray(np.array([1, 2], np.int8))
    assert (big < 1000).numpy().all() and not (big == -129).numpy().any()


def test_bools_are_combined():
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    a, b = xp.asarray(x), xp.asarray(y)
    assert_same(a & b, x & y)
    assert_same(a | y, x | y)
    assert_same(x ^ b, x ^ y)
    assert_same(~a, ~x)
    with pytest.raises(TypeError, match="wanted bools"):
        a & 1


def test_downloads_are_counted():
    before = xp.downloads()
    a = xp.asarray(np.random.rand(4, 4))
    b = xp.exp(a) @ a.T + xp.eye(4)
    u, s, v = xp.linalg.svd(b)
    xp.sum(u * s[None, :] @ v)
    assert xp.downloads() == before
    assert xp.linalg.norm(b) > 0
    b.numpy(), np.asarray(b), b[0, 0].item()
    assert xp.downloads() == before + 4
    assert xp.allclose(b, b)
    assert xp.downloads() == before + 5


def test_errors_name_the_line_that_called(session):
    a = xp.asarray(np.ones((2, 2)))
    broken = session.elementwise(a, "ij", a, "ij", algorithm="no.such.kernel")
    later = xp.exp(broken) + 1
    with pytest.raises(tensord.Error, match=rf"{__file__}, line \d+"):
        later.numpy()


def test_names_that_are_not_there_tell_the_nearest():
    with pytest.raises(
        AttributeError, match="no 'reshap', the nearest name is 'reshape'"
    ):
        xp.reshap
    with pytest.raises(AttributeError, match="nearest name is 'svdvals'"):
        xp.linalg.svdvalues
    with pytest.raises(AttributeError, match="tensord"):
        tensord.no_such_thing
    assert tensord.reshape is xp.reshape


def test_a_session_is_wanted(monkeypatch: pytest.MonkeyPatch, session, address):
    xp.use(None)
    try:
        monkeypatch.delenv("TENSORD_ADDRESS", raising=False)
        with pytest.raises(RuntimeError, match=r"tensord.array.use\(session\)"):
            xp.zeros(3)
        monkeypatch.setenv("TENSORD_ADDRESS", address)
        made = xp.zeros(3)
        assert made.session is not session
        made.session.close()
    finally:
        xp.use(session)


def test_sessions_are_not_mixed(address: str):
    with tensord.connect(address) as other:
        with pytest.raises(tensord.InvalidArgument, match="another session"):
            xp.ones(3) + other.upload(np.ones(3))


def test_the_namespace_is_that_of_tensors():
    a = xp.ones(3)
    assert a.__array_namespace__() is xp
    assert not hasattr(xp, "__array_api_version__")
    with pytest.raises(ValueError, match="not all of any version"):
        a.__array_namespace__(api_version="2024.12")
    assert a.to_device(a.device) is a
    with pytest.raises(ValueError, match="device is 'tpu'"):
        a.to_device("tpu")
    missing = [name for name in xp.__all__ if not hasattr(xp, name)]
    assert missing == []


def test_the_namespace_says_what_it_has(session):
    info = xp.__array_namespace_info__()
    assert info.devices() == [info.default_device()] == [session.device]
    assert info.default_dtypes()["real floating"] == xp.zeros(1).dtype
    assert info.default_dtypes()["integral"] == xp.arange(1).dtype
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert set(info.dtypes()) == set(strict.__array_namespace_info__().dtypes()) - {
        "uint16",
        "uint32",
        "uint64",
    }
    for name in info.dtypes():
        for kind in "bool", "integral", "numeric", "real floating", ("bool", "numeric"):
            ours = xp.isdtype(getattr(xp, name), kind)
            assert ours == strict.isdtype(getattr(strict, name), kind)
    assert xp.isdtype(xp.bfloat16, "real floating") and xp.isdtype(xp.int8, np.int8)
    with pytest.raises(ValueError, match="kind is 'number'"):
        xp.isdtype(xp.int8, "number")
    a = xp.ones(2, "f4")
    assert np.result_type(a, np.float64) == np.float64
    assert np.can_cast(a, "f8") and not np.can_cast(a, "f2")
