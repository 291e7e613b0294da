"""Statements compute what NumPy does, in one call, and leave nothing behind."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
from bounds import assert_within_bound
from random_arrays import random_array
from random_products import RandomProduct, products
from tensord import RemoteTensor, TensorSpec
from test_einsum_programs import count_calls

DTYPES = [np.dtype(t) for t in ("f4", "f8", "c8", "c16", "i4", "i8")]


@pytest.fixture
def c(rng: np.random.Generator) -> np.ndarray:
    return rng.random((10, 20))


def tensor_count(session: tensord.Session) -> int:
    gc.collect()
    session.link.keeper.flush()
    return session.describe().tensor_count


def test_statements_agree_with_numpy(session, a, b, c):
    text = """
        T[i,j] := A[i,k]*B[k,j]         # a comment
        D[i,j] := 2*T[i,j] - C[j,i]/x; s := T[i,j]*C[j,i]
    """
    results = session.run(text, A=a, B=session.upload(b), C=c, x=4)
    assert list(results) == ["D", "s"]
    expected = 2 * (a @ b) - c.T / 4
    assert_within_bound(results["D"].numpy(), expected, 2 * (a @ b) + c.T, 34)
    expected = np.sum((a @ b) * c.T)
    assert_within_bound(results["s"].numpy(), expected, expected, 20 * 30 * 10)


@given(products(most_operands=3, stretched=False, hyper=False), st.data())
def test_products_agree_with_einsum(session, product: RandomProduct, data):
    dtype = data.draw(st.sampled_from(DTYPES))
    inputs, _, _ = product.subscripts.partition("->")
    # What occurs once must be in the output, and the other way round.
    once = [label for label in inputs if label.isalpha() and inputs.count(label) == 1]
    output = "".join(data.draw(st.permutations(once)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    arrays = [random_array(rng, shape, dtype) for shape in product.shapes]
    names = [f"A{i}" for i in range(len(arrays))]
    factors = [
        f"{name}[{','.join(labels)}]" for name, labels in zip(names, inputs.split(","))
    ]
    text = f"D[{','.join(output)}] := {'*'.join(factors)}"
    result = session.run(text, dict(zip(names, arrays)), inline=True)
    expected = session.einsum(f"{inputs}->{output}", *arrays, inline=True)
    assert result.dtype == expected.dtype == dtype
    magnitude = session.einsum(f"{inputs}->{output}", *map(np.abs, arrays), inline=True)
    terms = int(np.prod([max(array.size, 1) for array in arrays])) + len(arrays)
    if dtype.kind == "i":
        np.testing.assert_array_equal(result, expected)
    else:
        unit = np.finfo(dtype).eps
        bound = 8 * terms * unit * np.abs(magnitude)
        assert np.all(np.abs(result - expected) <= bound)


@given(st.lists(st.sampled_from("+-"), min_size=1, max_size=6), st.data())
def test_linear_combinations_agree_with_numpy(session, signs, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    arrays = {f"A{i}": rng.uniform(-1, 1, (4, 5)) for i in range(len(signs))}
    factors = {f"x{i}": data.draw(st.integers(-3, 3)) for i in range(len(signs))}
    terms = "".join(f" {sign} x{i}*A{i}[a,b]" for i, sign in enumerate(signs))
    transposed = data.draw(st.booleans())
    labels = "b,a" if transposed else "a,b"
    result = session.run(f"D[{labels}] := {terms}", arrays | factors)
    expected = sum(
        (1 if sign == "+" else -1) * factor * array
        for sign, factor, array in zip(signs, factors.values(), arrays.values())
    )
    magnitude = sum(abs(f) * abs(x) for f, x in zip(factors.values(), arrays.values()))
    if transposed:
        expected, magnitude = expected.T, magnitude.T
    assert_within_bound(result.numpy(), expected, magnitude, 2 * len(signs))


def test_operands_are_written(session, a, b):
    d, e = session.upload(np.ones((20, 10))), session.upload(np.ones((10, 20)))
    text = "D[i,j] += A[i,k]*B[k,j]; E[j,i] = 2*D[i,j]; D[i,j] -= x*E[j,i]"
    assert session.run(text, A=a, B=b, D=d, E=e, x=0.5) is None
    product = 1 + a @ b
    assert_within_bound(e.numpy(), 2 * product.T, 2 * product.T, 31)
    assert_within_bound(d.numpy(), 0 * product, 2 * product, 33)
    assert d.report.operation_count == e.report.operation_count >= 2
    view = e[2:4]
    session.run("V[i,j] = W[j,i]", V=view, W=np.ones((20, 2)))
    np.testing.assert_array_equal(e.numpy()[2:4], 1)


@pytest.mark.parametrize("assignment", ["=", "+=", "-="])
def test_arrays_are_not_written(session, a, assignment: str):
    for array in a, a.tolist():
        with pytest.raises(tensord.InvalidArgument, match="operand D .*come back") as e:
            session.run(f"D[i,k] {assignment} A[i,k]", A=a, D=array)
        assert e.value.reason == "OUTPUT_NOT_REMOTE"


def test_results_are_what_is_asked_for(session, a, b):
    text = "T[i,j] := A[i,k]*B[k,j]; s := T[i,j]*T[i,j]; r[i] := T[i,j]*u[j]"
    named = {"A": a, "B": b, "u": np.ones(10)}
    assert list(session.run(text, named)) == ["s", "r"]
    assert isinstance(session.run(text, named, outputs="T"), RemoteTensor)
    for asked in itertools.permutations(["s", "r", "T"]):
        assert list(session.run(text, named, outputs=asked)) == list(asked)
        inline = session.run(text, named, outputs=dict.fromkeys(asked), inline=True)
        assert list(inline) == list(asked)
    kept = session.run(text, named, outputs={"T": "kept", "s": None}, dtype="f4")
    assert kept["T"].name == "kept" and kept["T"].dtype == np.float32
    assert session.tensor("kept").shape == (20, 10)
    session.tensor("kept").delete()
    inline = session.run(text, named, inline=True)
    assert {name: type(x) for name, x in inline.items()} == dict.fromkeys(
        "sr", np.ndarray
    )
    with session.run("T[i,j] := A[i,k]*B[k,j]", A=a, B=b, name="product") as product:
        assert product.name == "product"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"outputs": ["x"]}, "OUTPUT_UNKNOWN"),
        ({"outputs": ["D"], "name": "n", "inline": True}, "OUTPUT_EXISTS"),
        ({"outputs": ["D", "E"], "name": "n"}, "OUTPUT_AMBIGUOUS"),
        ({"outputs": ["D", "E", "D"]}, "OUTPUT_REPEATED"),
        ({"outputs": []}, "OUTPUT_MISSING"),
        ({"outputs": {}}, "OUTPUT_MISSING"),
        ({"optimize": [(0, 1)]}, "PATH_MALFORMED"),
        ({"optimize": "fast"}, "PATH_METHOD_UNKNOWN"),
    ],
)
def test_wrong_options_are_refused(session, options, reason):
    text = "D[i] := A[i]; E[i] := 2*A[i]"
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.run(text, A=np.ones(3), **options)
    assert failure.value.reason == reason


def test_no_outputs_are_fine_where_there_are_none(session):
    target = session.upload(np.ones(3))
    for outputs in (), [], {}:
        text = "T[i] := A[i]; D[i] += T[i]"
        assert session.run(text, A=np.ones(3), D=target, outputs=outputs) is None
    np.testing.assert_array_equal(target.numpy(), 4)


@pytest.mark.parametrize("wrong", [None, object(), [{}], "x"])
def test_what_is_no_operand_is_named(session, wrong):
    like = {"A": np.ones(3), "y": np.ones(3)}
    program = session.program("D[i] := y[i]*A[i]", like)
    for refused in (
        lambda: session.run("D[i] := y[i]*A[i]", A=np.ones(3), y=wrong),
        lambda: session.explain.run("D[i] := y[i]*A[i]", A=np.ones(3), y=wrong),
        lambda: program(A=np.ones(3), y=wrong),
    ):
        with pytest.raises(ValueError, match="operand y is of type") as failure:
            refused()
        assert failure.value.reason == "ELEMENT_TYPE_UNKNOWN"
    with pytest.raises(ValueError, match="operand 1 is of type"):
        session.einsum("i,i->", np.ones(3), wrong)
    with pytest.raises(ValueError, match="operand 1 is of type"):
        session.ncon([np.ones(3), wrong], [[1], [1]])


def test_any_name_is_an_operand(session):
    names = {"timeout": np.ones(2), "å'": np.ones(2), "text": 3}
    result = session.run("D[i] := text*timeout[i] + å'[i]", names)
    np.testing.assert_array_equal(result.numpy(), 4)
    with pytest.raises(TypeError, match="A is given twice"):
        session.run("D[i] := A[i]", {"A": np.ones(2)}, A=np.ones(2))


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.int64(2), np.array(2)])
def test_numbers_do_not_count_for_the_dtype(session, number):
    result = session.run("D[i] := x*A[i]/x", A=np.ones(3, "f4"), x=number)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result.numpy(), 1)
    if isinstance(number, np.ndarray):
        result = session.run("D[i] := x[]*A[i]", A=np.ones(3, np.int64), x=number)
        np.testing.assert_array_equal(result.numpy(), 2)


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("D[i := A[i]", "SYNTAX_ERROR", (1, 5)),
        ("D[i] := A[i]\nE[i] := F[i]", "NAME_UNKNOWN", (2, 9)),
        ("D[i,j] := A[i]", "LABEL_UNMATCHED", (1, 5)),
        ("D[i] :=\n  A[i]*A[i]*A[i]", "LABEL_REPEATED", (2, 15)),
        ("D[i] := A[i,j]*x[j]", "MODE_COUNT_MISMATCH", (1, 9)),
        ("D[i] := x[i]", "NAME_IS_SCALAR", (1, 9)),
        ("D[i] := A[i]\nE[] := B[i]*A[i]", "MODE_EXTENT_MISMATCH", (2, 15)),
        ("D[i] := A[i]; G[i] += A[i]", "MODE_EXTENT_MISMATCH", (1, 15)),
    ],
)
def test_messages_point_at_their_place(session, text, reason, place):
    operands = {"A": np.ones(3), "B": np.ones(4), "G": session.create(5, "f8"), "x": 2}
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.run(text, {n: operand for n, operand in operands.items() if n in text})
    assert failure.value.reason == reason
    message, line, caret = str(failure.value).rsplit("\n", 2)
    row, column = place
    assert f"line {row}, column {column}" in message
    assert line == "    " + text.split("\n")[row - 1]
    assert caret == " " * (4 + column - 1) + "^"


def test_operands_that_no_statement_names_are_refused(session):
    for operands in {"A": np.ones(3), "alph": 2}, {"A": np.ones(3), "a": np.ones(3)}:
        for prepare in session.run, session.program:
            with pytest.raises(tensord.InvalidArgument, match="operand 'a") as failure:
                prepare("D[i] := (A[i] + A[i])/2", operands)
            assert failure.value.reason == "NAME_UNKNOWN"
    text = "D[i] := x*A[i]; D[i] += y*(A[i] - z*A[i])"
    session.run(text, A=np.ones(3), x=1, y=2, z=3)


@pytest.mark.parametrize("text", ["", "  \n", "# D[i] := A[i]"])
def test_programs_have_statements(session, text):
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.run(text)
    assert failure.value.reason == "PROGRAM_EMPTY"


def test_a_program_is_one_call_and_leaves_its_results_only(session, a, b, c):
    remote = [session.upload(x) for x in (a, b, c)]
    before = tensor_count(session)
    calls = count_calls(session)
    result = session.run(
        "D[i,j] := A[i,k]*B[k,l]*C[l,m]*A[m,n]*B[n,j]", dict(zip("ABC", remote))
    )
    assert calls() == ["ExecuteProgram"]
    assert tensor_count(session) == before + 1
    expected = a @ b @ c @ a @ b
    assert_within_bound(result.numpy(), expected, expected, 200)
    assert result.report.peak_bytes > 0
    with pytest.raises(tensord.NotFound):
        gone = session.upload(a)
        gone.delete()
        session.run("D[i,k] := A[i,k]", A=gone)
    del result
    assert tensor_count(session) == before


def test_a_refused_program_changes_nothing(session, a):
    d = session.upload(a)
    with pytest.raises(tensord.InvalidArgument):
        session.run("D[i,j] = 2*A[i,j]; E[i,j] := D[i,j]*F[j]", A=a, D=d)
    np.testing.assert_array_equal(d.numpy(), a)
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.run("D[i,j] = A[j,i]", D=d[:10, :10], A=d[:10, :10])
    assert failure.value.reason == "OUTPUT_OVERLAPS_INPUT"


def test_prepared_programs_agree_with_run(session, a, b, c):
    text = "D[i,j] := x*A[i,k]*B[k,l]*C[l,m]*A[m,n]*B[n,j]"
    program = session.program(text, A=TensorSpec((20, 30), "f8"), B=b, C=c, x=2)
    assert program.operands["A"] == TensorSpec((20, 30), "f8")
    assert program.operands["x"] == 2 and list(program.outputs) == ["D"]
    assert program.text == text and not program.is_product and program.written == ()
    remote = session.upload(b)
    calls = count_calls(session)
    for x in 2, 3, 4:
        result = program(A=a, B=remote, C=c, x=x)
        direct = session.run(text, A=a, B=b, C=c, x=x)
        np.testing.assert_array_equal(result.numpy(), direct.numpy())
        assert result.report.program_cache_hit
    assert calls() == ["ExecuteProgram"] * 6
    np.testing.assert_array_equal(
        program(a, b, c, inline=True), program(A=a, B=b, C=c, x=2, inline=True)
    )
    described = program.describe()
    assert described.execution_count == 5 and described.device == session.device
    assert described.explanation.products[0].method == "optimal"
    program.delete()
    with pytest.raises(tensord.NotFound) as failure:
        program(a, b, c)
    assert failure.value.reason == "PROGRAM_NOT_FOUND"


def test_results_come_in_the_order_that_was_asked_for(session):
    text, a = "B[i] := 2*A[i]; C[i] := 3*A[i]; D[i] := B[i] + C[i]", np.ones(3)
    for wanted in (["C", "D"], ["D", "B", "C"]):
        assert list(session.run(text, A=a, outputs=wanted)) == wanted
        program = session.program(text, A=a, outputs=wanted)
        assert list(program.outputs) == wanted and list(program(A=a)) == wanted


def test_prepared_products_take_operands_in_their_order(session, a, b, c):
    operands = [session.upload(x) for x in (a, b, c)]
    expected = a @ b @ c
    with session.program("ij,jk,kl->il", *operands, optimize="greedy") as program:
        assert program.is_product
        for arguments in operands, [a, b, c], [a, operands[1], c]:
            result = program(*arguments)
            assert_within_bound(result.numpy(), expected, expected, 60)
        with pytest.raises(tensord.InvalidArgument, match="operand 2") as failure:
            program(a, b)
        assert failure.value.reason == "INPUT_MISSING"
        with pytest.raises(tensord.InvalidArgument) as failure:
            program(a, b, c, c)
        assert failure.value.reason == "OPERAND_COUNT_MISMATCH"
    with session.program([[-1, 1], [1, -2]], a, b) as program:
        product = a @ b
        assert_within_bound(program(a, b).numpy(), product, product, 30)
    with session.program("ij,jk->ik", a, b) as program:
        assert isinstance(program, tensord.Program)
    assert isinstance(session.plan.einsum("ij,jk->ik", a, b), tensord.Plan)
    assert isinstance(session.plan.einsum("ij,jk,kl", a, b, c), tensord.Program)


def test_programs_are_found_by_name(session, a, b):
    text = "D[i,j] += A[i,k]*B[k,j]"
    like = {"A": a, "B": b, "D": TensorSpec((20, 10), "f8")}
    made = session.program(text, like, name="add")
    assert made.written == ("D",) and made.outputs == {}
    assert "add" in [program.name for program in session.programs()]
    d = session.create((20, 10), "f8")
    d[...] = 0
    found = session.get_program("add")
    assert found(A=a, B=b, D=d) is None
    assert_within_bound(d.numpy(), a @ b, a @ b, 30)
    assert d.report.program_cache_hit
    with pytest.raises(tensord.InvalidArgument, match="operand D") as failure:
        found(A=a, B=b, D=np.zeros((20, 10)))
    assert failure.value.reason == "OUTPUT_NOT_REMOTE"
    with pytest.raises(tensord.AlreadyExists):
        session.program(text, like, name="add")
    made.delete()
    for name in "add", "sessions/other/programs/add":
        with pytest.raises(tensord.NotFound):
            session.get_program(name)


def test_results_of_prepared_programs_get_names(session, a, b):
    text = "D[i,j] := A[i,k]*B[k,j]; s := D[i,j]*D[i,j]"
    program = session.program(text, A=a, B=b, outputs=["D", "s"])
    results = program(a, b, outputs={"D": "first", "s": None})
    assert results["D"].name == "first" and results["s"].name != "first"
    results["D"].delete()
    for asked in ["s", "D"], ["D", "s"]:
        assert list(program(a, b, outputs=asked)) == asked
    with pytest.raises(tensord.InvalidArgument, match="'D' twice"):
        program(a, b, outputs=["D", "D"])
    arrays = program(A=a, B=b, inline=True)
    direct = session.run(text, A=a, B=b, outputs="D")
    np.testing.assert_array_equal(arrays["D"], direct.numpy())


@pytest.mark.parametrize(
    ("arguments", "named", "reason"),
    [
        ((), {"A": np.ones((2, 2)), "B": np.ones((2, 3))}, "PROGRAM_OPERAND_DIFFERS"),
        ((), {"A": np.ones((2, 3), "c8"), "B": np.ones((3, 2))}, "PROGRAM_OPERAND_DIFFERS"),
        ((), {"A": np.ones((2, 3))}, "INPUT_MISSING"),
        ((), {"F": 1}, "NAME_UNKNOWN"),
        ((1, 2, 3, 4), {}, "OPERAND_COUNT_MISMATCH"),
        ((), {"A": np.ones((2, 3)), "B": np.ones((3, 2)), "x": [1]}, "PROGRAM_OPERAND_DIFFERS"),
    ],
)  # fmt: skip
def test_operands_that_differ_are_refused(session, arguments, named, reason):
    text = "D[i,j] := x*A[i,k]*B[k,j]"
    with session.program(text, A=np.ones((2, 3)), B=np.ones((3, 2)), x=1) as program:
        with pytest.raises(tensord.InvalidArgument) as failure:
            program(*arguments, **named)
        assert failure.value.reason == reason
        transposed = session.upload(np.ones((3, 2))).T
        with pytest.raises(tensord.InvalidArgument) as failure:
            program(A=transposed, B=np.ones((3, 2)))
        assert failure.value.reason == "PROGRAM_OPERAND_DIFFERS"


def test_programs_leave_with_their_last_reference(session, a):
    program = session.program("D[i,k] := 2*A[i,k]", A=a)
    name = program.name
    assert name in [each.name for each in session.programs()]
    del program
    gc.collect()
    session.link.keeper.flush()
    assert name not in [each.name for each in session.programs()]


@pytest.mark.parametrize("a_type", ["f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("b_type", ["f2", "f4", "f8", "c8", "c16"])
def test_resident_tensors_of_different_types_go_together(session, a_type, b_type):
    # Small integers: every sum and product is exact in every type.
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (4, 5)).astype(a_type)
    b = rng.integers(-3, 4, (5, 3)).astype(b_type)
    given = {"A": session.upload(a), "B": session.upload(b)}
    for text, wanted in (
        ("R[i,k] := A[i,j]*B[j,k]", a @ b),
        ("R[i,k] := 2im*A[i,j]*B[j,k]", 2j * (a @ b)),
        ("R[i,j,k] := A[i,j]*B[j,k]", a[:, :, None] * b),
    ):
        got = session.run(text, given)
        if "im" not in text:
            assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got.numpy(), wanted)
