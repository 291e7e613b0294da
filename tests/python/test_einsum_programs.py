"""einsum takes whatever numpy.einsum takes, and means the same."""

from __future__ import annotations

import gc
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
from bounds import assert_within_bound
from random_arrays import random_array
from random_products import assert_product_agrees, products
from tensord import TensorSpec, _dtypes as dtypes
from tensord._connection import name_of
from waiting import eventually

FLOATS = [np.dtype(t) for t in ("f4", "f8", "c8", "c16")]
METHODS = ("auto", "optimal", "greedy", "random-greedy", "partition", False, True, 0.01)


def drawn_arrays(data, shapes, dtype=None) -> list[np.ndarray]:
    """Arrays of these shapes, of one or several dtypes."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    known = [t for t in dtypes.DTYPES if t != tensord.bfloat16]
    types = [dtype or data.draw(st.sampled_from(known)) for _ in shapes]
    return [random_array(rng, shape, t) for shape, t in zip(shapes, types)]


@given(products(), st.sampled_from(dtypes.DTYPES), st.data())
def test_products_agree_with_numpy(session, product, dtype, data):
    arrays = drawn_arrays(data, product.shapes, dtype)
    operands = [
        session.upload(array) if data.draw(st.booleans()) else array for array in arrays
    ]
    optimize = data.draw(st.sampled_from(METHODS))
    result = session.einsum(product.subscripts, *operands, optimize=optimize)
    assert_product_agrees(result.numpy(), product.subscripts, arrays)


@given(products(), st.data())
def test_arrays_of_any_dtypes_are_promoted_as_by_numpy(session, product, data):
    arrays = drawn_arrays(data, product.shapes)
    result = session.einsum(product.subscripts, *arrays, inline=True)
    assert isinstance(result, np.ndarray)
    assert_product_agrees(result, product.subscripts, arrays)


@pytest.mark.parametrize("types", [("f2", "f4"), ("f4", "f8"), ("c8", "c16")])
def test_floating_point_tensors_are_converted_on_the_server(session, rng, types):
    arrays = [random_array(rng, (3, 3), dtype) for dtype in types]
    for operands in (arrays, map(session.upload, arrays)):
        result = session.einsum("ij,jk->ik", *operands)
        assert_product_agrees(result.numpy(), "ij,jk->ik", arrays)


@pytest.mark.parametrize("right", ["i2", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("left", ["?", "i1", "u1", "i2", "i4", "i8"])
def test_integers_on_the_server_are_promoted_as_by_numpy(session, rng, left, right):
    arrays = [random_array(rng, (3, 3), dtype) for dtype in (left, right)]
    x, y = map(session.upload, arrays)
    for operands in (x, y), (x, arrays[1]), (arrays[0], y):
        result = session.einsum("ij,jk->ik", *operands)
        assert_product_agrees(result.numpy(), "ij,jk->ik", arrays)
        inline = session.run("D[i,k] := A[i,j]*B[j,k]", dict(zip("AB", operands)))
        np.testing.assert_allclose(inline.numpy(), result.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["i8", "f4", "f8", "c16"])
def test_products_of_integers_on_the_server_do_not_wrap_early(session, dtype):
    array = np.full(5, 100, "i1")
    small = session.upload(array)
    for subscripts in "i->", "i,i->", "i,i->i", "i,i,i->":
        operands = [small] * (1 + subscripts.count(","))
        expected = np.einsum(subscripts, *[array] * len(operands), dtype=dtype)
        result = session.einsum(subscripts, *operands, dtype=dtype)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result.numpy(), expected)
        ones = np.ones((), dtype)
        result = session.einsum(subscripts.replace("->", ",->"), *operands, ones)
        np.testing.assert_array_equal(result.numpy(), expected)


@given(products(), st.data())
def test_interleaved_labels_agree_with_numpy(session, product, data):
    inputs, arrow, output = product.subscripts.partition("->")
    arrays = drawn_arrays(data, product.shapes, np.dtype("f8"))

    def numbers(labels: str) -> list:
        dotted = labels.replace("...", ".")
        return [... if m == "." else "abcDEf".index(m) for m in dotted]

    items = []
    for labels, array in zip(inputs.split(","), arrays):
        items += [array, numbers(labels)]
    items += [numbers(output)] if arrow else []
    result = session.einsum(*items)
    expected = np.einsum(*items)
    assert result.shape == expected.shape
    # With numbers, the implicit output is in another order than with letters.
    if arrow:
        assert_product_agrees(result.numpy(), product.subscripts, arrays)
    else:
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)


@given(products(hyper=False, stretched=False), st.data())
def test_explicit_paths_are_followed(session, product, data):
    arrays = drawn_arrays(data, product.shapes, np.dtype("f8"))
    left = len(arrays)
    path: list = ["einsum_path"] if data.draw(st.booleans()) else []
    while left > 1:
        step = sorted(data.draw(st.permutations(range(left)))[:2])
        path.append(tuple(step))
        left -= 1
    result = session.einsum(product.subscripts, *arrays, optimize=path)
    assert_product_agrees(result.numpy(), product.subscripts, arrays)


@given(
    products(most_operands=3),
    st.sampled_from(FLOATS),
    st.sampled_from([1, 2, -0.5]),
    st.sampled_from([0, 1, 2]),
    st.data(),
)
def test_factors_addends_and_out_go_with_any_product(
    session, product, dtype, alpha, beta, data
):
    arrays = drawn_arrays(data, product.shapes, dtype)
    shape = np.einsum(product.subscripts, *arrays).shape
    rng = np.random.default_rng(5)
    addend = random_array(rng, shape, dtype)
    out = session.upload(addend)
    result = session.einsum(
        product.subscripts, *arrays, out=out, alpha=alpha, beta=beta
    )
    assert result is out
    if beta == 0:
        assert_product_agrees(out.numpy(), product.subscripts, arrays, alpha)
    # The product alone is known to agree: what is added is added once.
    alone = session.einsum(product.subscripts, *arrays, inline=True)
    expected = alpha * alone + beta * addend
    unit = np.finfo(dtype).eps
    largest = 3 * (abs(alpha) * np.abs(alone) + beta * np.abs(addend)) + 1
    assert np.all(np.abs(out.numpy() - expected) <= 16 * unit * largest)


def test_names_dtypes_and_orders_are_taken(session, rng):
    a = [rng.random((3, 3)).astype(np.float32) for _ in range(3)]
    with session.einsum("ij,jk,kl", *a, name="chain", dtype=np.float64) as named:
        assert named.name == "chain" and named.dtype == np.float64
        assert session.tensor("chain").shape == (3, 3)
    first_fastest = session.einsum("ij,jk->ik", *a[:2], order="F")
    assert first_fastest.strides == (4, 12)
    np.testing.assert_allclose(first_fastest.numpy(), a[0] @ a[1], rtol=1e-5)
    assert session.einsum("ij,jk->ik", *a[:2], order="C").strides == (12, 4)


@pytest.mark.parametrize(
    ("source", "target"), [("i1", "f8"), ("?", "i8"), ("i4", "c16"), ("u1", "i2")]
)
def test_dtype_is_what_is_computed_in(session, source, target):
    array = np.full(5, 1 if source == "?" else 100, source)
    for subscripts in "i->", "i,i->", "i,i,i->":
        operands = [array] * (1 + subscripts.count(","))
        result = session.einsum(subscripts, *operands, dtype=target)
        assert result.dtype == target
        assert result.item() == np.einsum(subscripts, *operands, dtype=target)


def test_casting_forbids_what_numpy_forbids(session):
    ones = np.ones(3)
    with pytest.raises(TypeError, match="'safe'"):
        session.einsum("i->", ones, dtype=np.float32, casting="safe")
    with pytest.raises(TypeError):
        np.einsum("i->", ones, dtype=np.float32, casting="safe")
    assert session.einsum("i->", ones, dtype="f4", casting="same_kind").item() == 3
    for operands, dtype in (
        ([[1 + 2j]] * 2, "f8"),
        ([[1.5], [2.7]], "i8"),
        ([[1.5], [2]], "i8"),
        ([[1]] * 2, "?"),
    ):
        arrays = [np.array(each) for each in operands]
        with pytest.raises(TypeError):
            np.einsum("i,i->i", *arrays, dtype=dtype, casting="same_kind")
        for given_arrays in arrays, [session.upload(each) for each in arrays]:
            with pytest.raises(TypeError, match="operand 0 .* rule 'same_kind'"):
                session.einsum("i,i->i", *given_arrays, dtype=dtype)
            with pytest.raises(TypeError, match="operand 0 .* rule 'same_kind'"):
                session.ncon(given_arrays, [[1], [1]], dtype=dtype)
    assert session.einsum("i->", ones, dtype="f4").item() == 3
    half = np.ones(3, tensord.bfloat16)
    assert session.einsum("i,i->", half, half, dtype="f2").dtype == np.float16
    truncated = session.einsum("i->", ones * 1.5, dtype=np.int64, casting="unsafe")
    assert truncated.item() == 3


@pytest.mark.parametrize(
    ("subscripts", "shapes", "reason"),
    [
        ("i,j", [(2,)], "OPERAND_COUNT_MISMATCH"),
        ("ij", [(2,)], "MODE_COUNT_MISMATCH"),
        ("i", [(2, 3)], "MODE_COUNT_MISMATCH"),
        ("ij,jk", [(2, 3), (4, 5)], "MODE_EXTENT_MISMATCH"),
        ("ii", [(2, 3)], "MODE_EXTENT_MISMATCH"),
        ("i->j", [(2,)], "MODE_NOT_IN_INPUT"),
        ("ij->ii", [(2, 2)], "MODE_REPEATED"),
        ("i..j", [(2, 2)], "SUBSCRIPTS_MALFORMED"),
        ("......", [(2, 2)], "SUBSCRIPTS_MALFORMED"),
        ("i->>", [(2,)], "SUBSCRIPTS_MALFORMED"),
        ("i-", [(2,)], "SUBSCRIPTS_MALFORMED"),
        ("i1", [(2, 2)], "SUBSCRIPTS_MALFORMED"),
        ("...i->i", [(2, 3)], "ELLIPSIS_DROPPED"),
        ("...i...", [(2, 3)], "SUBSCRIPTS_MALFORMED"),
        ("...,...", [(2,), (3,)], "MODE_EXTENT_MISMATCH"),
    ],
)
def test_what_numpy_refuses_is_refused(session, subscripts, shapes, reason):
    arrays = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError):
        np.einsum(subscripts, *arrays)
    with pytest.raises(ValueError) as failure:
        session.einsum(subscripts, *arrays)
    assert failure.value.reason == reason


def test_no_operands_are_refused(session):
    with pytest.raises(ValueError):
        np.einsum("->")
    with pytest.raises(tensord.InvalidArgument):
        session.einsum("->")


def test_messages_have_the_place(session):
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.einsum("ij,j1k->ik", np.ones((2, 2)), np.ones((2, 2, 2)))
    assert "column 5" in str(failure.value)
    assert str(failure.value).endswith("\n    ij,j1k->ik\n        ^")


def test_products_are_in_a_good_order_unless_told_otherwise(session, rng):
    """C9: left to right, pairwise, is what `optimize=False` and parentheses ask for; by
    default the server takes the order with the fewest operations."""
    a, b, c = rng.random((30, 2)), rng.random((2, 30)), rng.random((30, 2))
    named = {"A": a, "B": b, "C": c}

    def order(explanation) -> list[set[str]]:
        """What each operation multiplies."""
        operations = [each.text.split(" = ")[1] for each in explanation.operations]
        return [set(re.findall(r"\w+(?=\[)", text)) for text in operations]

    explain = session.explain
    in_order = [{"A", "B"}, {"C", "t1"}]
    assert order(explain.run("D[i,l] := (A[i,j]*B[j,k])*C[k,l]", named)) == in_order
    best = [{"B", "C"}, {"A", "t1"}]
    assert order(explain.run("D[i,l] := A[i,j]*B[j,k]*C[k,l]", named)) == best
    told = explain.einsum("ij,jk,kl->il", a, b, c, optimize=False)
    assert told.products[0].path == [(0, 1), (0, 1)]
    assert order(told) == [{"0", "1"}, {"2", "t1"}]
    found = explain.einsum("ij,jk,kl->il", a, b, c)
    assert found.products[0].path == [(1, 2), (0, 1)]
    assert found.flops < told.flops
    expected = a @ b @ c
    for options in ({}, {"optimize": False}):
        result = session.einsum("ij,jk,kl->il", a, b, c, **options).numpy()
        assert_within_bound(result, expected, expected, 60, 1)


def test_memory_limits_are_kept(session, rng):
    arrays = [rng.random((20, 20)) for _ in range(6)]
    subscripts = "ab,bc,cd,de,ef,fa->"
    free = session.einsum(subscripts, *arrays)
    for limit in 8_000, 2_000:
        limited = session.einsum(subscripts, *arrays, memory_limit=limit)
        assert limited.report.peak_bytes <= limit
        assert_product_agrees(limited.numpy(), subscripts, arrays)
    assert free.report.peak_bytes > 2_000
    with pytest.raises(tensord.ResourceExhausted) as failure:
        session.einsum(subscripts, *arrays, memory_limit=0)
    assert failure.value.reason == "PATH_MEMORY_LIMIT"


def test_one_call_computes_a_product(session, rng):
    arrays = [rng.random((8, 8)) for _ in range(5)]
    before = executed_programs(session)
    calls = count_calls(session)
    result = session.einsum("ab,bc,cd,de,ef->af", *arrays, inline=True)
    assert_product_agrees(result, "ab,bc,cd,de,ef->af", arrays)
    assert calls() == ["ExecuteProgram"]
    assert executed_programs(session) == before + 1


def executed_programs(session: tensord.Session) -> int:
    return sum(
        operation.count
        for operation in session.stats().operations
        if operation.operation == "execute_program"
    )


def count_calls(session: tensord.Session):
    """Returns what lists the calls that the session has made meanwhile."""
    connection = session.link.connection
    original, names = connection.call, []

    def call(method, request, timeout=None):
        names.append(name_of(method, request))
        return original(method, request, timeout)

    connection.call = call

    def finish() -> list[str]:
        connection.call = original
        background = ("Delete", "KeepSessionAlive")
        return [name for name in names if not name.startswith(background)]

    return finish


def test_large_arrays_are_uploaded_and_forgotten(session, rng):
    # Of whole numbers, so that every order of products gives the same.
    arrays = [rng.integers(-8, 9, (300, 300)).astype(np.float64) for _ in range(3)]
    gc.collect()  # What other tests have left.
    session.link.keeper.flush()
    session.link.memory.trim()
    before = session.describe().tensor_count
    held = session.describe().memory_used_bytes
    result = session.einsum("ij,jk,kl->il", *arrays)
    np.testing.assert_array_equal(result.numpy(), np.linalg.multi_dot(arrays))
    session.link.keeper.flush()
    assert session.describe().tensor_count == before + 1

    def used() -> int:
        session.link.memory.trim()  # What the client keeps for reuse, once the server has said that it is free.
        return session.describe().memory_used_bytes

    assert eventually(lambda: used() < held + 2 * result.nbytes)
    settled = used()
    with pytest.raises(tensord.InvalidArgument):
        session.einsum("ij,jk,kl->ii", *arrays)
    session.link.keeper.flush()
    assert eventually(lambda: used() == settled)


@pytest.mark.parametrize(
    ("labels", "options", "subscripts"),
    [
        ([[-1, 1], [1, -2]], {}, "ik,kj->ij"),
        ([[-2, 1], [1, -1]], {}, "jk,ki->ij"),
        ([[1, 1], [-1, -2]], {}, "kk,ij->ij"),
        ([[1, 2], [2, 1]], {"order": [2, 1]}, "ij,ji->"),
        ([[-1, 1], [1, -2]], {"output": [-2, -1]}, "ik,kj->ji"),
    ],
)
def test_ncon_is_einsum(session, rng, labels, options, subscripts):
    arrays = [rng.random((4, 4)) for _ in labels]
    for operands in arrays, [session.upload(array) for array in arrays]:
        result = session.ncon(operands, labels, **options)
        assert_product_agrees(result.numpy(), subscripts, arrays)


def test_malformed_ncon_is_refused(session):
    for labels in [[1]], [[1, 2], [2, 3]], [[0, 1], [1, 2]]:
        operands = [np.ones((2,) * len(each)) for each in labels]
        with pytest.raises(tensord.InvalidArgument) as failure:
            session.ncon(operands, labels)
        assert failure.value.reason == "NCON_MALFORMED"
    with pytest.raises(TypeError, match="labels of operand 0 is .*list of ints"):
        session.ncon([np.ones(2)], [[1.5]])


def test_algorithm_is_for_one_operation(session):
    ones = [np.ones((2, 2))] * 3
    with pytest.raises(tensord.Unimplemented, match="several operations"):
        session.einsum("ij,jk,kl", *ones, algorithm="cpu.contract.reference")
    with pytest.raises(tensord.Unimplemented, match="one operation") as failure:
        with session.pipeline() as pipeline:
            pipeline.einsum("ij,jk,kl", *ones)
    assert failure.value.reason == "SUBSCRIPTS_UNSUPPORTED"


def test_specs_are_not_computed_with(session):
    spec = TensorSpec((2, 2), "f8")
    with pytest.raises(TypeError, match="has no elements"):
        session.einsum("ij,jk,kl", spec, spec, spec)


def test_bfloat16_goes_with_what_holds_it(session):
    half = np.ones(3, ml_dtypes.bfloat16)
    assert session.einsum("i,i,i->", half, half, np.ones(3, "f4")).dtype == np.float32
    assert session.einsum("i,i,i->", half, half, half).dtype == tensord.bfloat16
