"""einsum agrees with numpy.einsum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
from bounds import assert_within_bound, widened
from random_arrays import random_array
from tensord import _dtypes as dtypes


def restrided(array: np.ndarray, how: int) -> np.ndarray:
    """The same numbers with other strides in memory."""
    if how == 1:
        return np.array(array, order="F")
    if how == 2 and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        wide[..., 1::2] = array
        return wide[..., 1::2]
    if how == 3 and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    return array


@st.composite
def einsums(draw, operand_count: int):
    """Subscripts and the operands' shapes."""
    letters = draw(st.permutations("abcDEf"))[: draw(st.integers(0, 5))]
    extents = {letter: draw(st.integers(0, 6)) for letter in letters}
    inputs = [
        "".join(draw(st.permutations(letters))[: draw(st.integers(0, len(letters)))])
        for _ in range(operand_count)
    ]
    subscripts = ",".join(inputs)
    if draw(st.booleans()):
        used = sorted(set("".join(inputs)))
        output = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
        subscripts += "->" + "".join(output)
    return subscripts, [tuple(extents[m] for m in labels) for labels in inputs]


def check(session, subscripts, shapes, dtype, seed, remote, strides, alpha) -> None:
    """Compares with NumPy; `remote` and `strides` say how operands come."""
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, shape, dtype) for shape in shapes]
    arrays = [restrided(array, how) for array, how in zip(arrays, strides)]
    operands = [session.upload(x) if r else x for x, r in zip(arrays, remote)]
    result = session.einsum(subscripts, *operands, alpha=alpha)
    assert result.dtype == dtype
    wide = [widened(array) for array in arrays]
    with np.errstate(over="ignore"):  # Integers wrap.
        expected = np.einsum(subscripts, *wide) * np.array(alpha, wide[0].dtype)
        magnitude = np.einsum(subscripts, *map(np.abs, wide)) * abs(alpha)
    term_count = int(np.prod([max(array.size, 1) for array in arrays]))
    assert_within_bound(
        result.numpy(), np.asarray(expected, wide[0].dtype), magnitude, term_count
    )


@given(
    einsums(2),
    st.sampled_from(dtypes.DTYPES),
    st.integers(0, 2**32),
    st.tuples(st.booleans(), st.booleans()),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.sampled_from([1, 2]),
)
def test_contraction_agrees_with_numpy(
    session, case, dtype, seed, remote, strides, alpha
):
    check(session, *case, dtype, seed, remote, strides, alpha)


@given(
    einsums(1),
    st.sampled_from(dtypes.DTYPES),
    st.integers(0, 2**32),
    st.tuples(st.booleans()),
    st.tuples(st.integers(0, 3)),
    st.sampled_from([1, 2]),
)
def test_transposition_and_sum_agree_with_numpy(
    session, case, dtype, seed, remote, strides, alpha
):
    check(session, *case, dtype, seed, remote, strides, alpha)


def test_front_door_example_agrees(session, rng):
    a, b = rng.random((50, 40, 60)), rng.random((60, 40, 30))
    expected = np.einsum("ijk,kjl->il", a, b)
    result = session.einsum("ijk,kjl->il", session.upload(a), session.upload(b))
    assert_within_bound(result.numpy(), expected, expected, 40 * 60)
    assert_within_bound(np.asarray(result), expected, expected, 40 * 60)


def test_large_arrays_are_uploaded_and_forgotten(session, rng):
    a, b = rng.random((400, 300)), rng.random((300, 500))
    assert a.nbytes + b.nbytes > session.info().limits.max_inline_bytes
    session.link.keeper.flush()
    before = session.describe().tensor_count
    result = session.einsum("ij,jk", a, b)
    assert_within_bound(result.numpy(), a @ b, a @ b, 300)
    session.link.keeper.flush()
    assert session.describe().tensor_count == before + 1


def test_addends_take_one_operation(session, rng):
    a, c = rng.random((4, 5)), rng.random((5, 4))
    sums = session.einsum("ij->ji", a, c=c, alpha=2, beta=3).numpy()
    assert_within_bound(sums, 2 * a.T + 3 * c, 2 * a.T + 3 * c, 2)
    out = session.upload(c[:, 0])
    assert session.einsum("ij->j", a, out=out, beta=-1) is out
    expected = a.sum(0) - c[:, 0]
    assert_within_bound(out.numpy(), expected, a.sum(0) + c[:, 0], 4)
    out = session.upload(c)
    session.einsum("ij,jk->ik", c, a, out=session.create((5, 5), np.float64))
    session.einsum("ij,ik->jk", a, a[:, :4], out=out, beta=1)
    expected = a.T @ a[:, :4] + c
    assert_within_bound(out.numpy(), expected, expected, 5)


@pytest.mark.parametrize("subscripts", ["ij->ji", "ij->j", "ij,jk->ik"])
def test_beta_takes_an_addend(session, subscripts: str):
    operands = (np.ones((4, 4)),) * (1 + subscripts.count(","))
    for run in session.einsum, session.explain.einsum:
        with pytest.raises(
            tensord.InvalidArgument, match="beta is 1.*wanted"
        ) as failure:
            run(subscripts, *operands, beta=1)
        assert failure.value.reason == "INPUT_MISSING"


def test_extents_of_one_are_stretched(session):
    ones = np.ones((2, 1)), np.ones((3, 4))
    result = session.einsum("ij,jk->ik", *ones)
    np.testing.assert_array_equal(result.numpy(), np.einsum("ij,jk->ik", *ones))
    with pytest.raises(tensord.InvalidArgument, match="'j' has extent 3") as failure:
        session.einsum("ij,jk->ik", np.ones((2, 2)), np.ones((3, 4)))
    assert failure.value.reason == "MODE_EXTENT_MISMATCH"
