"""What is at the edges of `tensord.array` is as NumPy has it, or refused at the call."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import numpy as np
import pytest

import tensord
import tensord.array as xp


@pytest.fixture(scope="module", autouse=True)
def session(address: str) -> Iterator[tensord.DeferredSession]:
    """The session of the namespace."""
    with xp.use(address) as opened:
        yield opened
    xp.use(None)


@pytest.fixture
def t() -> tensord.RemoteTensor:
    return xp.asarray([1.0, 2.0, 3.0])


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_products_with_zero_keep_nan_and_signs(dtype: str, zero: float) -> None:
    x = np.array([np.nan, np.inf, -1, 2], dtype)
    u = xp.asarray(x)
    with np.errstate(invalid="ignore"):
        expected = x * zero
    for result in u * zero, zero * u, xp.multiply(zero, u):
        np.testing.assert_array_equal(result.numpy(), expected)
        if dtype != "c16":
            signs = np.signbit(result.numpy()[2:])
            np.testing.assert_array_equal(signs, np.signbit(expected[2:]))


def test_negative_exponents_of_integers_alone_are_refused() -> None:
    whole = xp.asarray([1, 2, 3])
    assert ((-2) ** whole).numpy().tolist() == [-2, 4, -8]
    assert (whole ** np.array([0, 1, 2])).numpy().tolist() == [1, 2, 9]
    assert (whole ** np.array([-1.0])).numpy().tolist() == [1, 1 / 2, 1 / 3]
    for exponent in -1, np.int64(-1), np.array([-1, 2, 0]), [1, -2, 3]:
        with pytest.raises(ValueError, match="negative integer power"):
            whole**exponent
        with pytest.raises(ValueError, match="negative integer power"):
            whole.astype(np.bool_) ** exponent


def test_linspace_takes_tensors(t: tensord.RemoteTensor) -> None:
    x = t.numpy()
    for bounds in (0, 2), (slice(None), 1), (1, slice(1, None)):
        first, last = bounds
        for endpoint in True, False:
            result = xp.linspace(t[first], t[last], 5, endpoint=endpoint)
            expected = np.linspace(x[first], x[last], 5, endpoint=endpoint)
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-15)
    assert xp.linspace(xp.asarray(np.float32(1)), 3, 3).dtype == np.float32
    assert np.linspace(t[0], 3, 3, dtype=np.int64).numpy().tolist() == [1, 2, 3]


def test_svd_returns_values_alone_and_names_what_it_does_not_know() -> None:
    a = np.arange(6.0).reshape(2, 3)
    values = xp.linalg.svd(xp.asarray(a), full_matrices=False, compute_uv=False)
    np.testing.assert_allclose(values.numpy(), np.linalg.svd(a, compute_uv=False))
    with pytest.raises(TypeError, match="svd has no argument 'hermitian'"):
        xp.linalg.svd(xp.asarray(a), hermitian=True)


def test_copies_are_made_on_the_server(t: tensord.RemoteTensor) -> None:
    before = xp.downloads()
    for made in copy.copy(t), copy.deepcopy(t), copy.deepcopy([t[:2]])[0]:
        assert isinstance(made, tensord.RemoteTensor) and made.name != t.name
        made[0] = 7
    assert xp.downloads() == before
    assert t.numpy().tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="on a server.*numpy"):
        pickle.dumps(t)
    owner = type(t._owner)
    owner.__new__(owner).__del__()


@pytest.mark.parametrize(
    "options", [{"rank": 0}, {"rank": -1}, {"cutoff": -1}, {"cutoff": np.nan}]
)
def test_truncations_are_checked_at_the_call(options: dict[str, float]) -> None:
    what = r"svd of a with shape \(3, 3\): (rank|cutoff) is"
    with pytest.raises(tensord.InvalidArgument, match=what) as raised:
        xp.linalg.svd(xp.eye(3), **options)
    assert raised.value.reason == "TRUNCATION_OUT_OF_RANGE"


def test_matrices_are_checked_at_the_call() -> None:
    for function in xp.linalg.eigh, xp.linalg.cholesky:
        with pytest.raises(ValueError, match="no square matrices"):
            function(xp.ones((2, 3)))


def test_what_is_no_session_is_not_used(address: str) -> None:
    aio = object.__new__(tensord.aio.Session)
    for wrong in 3, aio:
        with pytest.raises(TypeError, match="wanted a Session"):
            xp.use(wrong)


def test_lists_of_tensors_are_stacked_or_refused(t: tensord.RemoteTensor) -> None:
    before = xp.downloads()
    pair = xp.asarray([t[0], t[1]])
    nested = xp.asarray([[t[0], 5], [t[1], t[2]]], dtype="f4")
    of_one = xp.full((2, 3), t[2]), xp.full((2, 3), t), xp.full_like(t, t[0])
    for refused in (
        lambda: t + [t, t],
        lambda: t @ [t, t],
        lambda: xp.where(t > 1, [t[0], 0, 0], t),
        lambda: t.__setitem__(slice(2), [t[1], t[0]]),
        lambda: xp.clip(t, [t[0], 0, 0]),
        lambda: xp.linalg.norm([t, t]),
        lambda: xp.sum([[t[0]], [t[1]]]),
    ):
        with pytest.raises(TypeError, match="tensord.array.stack"):
            refused()
    count = xp.asarray(2)
    for refused in (
        lambda: xp.take(t, [0, count]),
        lambda: xp.pad(t, count),
        lambda: xp.arange(count),
        lambda: xp.eye(count),
    ):
        with pytest.raises(TypeError, match=r"int\(t\)"):
            refused()
    assert xp.downloads() == before
    assert pair.numpy().tolist() == [1, 2]
    assert nested.dtype == np.float32 and nested.numpy().tolist() == [[1, 5], [2, 3]]
    assert [each.numpy().tolist() for each in of_one] == [
        [[3, 3, 3]] * 2, [[1, 2, 3]] * 2, [1, 1, 1]
    ]  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 2), (100, 100, 2)])
def test_full_broadcasts(shape: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(
        xp.full(shape, [1, 2]).numpy(), np.full(shape, [1, 2])
    )


@pytest.mark.parametrize(("dtype", "most"), [("f4", 10), ("f8", 22)])
def test_logarithms_of_powers_are_whole_numbers(dtype: str, most: int) -> None:
    tens = np.array([10.0**n for n in range(most + 1)], dtype)
    limits = np.finfo(dtype)
    twos = np.exp2(np.arange(limits.minexp, limits.maxexp), dtype=dtype)
    np.testing.assert_array_equal(xp.log10(tens).numpy(), np.arange(most + 1))
    np.testing.assert_array_equal(
        xp.log2(twos).numpy(), np.arange(limits.minexp, limits.maxexp)
    )
    assert int(xp.log10(xp.asarray(1000.0))) == 3
    others = np.array([0, 0.3, 7, np.nextafter(1000, 1001), np.inf, np.nan], dtype)
    with np.errstate(divide="ignore"):
        expected = np.log10(others)
    np.testing.assert_allclose(xp.log10(others).numpy(), expected, rtol=8 * limits.eps)


def test_numbers_of_numpy_have_their_dtype_as_exponents() -> None:
    x = np.array([1, 4], "f4")
    assert (xp.asarray(x) ** np.float64(0.5)).dtype == np.float64
    assert (xp.asarray(x) ** 0.5).dtype == np.float32


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8"])
@pytest.mark.parametrize("number", [2**63, 10**400, -(2**63), -(2**63) - 1, 300])
def test_integers_compare_with_any_of_python(dtype: str, number: int) -> None:
    x = np.array([0, 1], dtype)
    u = xp.asarray(x)
    assert (u == number).numpy().tolist() == [False] * 2
    assert (u != number).numpy().tolist() == [True] * 2
    assert (u < number).numpy().tolist() == [number > 0] * 2
    assert (number <= u).numpy().tolist() == [number < 0] * 2
    assert xp.greater(number, u).numpy().tolist() == [number > 0] * 2


def test_a_view_is_shown_without_being_made(address: str) -> None:
    with tensord.connect(address, deferred=True) as later:
        v = later.upload(np.zeros(3))[1:]
        assert repr(v) == (
            "DeferredTensor(view, shape=(2,), dtype=float64, device='cpu:0')"
        )
        assert "_unmade" in vars(v)
        w = v + 1
    assert "shape=(2,)" in repr(v)
    for use in v.numpy, w.numpy, lambda: w + 1:
        with pytest.raises(tensord.FailedPrecondition, match="the session with .* is"):
            use()


def test_arrays_are_no_output(t: tensord.RemoteTensor) -> None:
    out = np.empty(3)
    for refused in (
        lambda: xp.sqrt(t, out=out),
        lambda: xp.add(t, 1, out=out),
        lambda: xp.sum(t, 0, out=out),
        lambda: xp.matmul(t, t, out=out),
    ):
        with pytest.raises(TypeError, match="wanted a RemoteTensor"):
            refused()


def test_a_vector_has_no_norm_of_matrices(t: tensord.RemoteTensor) -> None:
    with pytest.raises(ValueError, match="'fro' is of matrices"):
        xp.linalg.norm(t, "fro")


def test_names_of_the_package_are_suggested_first() -> None:
    for wrong, right in ("conect", "connect"), ("arctann", "arctan"):
        with pytest.raises(AttributeError, match=f"nearest name is '{right}'"):
            getattr(tensord, wrong)
