"""LQ, SVD, truncated too, EIGH and CHOLESKY."""

from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest

import tensord
import tensord.aio
import tensord.array as xp
from random_arrays import random_array
from tensord import TensorSpec

DTYPES = [np.dtype(name) for name in ("f4", "f8", "c8", "c16")]
SHAPES = [(7, 4), (4, 7), (5, 5), (1, 6), (90, 40)]


def adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def bound(a: np.ndarray) -> float:
    """What rounding may do, of the norm of matrices, the last two modes of an array.

    See tests/conformance/matrix/decomposition_conformance_test.cc.
    """
    longer, inner = max(*a.shape[-2:], 4), min(a.shape[-2:])
    return float(4 * (8 * longer * inner + 13) * np.sqrt(inner) * np.finfo(a.dtype).eps / 2)


def assert_is_product(a: np.ndarray, *factors: np.ndarray) -> None:
    product = factors[0].astype(np.complex128)
    for factor in factors[1:]:
        product = product @ factor
    error = np.linalg.norm(a - product, axis=(-2, -1))
    assert np.all(error <= bound(a) * np.linalg.norm(a, axis=(-2, -1)))


def assert_columns_are_orthonormal(x: np.ndarray, a: np.ndarray) -> None:
    wide = x.astype(np.complex128)
    gram = adjoint(wide) @ wide
    deviation = np.linalg.norm(gram - np.eye(x.shape[-1]), axis=(-2, -1))
    assert np.all(deviation <= bound(a))


def halving(rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    """A matrix with singular values 1, 1/2, 1/4, ..."""
    k = min(m, n)
    u = np.linalg.qr(rng.standard_normal((m, k)))[0]
    v = np.linalg.qr(rng.standard_normal((n, k)))[0]
    return u * 0.5 ** np.arange(k) @ v.T


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_svd_is_a_product_with_orthonormal_factors(session, rng, dtype, shape):
    a = random_array(rng, shape, dtype)
    u, s, v = session.factorize("ij->ik,k,kj", a, method="svd")
    inner = min(shape)
    assert (u.shape, s.shape, v.shape) == ((shape[0], inner), (inner,), (inner, shape[1]))
    assert s.dtype == a.real.dtype and u.dtype == v.dtype == dtype
    assert s.report.kept_extent == inner and u.report == s.report
    values = s.numpy()
    assert np.all(values >= 0) and np.all(np.diff(values) <= 0)
    assert_is_product(a, u.numpy() * values, v.numpy())
    assert_columns_are_orthonormal(u.numpy(), a)
    assert_columns_are_orthonormal(adjoint(v.numpy()), a)
    expected = np.linalg.svd(a.astype(np.complex128), compute_uv=False)
    assert np.all(np.abs(values - expected) <= 2 * bound(a) * expected[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lq_has_orthonormal_rows(session, rng, dtype, shape):
    a = random_array(rng, shape, dtype)
    l, q = session.factorize("ij->ik,kj", a, method="lq")
    assert_is_product(a, l.numpy(), q.numpy())
    assert_columns_are_orthonormal(adjoint(q.numpy()), a)
    np.testing.assert_array_equal(l.numpy(), np.tril(l.numpy()))
    diagonal = np.diagonal(l.numpy())
    assert np.all(diagonal.imag == 0) and np.all(diagonal.real >= 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hermitian_matrices_have_real_eigenvalues(session, rng, dtype):
    a = random_array(rng, (3, 20, 20), dtype)
    a = (a + adjoint(a)) / 2
    lower = np.where(np.tri(20, dtype=bool), a, np.nan)  # all that is read
    w, v = session.factorize("xij->xk,xik", lower, method="eigh")
    assert w.shape == (3, 20) and w.dtype == a.real.dtype
    assert np.all(np.diff(w.numpy(), axis=-1) >= 0)
    assert_is_product(a, v.numpy() * w.numpy()[:, None, :], adjoint(v.numpy()))
    assert_columns_are_orthonormal(v.numpy(), a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_positive_matrices_have_a_cholesky_factor(session, rng, dtype):
    a = random_array(rng, (12, 12), dtype)
    a = (a @ adjoint(a) + np.eye(12)).astype(dtype)
    (l,) = session.factorize("ij->ik", a, method="cholesky")
    assert_is_product(a, l.numpy(), adjoint(l.numpy()))
    np.testing.assert_array_equal(l.numpy(), np.tril(l.numpy()))
    assert np.all(np.diagonal(l.numpy()).real > 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_sample_finds_the_largest_values(session, rng, dtype):
    left, right = random_array(rng, (300, 8), dtype), random_array(rng, (8, 200), dtype)
    a = session.upload(left @ right)
    options = {"method": "svd", "rank": 8, "randomized": True, "oversampling": 4}
    u, s, v = session.factorize("ij->ik,k,kj", a, **options)
    assert (u.shape, s.shape, v.shape) == ((300, 8), (8,), (8, 200))
    assert s.report.kernel == "cpu.factorize.sampled_svd"
    assert_is_product(left @ right, u.numpy() * s.numpy(), v.numpy())
    assert_columns_are_orthonormal(u.numpy(), left @ right)
    # Equal seeds are equal bits, by a plan, too.
    plan = session.plan.factorize("ij->ik,k,kj", a, **options)
    for other in plan.factorize(a), session.factorize("ij->ik,k,kj", a, **options):
        np.testing.assert_array_equal(other[0].numpy(), u.numpy())
    seeded = session.factorize("ij->ik,k,kj", a, seed=1, **options)
    assert not np.array_equal(seeded[0].numpy(), u.numpy())
    u, v = session.factorize("ij->ik,kj", a, absorb="both", cutoff=1e-2, **options)
    assert_is_product(left @ right, u.numpy(), v.numpy())


def test_where_a_sample_takes_more_all_values_are_computed(session, rng):
    a = rng.standard_normal((20, 12))
    options = {"method": "svd", "rank": 10, "randomized": True}
    u, s, v = session.factorize("ij->ik,k,kj", a, **options)
    assert s.report.kernel == "cpu.factorize.decomposition"
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a)[1][:10], rtol=1e-13)


def test_rows_and_columns_are_groups_of_modes(session, rng):
    a = rng.standard_normal((2, 3, 4, 5))
    u, s, v = session.factorize("abcd->cak,k,kdb", a, method="svd")
    assert (u.shape, v.shape) == ((4, 2, 8), (8, 5, 3))
    matrix = a.transpose(2, 0, 3, 1).reshape(8, 15)
    assert_is_product(
        matrix, u.numpy().reshape(8, 8) * s.numpy(), v.numpy().reshape(8, 15)
    )
    positive = rng.standard_normal((5, 2, 3, 2, 3))
    matrices = positive.reshape(5, 6, 6)
    matrices = matrices @ adjoint(matrices) + np.eye(6)
    w, x = session.factorize(
        "nabcd->nk,nabk", matrices.reshape(5, 2, 3, 2, 3), method="eigh"
    )
    assert x.shape == (5, 2, 3, 6)
    vectors = x.numpy().reshape(5, 6, 6)
    assert_is_product(matrices, vectors * w.numpy()[:, None, :], adjoint(vectors))


@pytest.mark.parametrize(
    ("options", "inner", "kept"),
    [
        ({}, 6, 6),
        ({"rank": 3}, 3, 3),
        ({"rank": 9}, 6, 6),
        ({"cutoff": 0.2}, 6, 3),
        ({"cutoff": 0.2, "rank": 2}, 2, 2),
        ({"relative_cutoff": 0.1}, 6, 4),
        ({"discarded_squares": 0.02}, 6, 4),
        ({"relative_discarded_squares": 0.0155}, 6, 3),
        ({"cutoff": 5}, 6, 1),
    ],
    ids=str,
)
def test_truncated_svds_keep_what_they_say(session, rng, options, inner, kept):
    a = halving(rng, 9, 6)
    u, s, v = session.factorize("ij->ik,k,kj", a, method="svd", **options)
    assert (u.shape, s.shape, v.shape) == ((9, inner), (inner,), (inner, 6))
    assert s.report.kept_extent == kept
    values = 0.5 ** np.arange(6)
    np.testing.assert_allclose(s.numpy()[:kept], values[:kept], rtol=1e-10)
    for beyond in u.numpy()[:, kept:], s.numpy()[kept:], v.numpy()[kept:]:
        assert not beyond.any()
    error = np.linalg.norm(a - u.numpy() * s.numpy() @ v.numpy())
    assert abs(error - np.linalg.norm(values[kept:])) <= 2 * bound(a)
    # What is kept is a view.
    assert u[:, :kept].numpy().shape == (9, kept)


@pytest.mark.parametrize("absorb", ["left", "right", "both"])
def test_factors_absorb_values_and_keep_the_norm(session, rng, absorb):
    a = halving(rng, 6, 8)
    options = {"method": "svd", "rank": 2, "absorb": absorb}
    u, v = session.factorize("ij->ik,kj", a, **options)
    product = u.numpy() @ v.numpy()
    assert abs(np.linalg.norm(a - product) - np.linalg.norm(0.5 ** np.arange(2, 6))) < 1e-12
    if absorb == "both":
        assert abs(np.linalg.norm(u.numpy()) - np.linalg.norm(v.numpy())) < 1e-12
    else:
        assert_columns_are_orthonormal(
            u.numpy() if absorb == "right" else adjoint(v.numpy()), a
        )
    _, s, v = session.factorize("ij->ik,k,kj", a, renormalize=True, **options)
    assert abs(np.linalg.norm(s.numpy()) - np.linalg.norm(a)) < 1e-12


def test_plans_and_deferred_sessions_truncate_too(session, address, rng):
    a = halving(rng, 9, 6)
    spec = TensorSpec(a.shape, "f8")
    plan = session.plan.factorize("ij->ik,k,kj", spec, method="svd", cutoff=0.2, rank=5)
    assert [other.shape for other in plan.others] == [(5,), (5, 6)]
    for scale in 1, 2:
        u, s, v = plan.factorize(scale * a)
        assert s.report.kept_extent == (3 if scale == 1 else 4)
        expected = session.factorize(
            "ij->ik,k,kj", scale * a, method="svd", cutoff=0.2, rank=5
        )
        for got, wanted in zip((u, s, v), expected):
            np.testing.assert_array_equal(got.numpy(), wanted.numpy())
    explained = session.explain.factorize("ij->ik,k,kj", spec, method="svd")
    assert "svd" in explained.problem and explained.flops > 0
    with tensord.connect(address, deferred=True) as deferred:
        for _ in range(2):
            sampled = deferred.factorize(
                "ij->ik,k,kj", a, method="svd", rank=2, randomized=True, oversampling=1
            )
            np.testing.assert_allclose(
                sampled[1].numpy(), np.linalg.svd(a)[1][:2], rtol=0.2
            )
        u, s, v = deferred.factorize("ij->ik,k,kj", a, method="svd", rank=2)
        product = deferred.einsum("ik,k,kj->ij", u, s, v)
        error = np.linalg.norm(a - product.numpy())
        assert abs(error - np.linalg.norm(0.5 ** np.arange(2, 6))) < 1e-12

    async def check() -> None:
        async with tensord.aio.connect(address) as other:
            u, s, v = await other.factorize("ij->ik,k,kj", a, method="svd", rank=2)
            assert s.report.kept_extent == 2 and v.shape == (2, 6)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("subscripts", "options", "reason"),
    [
        ("ij->ik,kj", {"method": "svd"}, "SUBSCRIPTS_MALFORMED"),
        ("ij->ik,k,kj", {"method": "svd", "rank": 0}, "TRUNCATION_OUT_OF_RANGE"),
        ("ij->ik,k,kj", {"method": "svd", "rank": -1}, "TRUNCATION_OUT_OF_RANGE"),
        ("ij->ik,k,kj", {"method": "svd", "cutoff": -1e-3}, "TRUNCATION_OUT_OF_RANGE"),
        (
            "ij->ik,k,kj",
            {"method": "svd", "relative_cutoff": float("nan")},
            "TRUNCATION_OUT_OF_RANGE",
        ),
        ("ij->ik,k,kj", {"method": "svd", "absorb": "up"}, "ABSORB_UNKNOWN"),
        ("ij->ik,kj", {"method": "qr", "rank": 2}, "TRUNCATION_WITHOUT_SVD"),
        ("ij->ik,kj", {"method": "qr", "cutoff": 0.1}, "TRUNCATION_WITHOUT_SVD"),
        ("ij->ik,k,kj", {"method": "svd", "randomized": True}, "SAMPLING_WITHOUT_RANK"),
        ("ij->ik,k,kj", {"method": "svd", "seed": 3}, "SAMPLING_NOT_WANTED"),
        ("ij->ik,k,kj", {"method": "svd", "oversampling": 10}, "SAMPLING_NOT_WANTED"),
        (
            "ij->ik,k,kj",
            {"method": "svd", "rank": 2, "randomized": True, "oversampling": -1},
            "SAMPLING_OUT_OF_RANGE",
        ),
        (
            "ij->ik,k,kj",
            {"method": "svd", "rank": 2, "randomized": True, "seed": 1 << 64},
            "SAMPLING_OUT_OF_RANGE",
        ),
        ("ij->ik,kj", {"method": "qr", "randomized": True}, "SAMPLING_WITHOUT_SVD"),
        ("ij->ik,l,kj", {"method": "svd"}, "MODES_OF_VALUES"),
        ("ij->k,ik", {"method": "eigh"}, "MATRIX_NOT_SQUARE"),
        ("ij->ik", {"method": "cholesky"}, "MATRIX_NOT_SQUARE"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(session, subscripts, options, reason):
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.factorize(subscripts, np.ones((3, 4)), **options)
    assert failure.value.reason == reason
    if reason.startswith("TRUNCATION_"):
        assert f"{options['method']} of a with " in str(failure.value)
        assert " (3, 4): " in str(failure.value)


def test_what_is_factorized_is_fetched_no_more_than_once(session):
    parts = [session.upload(np.arange(2.0)) for _ in range(2)]
    before = xp.downloads()
    session.factorize("ij->ik,kj", parts, method="qr")
    assert xp.downloads() - before == len(parts)


def test_existing_results_are_no_longer_than_the_rank(session):
    a = np.diag([3.0, 2, 1])
    wide = [session.create(shape, "f8") for shape in ((3, 3), (3,), (3, 3))]
    with pytest.raises(tensord.InvalidArgument, match="the rank is 1") as failure:
        session.factorize("ij->ik,k,kj", a, method="svd", rank=1, out=tuple(wide))
    assert failure.value.reason == "MODE_EXTENT_MISMATCH"
    session.factorize("ij->ik,k,kj", a, method="svd", rank=3, out=tuple(wide))
    np.testing.assert_allclose(wide[1].numpy(), [3, 2, 1], rtol=1e-12)
    narrow = [session.create(shape, "f8") for shape in ((3, 2), (2,), (2, 3))]
    results = session.factorize("ij->ik,k,kj", a, method="svd", out=tuple(narrow))
    np.testing.assert_allclose(results[1].numpy(), [3, 2], rtol=1e-12)


def test_a_bad_matrix_says_nothing_about_kernels(session):
    options = {"method": "cholesky", "selection": "incremental"}
    with pytest.raises(tensord.InvalidArgument):
        session.factorize("ij->ik", -np.eye(150), **options)
    kernels = set()
    for _ in range(12):
        (l,) = session.factorize("ij->ik", np.eye(150), **options)
        kernels.add(l.report.kernel)
        assert l.report.kept_extent == 0
    assert kernels == {"cpu.factorize.decomposition", "cpu.factorize.reference"}


def test_the_first_matrix_of_a_batch_that_is_refused_is_named(session, rng):
    a = rng.standard_normal((4, 3, 5, 5)) + 20 * np.eye(5)
    a[2, 1, 3, 2] = a[3, 0, 4, 1] = np.inf
    for method, text in ("svd", "abij->abik,abk,abkj"), ("eigh", "abij->abk,abik"), ("cholesky", "abij->abik"):
        with pytest.raises(tensord.InvalidArgument, match="a, a matrix of 5 x 5, number 7 of 12 in memory's order, has"):
            session.factorize(text, a, method=method)


def test_matrices_that_cannot_be_decomposed_are_refused(session):
    gc.collect()  # tensors of earlier tests
    session.link.keeper.flush()
    before = session.describe().tensor_count
    a = np.ones((4, 4))
    a[2, 1] = np.nan
    for method, text in ("svd", "ij->ik,k,kj"), ("eigh", "ij->k,ik"), ("cholesky", "ij->ik"):
        with pytest.raises(tensord.InvalidArgument, match="4 x 4.*column 1") as failure:
            session.factorize(text, a, method=method)
        assert failure.value.reason == "MATRIX_NOT_FINITE"
    with pytest.raises(tensord.InvalidArgument, match="leading 2 x 2") as failure:
        session.factorize("ij->ik", np.diag([1.0, -1, 1]), method="cholesky")
    assert failure.value.reason == "MATRIX_NOT_POSITIVE_DEFINITE"
    # A failure leaves no result.
    session.link.keeper.flush()
    assert session.describe().tensor_count == before
