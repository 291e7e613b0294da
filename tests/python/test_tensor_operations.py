"""Statements of TensorOperations.jl's README and tests have the values they have there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tensord
from bounds import assert_within_bound
from tensor_operations import (
    CASES,
    MATRICES,
    README,
    SCALARS,
    WRITTEN,
    Arrays,
    Product,
)
from tensord._names import words


def check(actual: Any, products: list[Product], arrays: Arrays) -> None:
    expected = sum(product.value(arrays) for product in products)
    magnitude = sum(product.magnitude(arrays) for product in products)
    terms = sum(array.size for array in arrays.values()) * len(products)
    actual = actual if isinstance(actual, np.ndarray) else actual.numpy()
    assert actual.dtype == np.asarray(expected).dtype
    assert_within_bound(actual, np.asarray(expected), np.asarray(magnitude), terms)


def arrays_of(shapes: Mapping[str, tuple[int, ...]], dtype: str) -> Arrays:
    """Numbers without a sign, so that divisors are far from 0."""
    rng = np.random.default_rng(5)
    arrays = {}
    for name, shape in shapes.items():
        array = rng.uniform(0.2, 1, shape)
        if dtype == "c16":
            array = array + 1j * rng.uniform(0.2, 1, shape)
        arrays[name] = array
    return arrays


def named_in(text: str, arrays: Arrays) -> dict[str, Any]:
    """What a program has operands for: of the arrays, and of the scalars."""
    names = {word for word, is_name in words(text) if is_name}
    return {name: x for name, x in {**arrays, **SCALARS}.items() if name in names}


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize(
    ("text", "shapes", "products"), CASES, ids=[text for text, *_ in CASES]
)
def test_new_tensors_are_numpys(session, text, shapes, products, dtype):
    arrays = arrays_of(shapes, dtype)
    result = session.run(text, named_in(text, arrays), inline=True)
    check(result, products, arrays)


@pytest.mark.parametrize("is_view", [False, True], ids=["whole", "view"])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize(
    ("text", "shapes", "products"), WRITTEN, ids=[text for text, *_ in WRITTEN]
)
def test_tensors_that_there_are_are_written(
    session, text, shapes, products, dtype, is_view
):
    arrays = arrays_of(shapes, dtype)
    target = arrays["D"]
    if is_view:
        # Every third element of a larger one.
        whole = session.upload(np.zeros([1 + 3 * n for n in target.shape], dtype))
        tensor = whole[tuple(slice(1, None, 3) for _ in target.shape)]
        tensor.write(target)
    else:
        tensor = session.upload(target)
    assert session.run(text, {**named_in(text, arrays), "D": tensor}) is None
    check(tensor, products, arrays)


@pytest.mark.parametrize(
    "costs",
    [
        "(a => χ, b => χ^2, c => 2 * χ, d => χ, e => 5, f => 2 * χ)",
        "(a = χ, b = χ^2, c = 2 * χ, d = χ, e = 5, f = 2 * χ)",
        "(a,b,c,e)",
        "!(a,b,c,e)",
        "(a=>χ,b=>χ^2,c=>2*χ,e=>5)",
    ],
)
def test_costs_change_no_values(session, costs):
    text, shapes, products = README[6]
    arrays = arrays_of(shapes, "f8")
    check(session.run(text, arrays, costs=costs, inline=True), products, arrays)


def test_types_go_together(session):
    arrays = dict(arrays_of(MATRICES, "f8"))
    arrays["mat1"] = arrays["mat1"] * (1 + 1j)
    arrays["mat4"] = arrays["mat4"].astype("f4")
    arrays["vec"] = np.array([1, 2])
    text = "res[a,b] := tensorscalar(mat1[x,y]*mat2[y,x])*mat3[b,a] + mat4[a,b]"
    result = session.run(text, named_in(text, arrays), inline=True)
    check(
        result,
        [Product("xy,yx,ba->ab", "mat1 mat2 mat3"), Product("ab->ab", "mat4")],
        arrays,
    )
    text = "res[a] := mat2[a,b]*vec[b]/(vec[b]*vec[b])"
    result = session.run(text, mat2=arrays["mat2"], vec=arrays["vec"], inline=True)
    check(result, [Product("ab,b->a", "mat2 vec", divisor=lambda t: 5)], arrays)
    # Integers are divided as NumPy's are; numbers do not count.
    result = session.run("s = v[b]*v[b]; D[a] := v[a]/s", v=np.array([1, 2]))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result.numpy(), [1 / 5, 2 / 5])
    result = session.run("D[a] := v[a]*3/(2 + x)", v=np.ones(2, "f4"), x=2)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result.numpy(), np.float32(3 / 4))


def test_outputs_without_brackets_are_outputs(session):
    arrays = arrays_of({"A": (3, 3), "v": (4,)}, "f8")
    text = "s = A[a,a]; D[a] := s*v[a]; t = s*s"
    results = session.run(text, arrays)
    assert list(results) == ["D", "t"]
    results = session.run(text, arrays, outputs=["s", "t"], inline=True)
    check(results["s"], [Product("aa->", "A")], arrays)
    check(results["t"], [Product("aa,bb->", "A A")], arrays)
    with session.program(text, arrays) as program:
        assert list(program.outputs) == ["D", "t"]
        check(program(arrays)["t"], [Product("aa,bb->", "A A")], arrays)
    # What the caller gives is written instead.
    target = session.upload(np.array(7.0))
    results = session.run(text, {**arrays, "t": target}, inline=True)
    check(results, [Product("aa,b->b", "A v")], arrays)
    check(target, [Product("aa,bb->", "A A")], arrays)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("C[1,2,3,4] := A[1,2,3]", "LABEL_UNMATCHED"),
        ("C[1,2,3,4] := A[1,2,2,4]", "LABEL_UNMATCHED"),
        ("C[1,2,3,4] := A[1,2,3,4] + B[1,2,3,4]", "MODE_EXTENT_MISMATCH"),
        ("A[a,b,c,d] * B[c,f,b,g]", "SYNTAX_ERROR"),
        ("C[a,b,c,d,e,f,g,i] := A[a,b,c,d]*B[e,f,g,h]", "LABEL_UNMATCHED"),
        ("C[3,1,4,2] = A[1,2,3]", "LABEL_UNMATCHED"),
        ("C[3,1,4,2] = A[3,1,4,2]", "MODE_EXTENT_MISMATCH"),
        ("C[1,1,2,3] = A[1,2,3,4]", "LABEL_REPEATED"),
        ("C[3,1,4,2] = 0.5*C[3,1,4,2] + 1.2*A[1,2,3]", "LABEL_UNMATCHED"),
        ("C[1,1,2,3] = 0.5*C[1,1,2,3] + 1.2*A[1,2,3,4]", "LABEL_REPEATED"),
        ("C[c,b] += A[a,b,a,a]", "LABEL_REPEATED"),
        ("C[d,e] += A[a,b,c,d]*B[c,e,b]", "LABEL_UNMATCHED"),
        ("a[-1,-2,-3; -4,-5] := A[-2,1]*B[1,-3; 1,-5]*C[-1,1; -4]", "LABEL_REPEATED"),
        ("a[-1,-2] := A[-1,1; 1,-2]*B[1,1]", "LABEL_REPEATED"),
        ("a[-1,-2] := A[-1,1]*B[1,-2]*C[1,1,-3,-3]", "LABEL_REPEATED"),
        ("a[-1,-2] := A[-1,1]*B[1,-2]*(C[1,1])", "LABEL_REUSED"),
        ("a[-1,-2] := (A[-1,1]*B[1,-3])*(C[-3,1]*A[1,-2])", "LABEL_REUSED"),
        ("a[-1,-2] := A[-1,1]*B[1,-3]*C[-3,1]*A[1,-2]", "LABEL_REPEATED"),
        ("a[-1] := A[1,1,1]", "LABEL_REPEATED"),
        ("a[-1,-2] := A[-1,-2] + B[-1,1]", "LABEL_UNMATCHED"),
        ("a[x,y] := A[x,y]/tensorscalar(C[z,z,z])", "LABEL_REPEATED"),
        ("a[x,y] := tensorscalar(C[z,z,z]) \\ A[x,y]", "LABEL_REPEATED"),
        ("a[-1] := (A[-1,1,1]/2)*C[1,1]", "LABEL_REUSED"),
        ("a[-1] := (2 \\ A[-1,1,1])*C[1,1]", "LABEL_REUSED"),
        ("a[x,y] := A[x,z]*tensorscalar(C[z,z,z])*B[z,y]", "LABEL_REPEATED"),
        ("a[x,y] := A[x,y]*tensorscalar(C[z,z] + B[z,w])", "LABELS_DIFFER"),
        ("alpha = tensorscalar(C[z,z,z])", "LABEL_REPEATED"),
        ("a[x] := 1/A[x]", "MODE_COUNT_MISMATCH"),
        ("a[x] := A[x y; z 1] \\ B[x]", "LABEL_UNMATCHED"),
        ("a := A[1 2 3; 4 5 6; 7 8 9]", "SYNTAX_ERROR"),
    ],
)
def test_what_is_refused_there_is_refused_here(session, text, reason):
    operands = {
        "A": session.create((3, 5, 4, 6), "f8"),
        "B": session.create((5, 6, 3, 4), "f8"),
        "C": session.create((2, 2, 2, 2), "f8"),
    }
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.run(text, named_in(text, operands))
    assert failure.value.reason == reason
