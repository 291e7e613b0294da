"""What depends on constant operands alone is computed once, and never stale."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tensord
from bounds import assert_within_bound
from tensord import TensorSpec

TEXT = "T[i,k] := A[i,j]*B[j,k]; D[i,l] := T[i,k]*X[k,l]"


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.random((10, 5))


def used_bytes(session: tensord.Session) -> int:
    gc.collect()
    session.link.keeper.flush()
    return session.describe().memory_used_bytes


def counts(tensor: tensord.RemoteTensor) -> tuple[int, int]:
    return tensor.report.operation_count, tensor.report.folded_operation_count


def test_statements_fold_what_is_constant(session, a, b, x):
    remote = session.upload(a)
    program = session.program(TEXT, A=remote, B=b, X=x, constants=["A", "B"])
    assert program.constants == ("A", "B")
    d = program(X=x)
    assert counts(d) == (2, 0)
    assert_within_bound(d.numpy(), a @ b @ x, a @ b @ x, 60)
    d = program(2 * x)
    assert counts(d) == (1, 1)
    assert_within_bound(d.numpy(), a @ b @ (2 * x), 2 * (a @ b @ x), 60)
    explanation = program.describe().explanation
    assert [each.is_folded for each in explanation.operations] == [True, False]
    assert explanation.kept_bytes == d.report.kept_bytes > 0
    remote[:] = session.upload(a + 1)
    d = program(X=x)
    assert counts(d) == (2, 0)
    expected = (a + 1) @ b @ x
    assert_within_bound(d.numpy(), expected, expected, 60)


def test_products_take_what_is_not_constant(session, a, b, x):
    program = session.program(
        "ij,jk,kl->il", a, b, x, constants=[0, 1], optimize=[(0, 1), (0, 1)]
    )
    for scale in (1, 3):
        result = program(scale * x, inline=True)
        expected = a @ b @ (scale * x)
        assert_within_bound(result, expected, expected, 60)
    other = session.upload(a * 2)
    result = program({"operand 0": other}, **{"operand 2": x}, inline=True)
    assert_within_bound(result, 2 * (a @ b @ x), 2 * (a @ b @ x), 60)
    result = program({"operand 0": a * 4, "operand 2": x}, inline=True)
    assert_within_bound(result, 4 * (a @ b @ x), 4 * (a @ b @ x), 60)
    with pytest.raises(tensord.InvalidArgument, match="constants are given by name"):
        program(a, b, x)


def test_ncon_folds(session, a, b, x):
    labels = [[-1, 1], [1, 2], [2, -2]]
    program = session.program(labels, a, b, x, constants=(0, 1))
    program(x)
    assert counts(program(x)) == (1, 1)


def test_memory_returns_with_the_program(session, a, b, x):
    before = used_bytes(session)
    program = session.program(TEXT, A=a, B=b, X=x, constants=["A", "B"])
    # The arrays that were uploaded are the program's alone.
    with_constants = used_bytes(session)
    assert with_constants >= before + a.nbytes + b.nbytes
    program(X=x, inline=True)
    kept_bytes = program.describe().explanation.kept_bytes
    assert used_bytes(session) == with_constants + kept_bytes
    program.delete()
    assert used_bytes(session) == before


def test_numbers_are_kept_anyway(session, a, b, x):
    program = session.program(
        "D[i,k] := f*A[i,j]*B[j,k]", A=a, B=b, f=2.0, constants=["A", "f"]
    )
    assert program.constants == ("A",)
    assert_within_bound(program(B=b).numpy(), 2 * a @ b, 2 * a @ b, 35)


@pytest.mark.parametrize(
    "constants, error, message",
    [
        ("A", TypeError, "wanted a list of names"),
        ([2.5], TypeError, "constants has 2.5"),
        (["Z"], tensord.InvalidArgument, "'Z', which is no operand, wanted some"),
        (["S"], TypeError, "got a TensorSpec"),
    ],
)
def test_wrong_constants_are_refused(session, a, constants, error, message):
    spec = TensorSpec((20, 20), "f8")
    with pytest.raises(error, match=message):
        session.program(
            "D[i,k] := A[i,j]*A[k,j] + S[i,k]", A=a, S=spec, constants=constants
        )


def test_a_constant_is_not_written(session, a):
    remote = session.upload(a)
    with pytest.raises(tensord.InvalidArgument) as refused:
        session.program("A[i,j] += A[i,j]", A=remote, constants=["A"])
    assert refused.value.reason == "CONSTANT_WRITTEN"
    assert "A[i,j] += A[i,j]\n    ^" in str(refused.value)


def test_explanations_say_what_would_be_kept(session, a, b, x):
    explanation = session.explain.program(
        TEXT, A=a, B=TensorSpec(b.shape, b.dtype), X=x, constants=["A", "B"]
    )
    assert explanation.kept_bytes > 0
    assert explanation.text.count(", once\n") == 1
