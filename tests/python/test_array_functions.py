"""NumPy's functions, and opt_einsum's, take tensors."""

from __future__ import annotations

import operator

import numpy as np
import opt_einsum
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
import tensord.array as xp
from random_products import assert_product_agrees, products
from tensord import RemoteTensor
from test_einsum_programs import count_calls

ADD = "ij,jk,kl->il"


@pytest.fixture
def arrays(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.random((4, 5)), rng.random((5, 6)), rng.random((6, 4))]


@pytest.fixture
def tensors(session: tensord.Session, arrays) -> list[RemoteTensor]:
    return [session.upload(array) for array in arrays]


@given(products(most_operands=3), st.integers(0, 100))
def test_numpy_einsum_runs_on_the_server(session, product, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.random(shape) for shape in product.shapes]
    operands = [session.upload(arrays[0]), *arrays[1:]]
    result = np.einsum(product.subscripts, *operands)
    assert isinstance(result, RemoteTensor)
    assert_product_agrees(result.numpy(), product.subscripts, arrays)


def test_numpy_einsum_takes_its_options(session, arrays, tensors):
    out = session.create((4, 4), "f8")
    assert np.einsum(ADD, *tensors, out=out, optimize=True) is out
    assert_product_agrees(out.numpy(), ADD, arrays)
    path, text = np.einsum_path(ADD, *tensors)
    assert path == np.einsum_path(ADD, *arrays)[0] and "FLOP" in text
    result = np.einsum(ADD, *tensors, optimize=path, order="C", casting="safe")
    assert_product_agrees(result.numpy(), ADD, arrays)
    interleaved = np.einsum(tensors[0], [0, 1], arrays[1], [1, 2])
    assert_product_agrees(interleaved.numpy(), "ij,jk->ik", arrays[:2])


@pytest.mark.parametrize(
    "axes", [0, 1, 2, (1, 0), ([1, 0], [0, 1]), ([-1], [-3]), ([], [])]
)
def test_numpy_tensordot_agrees(session, rng, axes):
    x, y = rng.random((3, 4)), rng.random((4, 3, 4))
    if axes == 2:
        x, y = rng.random((3, 4)), rng.random((3, 4, 2))
    expected = np.tensordot(x, y, axes)
    for a, b in [(session.upload(x), y), (x, session.upload(y))]:
        result = np.tensordot(a, b, axes)
        assert isinstance(result, RemoteTensor) and result.shape == expected.shape
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-14)


def test_numpy_tensordot_refuses_what_it_refuses(session):
    x, y = np.ones((2, 1)), np.ones((3, 4))
    t = session.upload(x)
    for axes in 1, ([0, 1], [0]), ([5], [0]):
        with pytest.raises((ValueError, IndexError)):
            np.tensordot(x, y, axes)
        with pytest.raises(ValueError):
            np.tensordot(t, y, axes)


def test_numpy_transpose_makes_a_view(session, rng):
    x = rng.random((2, 3, 4))
    t = session.upload(x)
    for axes in None, (1, 0, 2), [2, 0, 1]:
        view = np.transpose(t, axes)
        assert view.is_view
        np.testing.assert_array_equal(view.numpy(), np.transpose(x, axes))


def test_functions_of_the_namespace_run_on_the_server(session, tensors, arrays):
    t, x = tensors[0], arrays[0]
    before = xp.downloads()
    results = [
        (function(t), function(x))
        for function in (
            np.sum,
            np.max,
            np.mean,
            np.linalg.norm,
            np.exp,
            np.std,
            np.abs,
        )
    ]
    results.append((np.concatenate([t, x]), np.concatenate([x, x])))
    results.append((x == t, x == x))
    assert xp.downloads() == before
    for result, expected in results:
        assert isinstance(result, RemoteTensor)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-14)
    assert np.sum(session.upload(np.full(200, 100, np.int8))).item() == 20_000
    assert np.allclose(t, x) is True and np.array_equal(t, x + 1) is False


def test_other_functions_are_refused_and_download_nothing(tensors, arrays):
    t, x = tensors[0], arrays[0].copy()
    before = xp.downloads()
    for refused in (
        lambda: np.searchsorted(t, x),
        lambda: np.partition(t, 1),
        lambda: np.fft.fft(t),
        lambda: np.linalg.det(t),
        lambda: np.arctan2(x, t),
        lambda: np.add.reduce(t),
        lambda: np.add(x, t, where=x > 0),
    ):
        with pytest.raises(
            TypeError, match=r"is not computed.*tensord.array.*\.numpy\(\)"
        ):
            refused()
    for refused in (
        lambda: np.add(x, t, out=np.zeros((4, 5))),
        lambda: operator.iadd(x, t),
        lambda: np.sum(t, axis=0, out=np.zeros(5)),
    ):
        with pytest.raises(TypeError, match="wanted a RemoteTensor"):
            refused()
    assert xp.downloads() == before


def test_shapes_are_known_here(session, tensors):
    calls = count_calls(session)
    assert np.shape(tensors[0]) == (4, 5) and np.ndim(tensors[0]) == 2
    assert calls() == []


def test_universal_functions_of_operators_run_on_the_server(session, tensors, arrays):
    t, x = tensors[0], arrays[0]
    for function in np.add, np.subtract, np.multiply, np.true_divide, np.power:
        result = function(x + 1, t)
        assert isinstance(result, RemoteTensor)
        np.testing.assert_allclose(result.numpy(), function(x + 1, x), rtol=1e-14)
    assert isinstance(np.negative(t), RemoteTensor)
    assert isinstance(np.float64(2) * t, RemoteTensor)


def test_out_is_a_tensor_on_the_server(session, arrays, tensors):
    x, y = arrays[0], arrays[0] + 1
    t, out = tensors[0], session.create((4, 5), "f4")
    for function in np.add, np.subtract, np.multiply, np.true_divide:
        for a, b in (t, y), (y, t), (x, y), (t, 2), (2.5, t):
            expected = function(np.asarray(a), np.asarray(b), dtype="f4")
            assert function(a, b, out=out) is out
            np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
    for function in np.negative, np.positive, np.conjugate:
        for a in t, x:
            assert function(a, out=out) is out
            np.testing.assert_array_equal(out.numpy(), function(x).astype("f4"))
    product = session.create((4, 6), "f8")
    for a, b in [(t, arrays[1]), (x, arrays[1])]:
        assert np.matmul(a, b, out=product) is product
        np.testing.assert_allclose(product.numpy(), x @ arrays[1])
        product[...] = 0
        assert np.einsum("ij,jk->ik", a, b, out=product) is product
        np.testing.assert_allclose(product.numpy(), x @ arrays[1])
    wide = session.create(2, "i8")
    hundreds = np.full(2, 100, np.int8)
    np.add(session.upload(hundreds), hundreds, out=wide)
    np.testing.assert_array_equal(wide.numpy(), np.add(hundreds, hundreds))


def test_out_is_not_lost(session, tensors, arrays):
    t, x = tensors[0], arrays[0]
    assert np.exp(x, out=t) is t
    np.testing.assert_allclose(t.numpy(), np.exp(x), rtol=1e-14)
    most = session.create(5, "f8")
    assert np.max(t, 0, most) is most and np.sum(t, axis=0, out=most) is most
    np.testing.assert_allclose(most.numpy(), np.exp(x).sum(0), rtol=1e-14)
    for refused in (
        lambda: np.add(x, x, out=t, where=x > 0),
        lambda: np.subtract.accumulate(x, out=t),
        lambda: np.divmod(x, x, out=(None, t)),
    ):
        with pytest.raises(TypeError, match="is not computed on the server"):
            refused()
    np.testing.assert_allclose(t.numpy(), np.exp(x), rtol=1e-14)


@given(products(most_operands=4, stretched=False), st.integers(0, 100))
def test_opt_einsum_contracts_on_the_server(session, product, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.random(shape) for shape in product.shapes]
    tensors = [session.upload(array) for array in arrays]
    result = opt_einsum.contract(product.subscripts, *tensors)
    assert isinstance(result, RemoteTensor)
    assert_product_agrees(result.numpy(), product.subscripts, arrays)


def test_opt_einsum_takes_the_backend_by_name(session, tensors, arrays):
    result = opt_einsum.contract(ADD, *tensors, backend="tensord", optimize="optimal")
    assert isinstance(result, RemoteTensor)
    assert_product_agrees(result.numpy(), ADD, arrays)
    expression = opt_einsum.contract_expression(ADD, *(a.shape for a in arrays))
    result = expression(*tensors, backend="tensord")
    assert_product_agrees(result.numpy(), ADD, arrays)
    mixed = opt_einsum.contract(ADD, tensors[0], *arrays[1:], backend="tensord")
    assert_product_agrees(np.asarray(mixed), ADD, arrays)
    path, _ = opt_einsum.contract_path(ADD, *arrays)
    given_path = session.einsum(ADD, *tensors, optimize=path)
    assert_product_agrees(given_path.numpy(), ADD, arrays)


def test_functions_of_the_package_take_a_tensor(tensors, arrays):
    result = tensord.einsum(ADD, *tensors)
    assert_product_agrees(result.numpy(), ADD, arrays)
    product = tensord.tensordot(tensors[0], arrays[1], 1)
    np.testing.assert_allclose(product.numpy(), arrays[0] @ arrays[1])
    assert tensord.transpose(tensors[0]).shape == (5, 4)


def test_functions_of_the_package_compute_arrays_here(arrays):
    # As opt_einsum wants it, when a step has arrays only.
    result = tensord.einsum(ADD, *arrays)
    np.testing.assert_array_equal(result, np.einsum(ADD, *arrays))
    assert isinstance(tensord.tensordot(arrays[0], arrays[1], 1), np.ndarray)
    assert isinstance(tensord.transpose(arrays[0]), np.ndarray)
