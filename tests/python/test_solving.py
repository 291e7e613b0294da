"""Linear equations and inverses."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tensord
import tensord.aio
from random_arrays import random_array
from tensord import TensorSpec

DTYPES = [np.dtype(name) for name in ("f4", "f8", "c8", "c16")]
STRUCTURES = [
    "general",
    "lower_triangular",
    "upper_triangular",
    "hermitian",
    "positive_definite",
]
A = np.array([[0.0, 2], [1, 3]])  # Each step of its elimination is exact.
B = np.array([0.0, 1])


def matrices_of(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, structure: str
) -> np.ndarray:
    """Returns matrices, the last two modes, of a structure."""
    count = shape[-1]
    a = random_array(rng, shape, dtype)
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    if structure == "hermitian":
        return a + adjoint
    if structure == "positive_definite":
        return a @ adjoint + np.eye(count, dtype=dtype)
    if structure == "general":
        return a
    a = a / count + 2 * np.eye(count, dtype=dtype)
    return np.tril(a) if structure == "lower_triangular" else np.triu(a)


def assert_solves(a: np.ndarray, d: np.ndarray, b: np.ndarray) -> None:
    """Checks matrices, the last two modes, by what is left of `b`.

    Higham, Accuracy and Stability of Numerical Algorithms, theorem 9.4: the matrix is
    perturbed by at most gamma(3 n) |L| |U|; random ones grow by less than sqrt(n).
    """
    count = a.shape[-1]
    wide_a, wide_d, wide_b = (each.astype(np.complex128) for each in (a, d, b))
    unit = np.finfo(a.dtype).eps / 2 * (4 if a.dtype.kind == "c" else 1)
    norms = np.linalg.norm(wide_a, axis=(-2, -1))[..., None]
    bound = 3.1 * (count + 1) * unit * np.sqrt(count) * norms
    left = np.linalg.norm(wide_b - wide_a @ wide_d, axis=-2)
    assert np.all(left <= bound * np.linalg.norm(wide_d, axis=-2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_equations_are_solved(session, rng, dtype, structure):
    for count in 1, 7, 100:
        a = matrices_of(rng, (count, count), dtype, structure)
        b = random_array(rng, (count, 3), dtype)
        d = session.solve("ij,ik->jk", a, session.upload(b), structure=structure)
        assert isinstance(d, tensord.RemoteTensor)
        assert d.dtype == dtype and d.shape == b.shape
        assert d.report.kernel.startswith("cpu.solve.")
        assert_solves(a, d.numpy(), b)
        inverse = session.solve("ij->jk", session.upload(a), structure=structure)
        assert_solves(a, inverse.numpy(), np.eye(count, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_modes_are_rows_columns_sides_and_batches_by_where_they_are(
    session, rng, dtype
):
    # Batch n, rows (p, q), columns r, right sides (s, t).
    a = random_array(rng, (6, 2, 4, 3), dtype)  # rpnq: r=6, p=2, n=4, q=3
    b = random_array(rng, (5, 4, 2, 3, 2), dtype)  # snpqt
    d = session.solve("rpnq,snpqt->trsn", session.upload(a), session.upload(b))
    assert d.shape == (2, 6, 5, 4)
    assert_solves(
        a.transpose(2, 1, 3, 0).reshape(4, 6, 6),
        d.numpy().transpose(3, 1, 2, 0).reshape(4, 6, 10),
        b.transpose(1, 2, 3, 0, 4).reshape(4, 6, 10),
    )


def test_an_inverse_has_as_many_modes_for_columns_as_for_rows(session, rng):
    a = random_array(rng, (3, 2, 6, 1), "f8")
    # Rows (a, b), columns (c, d).
    inverse = session.solve("abcd->cdxy", a)
    assert inverse.shape == (6, 1, 3, 2)
    assert_solves(a.reshape(6, 6), inverse.numpy().reshape(6, 6), np.eye(6))


def exponentials_of(a: np.ndarray) -> np.ndarray:
    """Computes the series of 2**-12 a, of a norm below 1/16, in long double."""
    wide = a.astype(np.clongdouble if a.dtype.kind == "c" else np.longdouble)
    result = term = np.eye(a.shape[-1], dtype=wide.dtype)
    for k in range(1, 20):
        term = term @ wide / 2**12 / k
        result = result + term
    for _ in range(12):
        result = result @ result
    return result


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_exponentials_are_those_of_scipy(session, rng, dtype):
    unit = np.finfo(dtype).eps
    for size in 0, 0.1, 3, 20:
        a = random_array(rng, (3, 5, 5), dtype) * np.asarray(size, dtype)
        expected = exponentials_of(a)
        norm = np.max(np.linalg.norm(a, 1, axis=(-2, -1)), initial=1)
        bound = 64 * unit * norm * np.max(np.abs(expected))
        got = session.expm("nij->nik", session.upload(a))
        assert got.dtype == dtype and got.report.kernel.startswith("cpu.solve.")
        np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=bound)
        one = session.expm("ij->ji", a[0], op_a="conj")
        np.testing.assert_allclose(
            one.numpy().T, expected[0].conj(), rtol=0, atol=bound
        )
    # Rows (a, b), columns (c, d).
    a = random_array(rng, (2, 3, 2, 3), dtype)
    expected = scipy.linalg.expm(a.reshape(6, 6)).reshape(a.shape)
    got = session.expm("abcd->abxy", a).numpy()
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e3 * unit)
    matrix = a.reshape(6, 6)
    matrix = (matrix + matrix.conj().T) / 2
    half = np.where(np.tri(6, dtype=bool), matrix, np.nan)  # all that is read
    got = session.expm("ij->ij", half, structure="hermitian").numpy()
    expected = scipy.linalg.expm(matrix)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e3 * unit)


def test_exponentials_are_planned_deferred_and_awaited(address, session):
    a = np.array([[0.0, 5], [0, 0]])
    expected = [[1, 5], [0, 1]]
    plan = session.plan.expm("ij->ik", TensorSpec((2, 2), "f8"))
    np.testing.assert_array_equal(plan(a).numpy(), expected)
    assert plan.operation == "solve"
    assert "exponential general float64" in session.explain.expm("ij->ij", a).problem
    with session.pipeline() as pipeline:
        remote = session.upload(a)
        first, second = (pipeline.expm("ij->ik", remote) for _ in range(2))
        inverse = pipeline.solve("ij->jk", first.result())
        np.testing.assert_array_equal(second.result().numpy(), expected)
        np.testing.assert_array_equal(inverse.result().numpy(), [[1, -5], [0, 1]])

    async def run() -> None:
        async with await tensord.aio.connect(address) as session:
            d = await session.expm("ij->ij", a)
            np.testing.assert_array_equal(await d.numpy(), expected)

    asyncio.run(run())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operands_may_be_transposed_and_conjugated(session, rng, dtype):
    a, b = random_array(rng, (9, 9), dtype), random_array(rng, (9, 2), dtype)
    remote = session.upload(a)
    assert_solves(a.T, session.solve("ji,ik->jk", remote, b).numpy(), b)
    d = session.solve("ji,ik->jk", remote, b, op_a="conj", op_b="conj")
    assert_solves(a.conj().T, d.numpy(), b.conj())


@pytest.mark.parametrize("lower", [False, True])
def test_of_a_triangle_that_alone_is_read(session, rng, lower):
    a, b = random_array(rng, (80, 80), "f8"), random_array(rng, (80,), "f8")
    kept = matrices_of(
        rng, (80, 80), "f8", "lower_triangular" if lower else "upper_triangular"
    )
    other = np.triu(a, 1) if lower else np.tril(a, -1)
    other[other != 0] = np.nan
    structure = "lower_triangular" if lower else "upper_triangular"
    d = session.solve("ij,i->j", kept + other, b, structure=structure)
    assert_solves(kept, d.numpy()[:, None], b[:, None])
    np.fill_diagonal(other, np.nan)
    d = session.solve(
        "ij,i->j", kept + other, b, structure=structure, unit_diagonal=True
    )
    np.fill_diagonal(kept, 1)
    assert_solves(kept, d.numpy()[:, None], b[:, None])


def test_results_go_where_they_are_told(session):
    out = session.create((2,), "f8")
    assert session.solve("ij,i->j", A, B, out=out) is out
    np.testing.assert_array_equal(out.numpy(), [1, 0])
    d = session.solve("ij,i->j", A, B, name="d", algorithm="cpu.solve.reference")
    assert (d.name, d.report.kernel) == ("d", "cpu.solve.reference")
    np.testing.assert_array_equal(d.numpy(), [1, 0])
    for selection in "measure", "incremental":
        d = session.solve("ij,i->j", A, B, selection=selection)
        np.testing.assert_array_equal(d.numpy(), [1, 0])


def test_equations_are_prepared_and_explained(session):
    plan = session.plan.solve("ij,i->j", TensorSpec((2, 2), "f8"), B)
    assert (plan.operation, plan.factors) == ("solve", ())
    a, b = session.upload(A), session.upload(B)
    np.testing.assert_array_equal(plan(a, b).numpy(), [1, 0])
    np.testing.assert_array_equal(plan(a, 2 * B).numpy(), [2, 0])
    with pytest.raises(tensord.InvalidArgument, match="no factor alpha"):
        plan(a, b, alpha=2)
    with pytest.raises(tensord.InvalidArgument) as raised:
        plan(a)
    assert raised.value.reason == "INPUT_MISSING"
    inverse = session.plan.solve("ij->jk", a)
    np.testing.assert_array_equal(inverse(a).numpy(), [[-1.5, 1], [0.5, 0]])
    told = session.explain.solve("ij,i->j", a, b, structure="hermitian")
    assert told.kernel.startswith("cpu.solve.")
    assert "equations hermitian float64" in told.problem
    assert told.flops == pytest.approx(2 / 3 * 8 + 2 * 4)
    told = session.explain.solve("nij->njk", TensorSpec((30, 4, 4), "f8"))
    assert told.products[0].nodes[-1].extents == (30, 4, 4)
    assert session.explain.solve("ij,ik->jk", A, np.ones((2, 0))).flops == 0


def test_equations_are_deferred(deferred, rng):
    a, b = deferred.upload(A), deferred.upload(B)
    d = deferred.solve("ij,i->j", a, b)
    inverse = deferred.solve("ij->jk", a)
    assert (d.shape, inverse.shape) == ((2,), (2, 2))
    np.testing.assert_array_equal(d.numpy(), [1, 0])
    np.testing.assert_array_equal(inverse.numpy(), [[-1.5, 1], [0.5, 0]])
    batch = random_array(rng, (3, 2, 5, 5), "c16")
    inverse = deferred.solve("abij->abjk", deferred.upload(batch))
    assert inverse.shape == batch.shape
    assert_solves(batch, inverse.numpy(), np.eye(5))
    failed = deferred.solve("ij->jk", deferred.upload(np.zeros((2, 2))))
    with pytest.raises(tensord.InvalidArgument, match=r"solve .*test_solving\.py"):
        failed.numpy()


def test_equations_are_solved_in_pipelines_and_by_asyncio(address):
    with tensord.connect(address) as session, session.pipeline() as pipeline:
        pending = pipeline.solve("ij,i->j", A, B)
        np.testing.assert_array_equal(pending.result().numpy(), [1, 0])

    async def run() -> None:
        async with await tensord.aio.connect(address) as session:
            d = await session.solve("ij,i->j", A, B)
            np.testing.assert_array_equal(await d.numpy(), [1, 0])

    asyncio.run(run())


@pytest.mark.parametrize(
    "reason, call",
    [
        ("MATRIX_SINGULAR", lambda s: s.solve("ij->jk", np.ones((3, 3)))),
        ("MATRIX_NOT_FINITE", lambda s: s.solve("ij->jk", np.full((3, 3), np.nan))),
        ("MATRIX_NOT_SQUARE", lambda s: s.solve("ij,i->j", np.ones((2, 3)), B)),
        ("MODES_OF_INVERSE", lambda s: s.solve("ij->j", A)),
        ("MODES_OF_INVERSE", lambda s: s.solve("ij->ji", A)),
        ("MODES_OF_INVERSE", lambda s: s.solve("nij->jkn", np.ones((2, 2, 2)))),
        ("MODES_OF_EXPONENTIAL", lambda s: s.expm("ij->i", A)),
        ("MODES_OF_EXPONENTIAL", lambda s: s.expm("nij->nij", np.ones((2, 2, 2)))),
        ("MATRIX_NOT_SQUARE", lambda s: s.expm("ij->ik", np.ones((2, 3)))),
        ("MATRIX_NOT_FINITE", lambda s: s.expm("ij->ij", np.full((3, 3), np.inf))),
        ("SUBSCRIPTS_MALFORMED", lambda s: s.expm("ij,jk->ik", A)),
        ("MODE_NOT_IN_OUTPUT", lambda s: s.solve("ij,ik->j", A, A)),
        ("MODE_NOT_IN_INPUT", lambda s: s.solve("ij,i->jk", A, B)),
        ("MODE_EXTENT_MISMATCH", lambda s: s.solve("ij,i->j", A, np.ones(3))),
        ("SUBSCRIPTS_MALFORMED", lambda s: s.solve("ij,ik->jk", A)),
        ("SUBSCRIPTS_MALFORMED", lambda s: s.solve("ij->jk", A, A)),
        ("SUBSCRIPTS_MALFORMED", lambda s: s.solve("ij,i->j,j", A, B)),
        ("SUBSCRIPTS_MALFORMED", lambda s: s.solve("i.,i->j", A, B)),
        ("INPUT_MISSING", lambda s: s.solve("ij->jk", A, op_b="conj")),
        ("OPERATOR_NOT_LINEAR", lambda s: s.solve("ij,i->j", A, B, op_a="sqrt")),
        ("STRUCTURE_UNKNOWN", lambda s: s.solve("ij->jk", A, structure="round")),
        (
            "UNIT_DIAGONAL_WITHOUT_TRIANGLE",
            lambda s: s.solve("ij->jk", A, unit_diagonal=True),
        ),
        (
            "MATRIX_NOT_POSITIVE_DEFINITE",
            lambda s: s.solve("ij->jk", -np.eye(2), structure="positive_definite"),
        ),
    ],
)
def test_what_cannot_be_solved_is_refused(session, reason, call):
    with pytest.raises(tensord.InvalidArgument) as raised:
        call(session)
    assert raised.value.reason == reason


def test_types_that_have_no_equations_are_refused(session):
    for a, b in (A.astype("f2"), B), (A.astype("i4"), B), (A.astype("f4"), B):
        with pytest.raises(tensord.Unimplemented) as raised:
            session.solve("ij,i->j", a, b)
        assert raised.value.reason == "TYPES_NOT_SUPPORTED"
    with pytest.raises(tensord.Unimplemented, match="compute_type is float32"):
        session.solve("ij,i->j", A, B, compute_type="float32")
    with pytest.raises(TypeError, match="unit_diagonal"):
        session.solve("ij->jk", A, structure="lower_triangular", unit_diagonal="yes")


def test_the_refused_matrix_of_a_batch_is_named(session, rng):
    a = random_array(rng, (4, 3, 5, 5), "f8")
    a[2, 1] = 0
    with pytest.raises(tensord.InvalidArgument, match="number 7 of 12 in memory's order"):
        session.solve("abij->abjk", a)
