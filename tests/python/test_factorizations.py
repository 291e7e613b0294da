"""Factorizations: the operation with several results, and QR."""

from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest

import tensord
import tensord.aio
from random_arrays import random_array
from tensord import TensorSpec

DTYPES = [np.dtype(name) for name in ("f4", "f8", "c8", "c16")]


def assert_is_qr(q: np.ndarray, r: np.ndarray, a: np.ndarray) -> None:
    """Checks the thin QR of matrices, the last two modes of the arrays.

    Bounds are those of Higham, Accuracy and Stability of Numerical Algorithms, theorem
    19.4 and (19.13): each column of a - q @ r has at most the norm of a's column times
    sqrt(k) times c m k u, and q differs from orthonormal columns by twice as much; c = 8
    counts what a reflection of complex numbers rounds an element, 13 what making the
    diagonal positive does (see tests/conformance/matrix/factorization_conformance_test.cc).
    """
    rows, columns = a.shape[-2:]
    inner = min(rows, columns)
    assert q.shape == (*a.shape[:-1], inner)
    assert r.shape == (*a.shape[:-2], inner, columns)
    assert q.dtype == r.dtype == a.dtype
    bound = (8 * rows * inner + 13) * np.sqrt(inner) * np.finfo(a.dtype).eps / 2
    wide_a, wide_q, wide_r = (each.astype(np.complex128) for each in (a, q, r))
    # What the check itself rounds, in float64, has room in `c` by far.
    error = np.linalg.norm(wide_a - wide_q @ wide_r, axis=-2)
    assert np.all(error <= bound * np.linalg.norm(wide_a, axis=-2))
    gram = np.conj(np.swapaxes(wide_q, -1, -2)) @ wide_q
    assert np.all(np.linalg.norm(gram - np.eye(inner), axis=(-2, -1)) <= 2 * bound)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    assert np.all(diagonal.imag == 0) and np.all(diagonal.real >= 0)
    np.testing.assert_array_equal(r, np.triu(r))


def tensor_count(session: tensord.Session) -> int:
    gc.collect()
    session.link.keeper.flush()
    return session.describe().tensor_count


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "shape", [(7, 4), (4, 7), (5, 5), (1, 6), (6, 1), (90, 40)], ids=str
)
def test_matrices_tall_and_wide_are_products(session, rng, dtype, shape):
    a = random_array(rng, shape, dtype)
    for operand in a, session.upload(a):
        q, r = session.factorize("ij->ik,kj", operand, method="qr")
        assert isinstance(q, tensord.RemoteTensor)
        assert isinstance(r, tensord.RemoteTensor)
        assert_is_qr(q.numpy(), r.numpy(), a)
        assert q.report == r.report
        assert q.report.kernel.startswith("cpu.factorize.")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_modes_are_rows_columns_and_batches_by_where_they_are(session, rng, dtype):
    a = random_array(rng, (3, 4, 5, 2), dtype)
    q, r = session.factorize("abcd->abk,kcd", a, method="qr")
    assert (q.shape, r.shape) == ((3, 4, 10), (10, 5, 2))
    assert_is_qr(q.numpy().reshape(12, 10), r.numpy().reshape(10, 10), a.reshape(12, 10))

    # c is a batch mode, rows are (d), and the columns (b, a), whatever lies how.
    view = session.upload(a.transpose(2, 0, 3, 1).copy()).transpose(1, 3, 0, 2)
    q, r = session.factorize("abcd -> kcd, bcka", view, method="qr")
    assert (q.shape, r.shape) == ((2, 5, 2), (4, 5, 2, 3))
    assert_is_qr(
        q.numpy().transpose(1, 2, 0),
        r.numpy().transpose(1, 2, 0, 3).reshape(5, 2, 12),
        a.transpose(2, 3, 1, 0).reshape(5, 2, 12),
    )


def test_labels_are_letters_of_any_alphabet(session, rng):
    a = rng.random((4, 3))
    q, r = session.factorize("βÃ->β×,×Ã", a, method="qr")
    assert_is_qr(q.numpy(), r.numpy(), a)


def test_matrices_without_full_rank_have_factors_too(session):
    for a in np.zeros((4, 3)), np.ones((4, 3)):
        q, r = session.factorize("ij->ik,kj", a, method="qr")
        assert_is_qr(q.numpy(), r.numpy(), a)


def test_results_have_names_or_go_into_tensors(session, rng):
    a = rng.random((6, 3))
    before = tensor_count(session)
    q, r = session.factorize("ij->ik,kj", a, method="qr", name=(None, "upper"))
    assert r.name == "upper"
    out = session.create((3, 3), "f8")
    again = session.factorize("ij->ik,kj", a, method="qr", out=(None, out))
    assert again[1] is out and again[0] is not q
    np.testing.assert_array_equal(out.numpy(), r.numpy())
    both = session.factorize("ij->ik,kj", a + 1, method="qr", out=(q, out))
    assert both == (q, out)
    assert_is_qr(q.numpy(), out.numpy(), a + 1)
    del q, r, out, again, both
    assert tensor_count(session) == before + 1
    session.tensor("upper").delete()


def test_results_may_lie_side_by_side(session, rng):
    a = rng.random((6, 4))
    w = session.upload(np.zeros((8, 12)))
    session.factorize("ij->ik,kj", a, method="qr", out=(w[:6, :4], w[:4, 6:10]))
    q, r = session.factorize("ij->ik,kj", a, method="qr")
    expected = np.zeros((8, 12))
    expected[:6, :4], expected[:4, 6:10] = q.numpy(), r.numpy()
    assert np.array_equal(w.numpy(), expected)


def test_results_leave_with_their_last_reference(session, rng):
    a = rng.random((300, 300))  # Too large to be inline.
    before = tensor_count(session)
    q, r = session.factorize("ij->ik,kj", a, method="qr")
    assert tensor_count(session) == before + 2
    del q
    assert tensor_count(session) == before + 1
    r = session.factorize("ij->ik,kj", a, method="qr")[1]
    assert tensor_count(session) == before + 1
    del r
    for name in ("twice", "twice"), (None, "no name"):
        with pytest.raises(tensord.Error):
            session.factorize("ij->ik,kj", a, method="qr", name=name)
    assert tensor_count(session) == before


def test_kernels_are_named_measured_and_explained(session, rng):
    a = rng.random((30, 20))
    explained = session.explain.factorize("ij->ik,kj", a, method="qr")
    assert explained.kernel.startswith("cpu.factorize.")
    assert explained.flops > 0 and explained.kernel in str(explained)
    assert "<svg" in explained.svg()
    spec = TensorSpec((30, 20), "f8")
    assert session.explain.factorize("ij->ik,kj", spec, method="qr").kernel
    for options in (
        *(
            {"algorithm": candidate.kernel}
            for candidate in explained.candidates
            if not candidate.refusal
        ),
        {"selection": "measure"},
        {"selection": "incremental"},
        {"deterministic": True, "workspace_limit_bytes": 1 << 20, "timeout": 30},
    ):
        q, r = session.factorize("ij->ik,kj", a, method="QR", **options)
        assert_is_qr(q.numpy(), r.numpy(), a)
        assert q.report.kernel == options.get("algorithm", q.report.kernel)


@pytest.mark.parametrize(
    ("subscripts", "reason", "words"),
    [
        ("ij->ik", "SUBSCRIPTS_MALFORMED", "'ij->ik', wanted one operand"),
        ("ij,jk->ik,kj", "SUBSCRIPTS_MALFORMED", "and 2 results, q and r"),
        ("ij->ik,kj,k", "SUBSCRIPTS_MALFORMED", "wanted one operand"),
        ("ij->ik->kj", "SUBSCRIPTS_MALFORMED", "wanted one operand"),
        ("", "SUBSCRIPTS_MALFORMED", "wanted one operand"),
        ("ij>ik,kj", "SUBSCRIPTS_MALFORMED", r"column 3: got '>'.*\n.*\n {6}\^"),
        ("...j->...k,kj", "SUBSCRIPTS_MALFORMED", "column 1: got '.', wanted letters"),
        ("ij->i1,1j", "SUBSCRIPTS_MALFORMED", "column 6: got '1'"),
        ("i->ik,k", "MODE_COUNT_MISMATCH", r"a has 2 extents.*\('i'\)"),
        ("ij->ik,kjj", "MODE_REPEATED", "mode 'j' occurs twice in r"),
        ("ij->ik,mj", "MODE_NOT_IN_INPUT", "mode 'k' of q"),
        ("ij->k,kj", "MODE_NOT_IN_OUTPUT", "mode 'i' of a"),
        ("ij->i,j", "INNER_MODE_COUNT", "share 0 modes that a lacks, wanted one"),
        ("ij->ikm,kmj", "INNER_MODE_COUNT", "share 2 modes"),
    ],
)
def test_subscripts_that_do_not_fit_say_why(session, subscripts, reason, words):
    with pytest.raises(tensord.InvalidArgument, match=words) as failure:
        session.factorize(subscripts, np.ones((2, 3)), method="qr")
    assert failure.value.reason == reason


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "lu"}, tensord.InvalidArgument, "'lu' is unknown, wanted one of qr"),
        ({"method": None}, TypeError, "method is of type NoneType"),
        ({"out": np.ones((2, 2))}, TypeError, "out is of type ndarray, wanted a tuple of Rem"),
        ({"out": (None, np.ones(2))}, tensord.InvalidArgument, "out is of type ndarray"),
        ({"name": "qr"}, TypeError, "name is of type str, wanted a tuple of strings"),
        ({"name": ("q",)}, tensord.InvalidArgument, "name has 1 items, wanted 2 strings"),
        ({"name": ("q", 5)}, TypeError, "name is of type int"),
        ({"algorithm": "fastest"}, tensord.NotFound, "kernel 'fastest' does not exist"),
        ({"selection": "best"}, tensord.InvalidArgument, "selection 'best' is unknown"),
        ({"timeout": 0}, tensord.InvalidArgument, "timeout is 0"),
        ({"dtype": "f4"}, TypeError, "dtype"),
    ],
)
def test_options_that_do_not_fit_say_why(session, options, error, words):
    with pytest.raises(error, match=words):
        session.factorize("ij->ik,kj", np.ones((2, 2)), **{"method": "qr", **options})


def test_outputs_that_do_not_fit_say_why(session):
    a = session.upload(np.ones((4, 2)))
    square = session.create((2, 2), "f8")
    for out, reason in [
        ((square, None), "MODE_EXTENT_MISMATCH"),
        ((a, None), "OUTPUT_OVERLAPS_INPUT"),
    ]:
        with pytest.raises(tensord.InvalidArgument) as failure:
            session.factorize("ij->ik,kj", a, method="qr", out=out)
        assert failure.value.reason == reason
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.factorize(
            "ij->ik,kj", a, method="qr", out=(None, square), name=(None, "r")
        )
    assert failure.value.reason == "OUTPUT_EXISTS"
    with pytest.raises(tensord.InvalidArgument, match="q overlaps r") as failure:
        session.factorize(
            "ij->ik,kj", np.eye(2), method="qr", out=(a[:2], a[1:3])
        )
    assert failure.value.reason == "OUTPUTS_OVERLAP"
    for dtype in "i8", "f2":
        with pytest.raises(tensord.Unimplemented) as unknown:
            session.factorize("ij->ik,kj", np.ones((2, 2), dtype), method="qr")
        assert unknown.value.reason == "TYPES_NOT_SUPPORTED"


@pytest.mark.timing
def test_both_results_are_awaited_together(address, rng):
    a = random_array(rng, (6, 4), "c16")

    async def check() -> None:
        async with tensord.aio.connect(address) as session:
            remote = await session.upload(a)
            (q, r), same = await asyncio.gather(
                session.factorize("ij->ik,kj", remote, method="qr"),
                session.factorize("ij->ik,kj", a, method="qr", name=("q", "r")),
            )
            assert isinstance(q, tensord.aio.RemoteTensor)
            assert_is_qr(await q.numpy(), await r.numpy(), a)
            np.testing.assert_array_equal(await same[1].numpy(), await r.numpy())
            explained = await session.explain.factorize("ij->ik,kj", a, method="qr")
            assert explained.kernel == q.report.kernel == r.report.kernel
            out = await session.create((4, 4), "c16")
            written = await session.factorize(
                "ij->ik,kj", a, method="qr", out=(q, out)
            )
            assert written == (q, out)
            with pytest.raises(tensord.InvalidArgument, match="column 1"):
                await session.factorize("1->1k,k", a, method="qr")
            # The upload, "q", "r", and three that are held here.
            gc.collect()
            await asyncio.to_thread(session.link.keeper.flush)
            assert (await session.describe()).tensor_count == 6

    asyncio.run(check())


def test_plans_factorize_often(session, rng):
    a, b = rng.random((4, 2)), session.upload(rng.random((4, 2)))
    spec = TensorSpec((4, 2), "f8")
    with session.plan.factorize("ij->ik,kj", spec, method="qr", name="qr") as plan:
        assert plan.name == "qr" and plan.operation == "factorize"
        assert plan.factors == () and plan.operands["d"].shape == (4, 2)
        assert [other.shape for other in plan.others] == [(2, 2)]
        assert plan.describe().kernel.startswith("cpu.factorize.")
        for each in a, b:
            q, r = plan.factorize(each)
            expected = session.factorize("ij->ik,kj", each, method="qr")
            assert np.array_equal(q.numpy(), expected[0].numpy())
            assert np.array_equal(r.numpy(), expected[1].numpy())
            assert r.report.kernel == q.report.kernel == plan.kernel
        written = plan.factorize(b, out=(None, r), name=("q", None))
        assert written[0].name == "q" and written[1] is r
        assert session.get_plan("qr").factorize(a)[0].shape == (4, 2)


def test_plans_say_how_many_results_they_have(session):
    a = np.ones((4, 2))
    plan = session.plan.factorize("ij->ik,kj", a, method="qr")
    with pytest.raises(tensord.InvalidArgument, match="has 2 results") as failure:
        plan(a)
    assert failure.value.reason == "PLAN_RESULT_COUNT"
    with pytest.raises(tensord.InvalidArgument, match="has 1 result;") as failure:
        session.plan.permute(a, "ij", "ji").factorize(a)
    assert failure.value.reason == "PLAN_RESULT_COUNT"
    with pytest.raises(tensord.InvalidArgument) as failure:
        plan.factorize(np.ones((2, 4)))
    assert failure.value.reason == "PLAN_OPERAND_DIFFERS"
    with pytest.raises(tensord.InvalidArgument) as failure:
        plan.factorize(a, out=[])
    assert failure.value.reason == "OUTPUT_COUNT_MISMATCH"
    with pytest.raises(TypeError, match="alpha"):
        plan.factorize(a, alpha=2)
