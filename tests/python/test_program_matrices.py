"""Functions of whole matrices in statements: decompositions and linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tensord
from random_arrays import random_array
from test_decompositions import (
    DTYPES,
    SHAPES,
    adjoint,
    assert_columns_are_orthonormal,
    assert_is_product,
    halving,
)

SVD = "U[i,k], S[k], V[k,j] := svd(A[i,j])"


def numpy_of(results: Any) -> list[np.ndarray]:
    return [result.numpy() for result in results.values()]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_decompositions_are_those_of_the_operation(session, rng, dtype, shape):
    a = session.upload(random_array(rng, shape, dtype))
    results = session.run(SVD, A=a)
    assert list(results) == ["U", "S", "V"]
    same = session.factorize("ij->ik,k,kj", a, method="svd")
    for mine, other in zip(results.values(), same, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_array_equal(mine.numpy(), other.numpy())
    (kept,) = results["S"].report.kept_extents
    assert kept == tensord.KeptExtent(statement=0, label="k", extent=min(shape))
    for method, text in [
        ("qr", "Q[i,k], R[k,j] := qr(A[i,j])"),
        ("lq", "L[i,k], Q[k,j] := lq(A[i,j])"),
    ]:
        mine = numpy_of(session.run(text, A=a))
        for x, y in zip(mine, session.factorize("ij->ik,kj", a, method=method), strict=True):
            np.testing.assert_array_equal(x, y.numpy())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hermitian_matrices_are_decomposed(session, rng, dtype):
    x = random_array(rng, (3, 12, 12), dtype)
    h = (x + adjoint(x)) / 2
    # What is computed of is any sum of products.
    w, v = numpy_of(session.run("W[n,k], V[n,i,k] := eigh((X[n,i,j] + X[n,j,i]')/2)", X=x))
    assert w.dtype == h.real.dtype
    assert_is_product(h, v * w[:, None, :], adjoint(v))
    assert_columns_are_orthonormal(v, h)
    p = (x @ adjoint(x) + np.eye(12)).astype(dtype)
    l = session.run("L[n,i,k] := cholesky(P[n,i,j])", P=p).numpy()
    assert_is_product(p, l, adjoint(l))
    np.testing.assert_array_equal(l, np.tril(l))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_equations_are_solved(session, rng, dtype):
    a, b = random_array(rng, (5, 20, 20), dtype), random_array(rng, (5, 20, 3), dtype)
    x = session.run("X[n,j,s] := solve(A[n,i,j], B[n,i,s])", A=a, B=b).numpy()
    y = session.run("Y[n,j,r] := inv(A[n,i,j])", A=a).numpy()
    for got, right in ((x, b), (y, np.broadcast_to(np.eye(20), a.shape))):
        residual = np.linalg.norm(a.astype("c16") @ got - right, axis=(-2, -1))
        scale = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(got, axis=(-2, -1))
        # Higham, theorem 9.5, with a growth factor of 2.
        eps = np.finfo(dtype).eps
        assert np.all(residual <= 2 * 3 * 20 * 20 * eps * scale)
    lower = np.where(np.tri(20, dtype=bool), a + 20 * np.eye(20, dtype=dtype), np.nan)
    z = session.run(
        "Z[n,j,s] := solve(T[n,i,j], B[n,i,s]; structure=lower_triangular)", T=lower, B=b
    ).numpy()
    np.testing.assert_allclose(np.nan_to_num(lower) @ z, b, rtol=0, atol=100 * eps * 20)


def test_truncations_keep_what_they_say(session, rng):
    a = halving(rng, 30, 20)
    for options, kept, extent in [
        ("cutoff=0.1", 4, 20),
        ("relative_cutoff=0.3", 2, 20),
        ("rank=6", 6, 6),
        ("rank=100", 20, 20),
        ("rank=6, cutoff=x", 3, 6),
        ("discarded_squares=0.03, renormalize=true", 3, 20),
        ("relative_discarded_squares=0.01", 4, 20),
    ]:
        text = f"U[i,k], S[k], V[k,j] := svd(A[i,j]; {options})"
        results = session.run(text, A=a, **({"x": 0.2} if "=x" in options else {}))
        report = results["S"].report
        assert [e.extent for e in report.kept_extents] == [kept], options
        s = results["S"].numpy()
        assert s.shape == (extent,) and np.count_nonzero(s) == kept, options
        assert results["U"].shape == (30, extent)


def test_values_go_into_factors(session, rng):
    a = halving(rng, 8, 8)
    for absorb in ("left", "right", "both"):
        u, v = numpy_of(session.run(f"U[i,k], V[k,j] := svd(A[i,j]; absorb={absorb})", A=a))
        assert_is_product(a, u, v)
    # Together with the values.
    results = session.run("U[i,k], S[k], V[k,j] := svd(A[i,j]; absorb=left)", A=a)
    assert_is_product(a, results["U"].numpy(), results["V"].numpy())


def test_steps_of_a_chain_are_one_request(session, rng):
    """A gate on two sites, split again: TEBD's step."""
    a, b = random_array(rng, (6, 2, 7), "c16"), random_array(rng, (7, 2, 5), "c16")
    gate = random_array(rng, (2, 2, 2, 2), "c16")
    results = session.run(
        """
        T[l,p,q,r] := G[p,q,x,y]*A[l,x,m]*B[m,y,r]
        U[l,p,k], S[k], V[k,q,r] := svd(T[l,p,q,r]; relative_cutoff=1e-12, rank=8)
        N := sqrt(S[k]*S[k])
        L[l,p,k] := U[l,p,k]*S[k]/N
        """,
        A=a, B=b, G=gate, outputs=["L", "V", "N"],
    )  # fmt: skip
    t = np.einsum("pqxy,lxm,myr->lpqr", gate, a, b).reshape(12, 10)
    s = np.linalg.svd(t, compute_uv=False)[:8]
    norm = results["N"].numpy()
    assert abs(norm - np.linalg.norm(s)) <= 1e-12 * norm
    left, right = results["L"].numpy(), results["V"].numpy()
    assert left.shape == (6, 2, 8) and right.shape == (8, 2, 5)
    product = left.reshape(12, 8) @ right.reshape(8, 10)
    u, _, v = np.linalg.svd(t, full_matrices=False)
    best = (u[:, :8] * s / np.linalg.norm(s)) @ v[:8]
    np.testing.assert_allclose(product, best, atol=1e-12)
    (kept,) = results["L"].report.kept_extents
    assert (kept.statement, kept.label, kept.extent) == (1, "k", 8)


def test_existing_tensors_are_written(session, rng):
    a = random_array(rng, (6, 4), "f8")
    q, r = session.upload(np.zeros((6, 4))), session.upload(np.zeros((4, 4)))
    assert session.run("Q[i,k], R[k,j] = qr(A[i,j])", A=a, Q=q, R=r) is None
    assert_is_product(a, q.numpy(), r.numpy())
    # What is decomposed may be what is written.
    t = session.upload(a)
    session.run("T[i,k], R[k,j] = qr(T[i,j])", T=t, R=r)
    np.testing.assert_array_equal(t.numpy(), q.numpy())
    # Names are made anew.
    results = session.run("A[i,k], B[k,j] := qr(A[i,j]); A[i,j] := A[i,k]*B[k,j]", A=a)
    np.testing.assert_allclose(results.numpy(), a, atol=1e-14)


def test_integers_are_decomposed_as_float64(session, rng):
    a = rng.integers(-5, 5, (5, 4))
    s = session.run("U[i,k], S[k], V[k,j] := svd(A[i,j])", A=a, outputs=["S"])
    assert s.dtype == np.float64
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a, compute_uv=False), atol=1e-13)
    with pytest.raises(tensord.Unimplemented, match="float16"):
        session.run(SVD, A=a.astype("f2"))


def test_results_have_the_type_that_is_asked_for(session, rng):
    a = random_array(rng, (5, 4), "f8")
    for dtype in ("f4", "c16"):
        results = session.run(SVD, A=a, dtype=dtype)
        assert {result.dtype for result in results.values()} == {np.dtype(dtype)}
        u, s, v = numpy_of(results)
        np.testing.assert_allclose(u * s @ v, a, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (0, 3), (3, 0), (4, 1, 1)], ids=str)
def test_extents_of_one_and_none(session, rng, shape):
    a = rng.standard_normal(shape)
    labels = "bij"[-len(shape) :]
    text = f"Q[{','.join(labels[:-1])},k], R[k,j] := qr(A[{','.join(labels)}])"
    q, r = numpy_of(session.run(text, A=a))
    matrix = a.reshape(-1, shape[-1]) if a.size else a
    inner = min(matrix.shape)
    assert q.shape == (*shape[:-1], inner) and r.shape == (inner, shape[-1])
    if a.size:
        assert_is_product(matrix, q.reshape(-1, inner), r)
    # A batch of one.
    w, v = numpy_of(session.run("W[b,k], V[b,i,k] := eigh(A[b,i,j])", A=np.ones((1, 1, 1))))
    assert w.shape == (1, 1) and v.shape == (1, 1, 1) and w[0, 0] == 1


def test_constants_are_decomposed_once(session, rng):
    h, x = halving(rng, 8, 8), rng.standard_normal(8)
    text = """
        U[i,k], S[k], V[k,j] := svd(H[i,j]; cutoff=c)
        y[j] := x[i]*U[i,k]*Diagonal(S)[k,l]*V[l,j]
    """
    program = session.program(text, H=session.upload(h), x=x, c=0.2, constants=["H"])
    for cutoff, kept in [(0.2, 3), (0.2, 3), (0.3, 2), (0.2, 3)]:
        y = program(x=x, c=cutoff)
        assert [e.extent for e in y.report.kept_extents] == [kept]
        u, s, v = np.linalg.svd(h)
        expected = x @ (u[:, :kept] * s[:kept]) @ v[:kept]
        np.testing.assert_allclose(y.numpy(), expected, atol=1e-13)
    again = program(x=x)
    assert again.report.folded_operation_count >= 1
    assert [e.extent for e in again.report.kept_extents] == [3]


def test_extents_are_in_the_order_of_statements(session, rng):
    a = rng.standard_normal((5, 5))
    text = """
        U[i,k], S[k], V[k,j] := svd(A[i,j]*x[j])
        W[i,m], Z[m], Y[m,j] := svd(A[i,j]; rank=2)
        D[i,j] := W[i,k]*Diagonal(Z)[k,l]*Y[l,j] + U[i,j]
    """
    program = session.program(text, A=session.upload(a), x=a[0], constants=["A"], outputs=["D"])
    for _ in range(2):
        kept = program(x=a[0]).report.kept_extents
        assert [(k.statement, k.label, k.extent) for k in kept] == [(0, "k", 5), (1, "m", 2)]


def test_orders_of_results_are_layouts(session, rng):
    """Which row goes with which column is said by the argument."""
    x = rng.standard_normal((3, 2, 6, 6))
    p = x @ adjoint(x) + np.eye(6)
    groups = p.reshape(3, 2, 2, 3, 2, 3)  # (a, b, c, d, e, f): matrices of (c, d) and (e, f)
    expected = np.linalg.eigvalsh(p)
    for values, vectors in [("abk", "abcdk"), ("bak", "kdacb"), ("kab", "dbcka")]:
        text = f"W[{','.join(values)}], V[{','.join(vectors)}] := eigh(P[a,b,c,d,e,f])"
        w = session.run(text, P=groups, outputs=["W"]).numpy()
        got = np.einsum(f"{values}->abk", w)
        np.testing.assert_allclose(got, expected, atol=1e-12)
    lower = np.linalg.cholesky(p).reshape(3, 2, 2, 3, 6)
    inverse = np.linalg.inv(p).reshape(groups.shape)
    for l, r in [("abcdk", "abefgh"), ("dkcab", "fagebh"), ("kbdca", "hgbafe")]:
        got = session.run(f"L[{','.join(l)}] := cholesky(P[a,b,c,d,e,f])", P=groups).numpy()
        np.testing.assert_allclose(np.einsum(f"{l}->abcdk", got), lower, atol=1e-12)
        got = session.run(f"X[{','.join(r)}] := inv(P[a,b,c,d,e,f])", P=groups).numpy()
        # New labels are in the rows' order as they come.
        new = "gh" if r.index("g") < r.index("h") else "hg"
        wanted = np.einsum(f"abef{new}->abefgh", inverse)
        np.testing.assert_allclose(np.einsum(f"{r}->abefgh", got), wanted, atol=1e-11)
    t, b = np.linalg.cholesky(p[0, 0]).reshape(2, 3, 2, 3), rng.standard_normal((2, 3, 4))
    expected = np.linalg.solve(t.reshape(6, 6), b.reshape(6, 4)).reshape(2, 3, 4)
    for x, y in [("cds", "abs"), ("sdc", "sab"), ("dsc", "bas")]:
        text = (
            f"X[{','.join(x)}] := solve(A[a,b,c,d], B[{','.join(y)}]; "
            "structure=lower_triangular)"
        )
        got = session.run(text, A=t, B=np.einsum(f"abs->{y}", b)).numpy()
        np.testing.assert_allclose(np.einsum(f"{x}->cds", got), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_exponentials_in_programs_agree(session, rng, dtype):
    x = random_array(rng, (3, 2, 3, 2, 3), dtype)  # n, and matrices of (a, b) and (c, d)
    expected = scipy.linalg.expm(x.reshape(3, 6, 6)).reshape(x.shape)
    tolerance = 200 * np.finfo(dtype).eps * np.abs(expected).max()
    for labels in "nabef", "fabne", "efnba":
        text = f"E[{','.join(labels)}] := expm(X[n,a,b,c,d])"
        got = session.run(text, X=x).numpy()
        # New labels are in the columns' order as they come.
        new = "ef" if labels.index("e") < labels.index("f") else "fe"
        got = np.einsum(f"{labels}->nab{new}", got)
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)
    one = x[0, 0, :, 0, :]
    text = "D[j,i] := expm(A[i,j] + t*A[j,i]'; structure=hermitian); s = norm(D[i,j])"
    d, s = session.run(text, A=one, t=1, outputs=["D", "s"]).values()
    expected = scipy.linalg.expm(one + one.conj().T)
    np.testing.assert_allclose(d.numpy().T, expected, rtol=0, atol=tolerance * 10)
    np.testing.assert_allclose(s.numpy(), np.linalg.norm(expected), rtol=1e-4)


def test_norms_are_numbers_with_labels_of_their_own(session, rng):
    a, b = rng.standard_normal((2, 4, 5))
    z = a + 1j * b
    got = session.run("s = norm(A[i,j] - 2*B[i,j])", A=a, B=b)
    np.testing.assert_allclose(got.numpy(), np.linalg.norm(a - 2 * b), rtol=1e-14)
    got = session.run("D[i,j] := Z[i,j]/norm(Z[i,j])", Z=z).numpy()
    np.testing.assert_allclose(got, z / np.linalg.norm(z), rtol=1e-14)
    got = session.run("D[i] := norm(A[i,j])*x[i] + norm(norm(Z[i,j])*A[i,j])", A=a, Z=z, x=a[:, 0])
    expected = np.linalg.norm(a) * a[:, 0] + np.linalg.norm(z) * np.linalg.norm(a)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-14)
    square = rng.standard_normal((3, 3, 2))
    got = session.run("s = norm(S[i,i,k])", S=square)
    np.testing.assert_allclose(got.numpy(), np.linalg.norm(np.einsum("iik", square)), rtol=1e-14)
    got = session.run("s = norm(A[i,j]*B[k,j] - S[j,i,k,j]/(v[j]*v[j]))", A=a, B=b, v=b[0],
                      S=(s := rng.standard_normal((5, 4, 4, 5))))
    expected = a @ b.T - np.einsum("jikj->ik", s) / (b[0] @ b[0])
    np.testing.assert_allclose(got.numpy(), np.linalg.norm(expected), rtol=1e-13)
    nested = "s = norm(A[i,j]" + 60 * "/(1" + "*2" + 60 * ")" + ")"
    np.testing.assert_allclose(session.run(nested, A=a).numpy(), 2 * np.linalg.norm(a))
    for dtype in "i1", "u1", "i4", "i8", "?":
        whole = np.array([[100, 100, 3]]).astype(dtype)
        got = session.run("s := norm(A[i,j])", A=whole)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got.numpy(), np.linalg.norm(whole.astype(float)))
    got = session.run("s := norm(A[i,j] > 0)", A=a)
    np.testing.assert_allclose(got.numpy(), np.sqrt(np.sum(a > 0)))
    got = session.run("s = norm(S[0,0,1])*norm(A[-1,0]*B[-2,0])", S=square, A=a, B=b)
    expected = np.linalg.norm(np.einsum("iik", square)) * np.linalg.norm(a @ b.T)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-13)
    assert session.run("s := norm(Z[i,j])", Z=z).dtype == np.float64
    got = session.run("norm[i] := A[i,j]*norm[j]", A=a, norm=b[0])  # a name like others
    np.testing.assert_allclose(got.numpy(), a @ b[0], rtol=1e-13)
    with pytest.raises(tensord.InvalidArgument, match="4096 factors"):
        session.run("s = " + 20 * "norm(" + "A[i,j]" + 20 * ")", A=a)


def test_few_values_are_found_by_a_sample(session, rng):
    u, v = (np.linalg.qr(rng.standard_normal((n, 12)))[0] for n in (120, 100))
    a = u * 2.0 ** -np.arange(12) @ v.T
    text = """
        U[i,k], S[k], V[k,j] := svd(A[i,j]; rank=4, randomized=true, oversampling=6, seed=2)
        D[i,j] := U[i,k]*Diagonal(S)[k,l]*V[l,j]
    """
    program = session.program(text, A=session.upload(a), outputs=["D", "S"])
    got = program(A=a)
    assert [(k.label, k.extent) for k in got["S"].report.kept_extents] == [("k", 4)]
    np.testing.assert_allclose(got["S"].numpy(), 2.0 ** -np.arange(4), rtol=1e-6)
    assert np.linalg.norm(got["D"].numpy() - a, 2) <= 2.0**-4 * 1.01
    explained = session.explain.run(text, A=tensord.TensorSpec((120, 100), "f8"))
    assert (
        "U[i,k], S[k], V[k,j] = svd(A[i,j]; rank=4, randomized=true, oversampling=6, seed=2)"
        in [operation.text for operation in explained.operations]
    )


def test_what_nobody_reads_is_not_decomposed(session, rng):
    a = rng.standard_normal((4, 4))
    d = session.run(f"{SVD}; D[i] := A[i,j]*A[i,j]", A=a, outputs=["D"])
    assert d.report.operation_count == 1 and d.report.kept_extents == ()
    s = session.run(SVD, A=a, outputs=["S"])
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a, compute_uv=False), atol=1e-13)


def test_explanations_show_calls(session):
    spec = tensord.TensorSpec((6, 5), "f8")
    explained = session.explain.run(
        "U[i,k], S[k], V[k,j] := svd(A[i,j]*2; cutoff=1e-3, rank=4)\n"
        "X[j,s] := solve(A[i,j], B[i,s]; structure=hermitian)",
        A=tensord.TensorSpec((6, 6), "f8"), B=spec,
    )  # fmt: skip
    texts = [operation.text for operation in explained.operations]
    assert "U[i,k], S[k], V[k,j] = svd(t1[i,j]; rank=4, cutoff=0.001)" in texts
    assert "X[j,s] = solve(A[i,j],B[i,s]; structure=hermitian)" in texts
    assert {"factorize", "solve"} <= {o.operation for o in explained.operations}
    a = tensord.TensorSpec((2, 3, 3), "f8")
    explained = session.explain.run("X[r,j,n] := inv(A[n,i,j])", A=a)
    assert explained.operations[0].text == "X[r,j,n] = inv(A[n,i,j])"


@pytest.mark.parametrize(
    ("text", "reason", "message"),
    [
        ("U[i,k], V[k,j] := svd(A[i,j])", "VALUES_LOST", "line 1, column 19: s is no result"),
        ("Q[i,k] := qr(A[i,j])", "RESULT_COUNT_MISMATCH", "got 1 result of qr.*wanted q and r"),
        ("Q[i,k], R[k,j], S[k] := qr(A[i,j])", "RESULT_COUNT_MISMATCH", "3 results"),
        ("Q[i,k], R[k,x] := qr(A[i,j])", "MODE_NOT_IN_OUTPUT", "mode 'j' of a .'i', 'j'."),
        ("Q[i,k], R[l,j] := qr(A[i,j])", "MODE_NOT_IN_INPUT", "mode 'k' of q .'i', 'k'."),
        ("Q[i,k,l], R[k,l,j] := qr(A[i,j])", "INNER_MODE_COUNT", "share 2 modes"),
        ("U[i,k], S[j], V[k,j] := svd(A[i,j])", "MODES_OF_VALUES", "inner mode 'k'"),
        ("L[i,k] := cholesky(A[i,j])", "MATRIX_NOT_SQUARE", "mode 'i' of rows has extent 3"),
        ("X[j,i] := inv(A[i,j])", "MODES_OF_INVERSE", "line 1, column 11"),
        ("E[i,k] := expm(A[i,j])", "MATRIX_NOT_SQUARE", "3 rows, along .'i'., and 4 columns"),
        ("E[i] := expm(A[i,j])", "MODES_OF_EXPONENTIAL", "d .'i'. lacks 1 mode of a"),
        ("E[i,j] := expm(A[k,l]*A[k,l])", "MODES_OF_EXPONENTIAL", "a .. has 0 modes, wanted those of"),
        ("E[i,j,k,l] := expm(A[i,j]*A[k,l])", "MODES_OF_EXPONENTIAL", "as in nij->nik"),
        ("E[i,j] := expm(A[i,j]; rank=2)", "SYNTAX_ERROR", "wanted one of structure"),
        ("E[i,j] := 1 + expm(A[i,j])", "SYNTAX_ERROR", "expm.. in an expression"),
        ("s = norm(A[i,j], 2)", "SYNTAX_ERROR", "got ',', wanted an operator or '.'"),
        (SVD.replace(")", "; randomized=true)"), "SAMPLING_WITHOUT_RANK", "column 37"),
        (SVD.replace(")", "; rank=2, seed=3)"), "SYNTAX_ERROR", "wanted it with randomized=true"),
        (SVD.replace(")", "; rank=2, randomized=1)"), "SYNTAX_ERROR", "wanted one of true, false"),
        (SVD.replace(")", "; rank=2, randomized=true, oversampling=-1)"), "SAMPLING_OUT_OF_RANGE",
         "oversampling is -1, wanted 0 to"),
        (SVD.replace(")", "; rank=2, randomized=true, power_iterations=0.5)"), "SYNTAX_ERROR",
         "got 0.5 for power_iterations"),
        (SVD.replace(")", "; rank=0)"), "TRUNCATION_OUT_OF_RANGE", "column 37: rank is 0, wanted 1"),
        (SVD.replace(")", "; rank=r)"), "SYNTAX_ERROR", "got 'r' for rank, wanted a whole"),
        (SVD.replace(")", "; rank=1.5)"), "SYNTAX_ERROR", "got 1.5 for rank, wanted a whole number"),
        (SVD.replace(")", "; cutoff=-1)"), "TRUNCATION_OUT_OF_RANGE", "cutoff is -1"),
        (SVD.replace(")", "; cutof=1)"), "SYNTAX_ERROR", "'cutof', the nearest is 'cutoff'"),
        (SVD.replace(")", "; rank=2, rank=3)"), "SYNTAX_ERROR", 
         "column 45: option 'rank' is given twice, first at column 37"),
        (SVD.replace(")", "; absorb=up)"), "SYNTAX_ERROR", 
         "got 'up' for absorb, wanted one of left, right, both"),
        (SVD.replace(")", "; cutoff=A)"), "NAME_IS_TENSOR", "'A' is a tensor"),
        (SVD.replace(")", "; cutoff=eps)"), "NAME_UNKNOWN", "'eps' stands for nothing"),
        (SVD.replace(")", ", rank=2)"), "SYNTAX_ERROR", "';' in front of options"),
        (SVD.replace(":=", "+="), "SYNTAX_ERROR", "got 'svd', wanted ':=' or '='"),
        (SVD + "*2", "SYNTAX_ERROR", "the end of the statement, as svd.. is all of it"),
        ("Q[i,k], R[k,j] := qr(A[i,j], A[j,i])", "SYNTAX_ERROR", "got ',', wanted '.'\n"),
        ("Q[i,k], R[k,j] := pr(A[i,j])", "SYNTAX_ERROR", "got 'pr', the nearest is 'qr', wanted"),
        ("D[i,j] := 2*inv(A[i,j])", "SYNTAX_ERROR", "inv.. in an expression"),
        ("U[i], V[j] := exp(A[i,j])", "SYNTAX_ERROR", "which have several results"),
        ("Q[i,k], Q[k,j] := qr(A[i,j])", "OUTPUT_REPEATED", "output 'Q' is named twice"),
        ("Q[:], R[k,j] := qr(A[i,j])", "SYNTAX_ERROR", "got ':'"),
        ("Q[i,k], R[k,j] := qr(A[i,j]; rank=2)", "SYNTAX_ERROR", "but qr.. has none"),
        ("X[j] := solve(A[i,j])", "SYNTAX_ERROR", "',' behind argument 1 of 2 of solve"),
    ],
)  # fmt: skip
def test_what_is_refused(session, text, reason, message):
    a = session.upload(np.ones((3, 4)))
    with pytest.raises(tensord.InvalidArgument, match=message) as caught:
        session.run(text, A=a)
    assert caught.value.reason == reason


def test_extents_of_results_that_are_there_are_checked(session):
    a, r = np.ones((3, 4)), session.upload(np.zeros((3, 4)))
    u, s, v = (session.upload(np.zeros(shape)) for shape in ((3, 3), 3, (3, 4)))
    with pytest.raises(tensord.InvalidArgument, match="label 'k' has extent 3, but 2 in"):
        session.run("Q[i,k], R[k,j] = qr(A[i,j])", A=a, Q=session.upload(np.zeros((3, 2))), R=r)
    text = "Q[i,k], R[k,j] = qr(A[i,j])"
    with pytest.raises(tensord.InvalidArgument, match="inner mode 'k' has extent 2, wanted"):
        q, r = session.upload(np.zeros((3, 2))), session.upload(np.zeros((2, 4)))
        session.run(text, A=a, Q=q, R=r)
    with pytest.raises(tensord.InvalidArgument, match="extent 3, the rank is 2"):
        session.run(
            "U[i,k], S[k], V[k,j] = svd(A[i,j]; rank=2)", A=a, U=u, S=s, V=v
        )
    np.testing.assert_array_equal(u.numpy(), 0)


def test_matrices_that_cannot_be_are_refused_with_their_place(session):
    nan = session.upload(np.array([[1, np.nan], [0, 1]]))
    refused = r"line 2, column 26: svd.. of a = 'B.i,j.': a, a matrix"
    with pytest.raises(tensord.InvalidArgument, match=refused) as caught:
        session.run("B[i,j] := 2*A[i,j]\nU[i,k], S[k], V[k,j]  := svd(B[i,j])", A=nan)
    assert caught.value.reason == "MATRIX_NOT_FINITE"
    with pytest.raises(tensord.InvalidArgument, match="column 11: cholesky.* not positive definite"):
        session.run("L[i,k] := cholesky(A[i,j])", A=-np.eye(3))
    with pytest.raises(tensord.InvalidArgument) as caught:
        session.run("X[j,r] := inv(A[i,j])", A=np.zeros((2, 2)))
    assert caught.value.reason == "MATRIX_SINGULAR"
    # What it was to write is invalid, and all else as before.
    x = session.upload(np.zeros((2, 2)))
    with pytest.raises(tensord.InvalidArgument):
        session.run("X[j,r] = inv(A[i,j])", A=np.zeros((2, 2)), X=x)
    assert session.run("B[i,j] := 2*A[i,j]", A=np.ones((2, 2))).numpy()[0, 0] == 2


def test_messages_have_labels_and_extents(session):
    tall = tensord.TensorSpec(((1 << 30) + 1, 4), "f4")
    with pytest.raises(tensord.InvalidArgument, match=r"has 1073741825 rows, along \('i'\)"):
        session.explain.run("X[j,r] := inv(A[i,j])", A=tall)
    with pytest.raises(tensord.InvalidArgument, match="line 1, column 25: a is complex128 and d is float32"):
        session.run(SVD, A=np.ones((2, 2), "c16"), dtype="f4")


def test_memory_is_that_of_the_shorter_side(session):
    """Of what no rank says, as many values are reserved as there can be."""
    explained = session.explain.run(
        "U[i,k], S[k], V[k,j] := svd(A[i,j]; rank=8); D[i,j] := U[i,k]*Diagonal(S)[k,l]*V[l,j]",
        A=tensord.TensorSpec((256, 256), "f8"),
    )
    assert explained.peak_bytes < 4 * 256 * 8 * 8
