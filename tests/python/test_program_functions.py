"""Functions of elements in statements compute what NumPy does, type by type."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord

FLOATS = ["f4", "f8", "c8", "c16"]
REALS = ["?", "i1", "u1", "i4", "i8", "f2", "f4", "f8"]

# By name: what NumPy calls it, and for which types it is tried.
UNARY = {
    "abs": (np.abs, REALS + FLOATS),
    "acos": (np.arccos, FLOATS),
    "acosh": (np.arccosh, FLOATS),
    "asin": (np.arcsin, FLOATS),
    "asinh": (np.arcsinh, FLOATS),
    "atan": (np.arctan, FLOATS),
    "atanh": (np.arctanh, FLOATS),
    "ceil": (np.ceil, ["f2", "f4", "f8", "i4"]),
    "cos": (np.cos, FLOATS),
    "cosh": (np.cosh, FLOATS),
    "exp": (np.exp, FLOATS + ["i4", "u1"]),
    "floor": (np.floor, ["f2", "f4", "f8", "i4"]),
    "imag": (np.imag, REALS + FLOATS),
    "log": (np.log, FLOATS),
    "real": (np.real, REALS + FLOATS),
    "sin": (np.sin, FLOATS),
    "sinh": (np.sinh, FLOATS),
    "sqrt": (np.sqrt, FLOATS + ["i4"]),
    "tan": (np.tan, FLOATS),
    "tanh": (np.tanh, FLOATS),
}
# NumPy has none of these, but words for them.
NAMED = {
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
}
COMPARISONS = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def numbers(dtype: str, shape: tuple[int, ...] = (3, 4), seed: int = 1) -> np.ndarray:
    """Between -1 and 1, or small integers."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind in "iub":
        least = -3 if kind == "i" else 0
        return rng.integers(least, 2 if kind == "b" else 4, shape).astype(dtype)
    values = rng.uniform(-1, 1, shape)
    if kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(dtype)


def wide(x: np.ndarray) -> np.ndarray:
    """In the highest precision that NumPy has."""
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def assert_rounded(got: np.ndarray, exact: np.ndarray, most_ulps: float = 8) -> None:
    """Asserts that `got` is `exact`, but for a few roundings of their magnitude."""
    assert got.shape == exact.shape
    if got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, exact)
        return
    assert np.array_equal(np.isnan(got), np.isnan(exact))
    bound = most_ulps * np.finfo(got.dtype).eps * np.maximum(np.abs(exact), 2**-20)
    assert np.all((np.abs(got - exact) <= bound) | np.isnan(exact))


def only(session: tensord.Session, text: str, **operands: Any) -> np.ndarray:
    return np.asarray(session.run(text, operands, inline=True))


@pytest.mark.parametrize("name", UNARY)
def test_functions_are_numpys(session, name: str):
    function, dtypes = UNARY[name]
    for dtype in dtypes:
        x = numbers(dtype)
        if name == "acosh" and x.dtype.kind == "f":
            x = x + x.dtype.type(2)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wanted = function(x) if x.dtype.kind in "fciu" else function(x.astype("i1"))
            exact = function(wide(x)) if wanted.dtype.kind in "fc" else wanted
        got = only(session, f"D[j,i] := {name}(A[i,j])", A=x)
        if name in ("ceil", "floor") and x.dtype.kind == "i":
            assert got.dtype == x.dtype  # As the array API has it.
        elif x.dtype.kind in "iu" and wanted.dtype.kind == "f":
            assert got.dtype == "f8"  # NumPy's are shorter for short integers.
        elif x.dtype.kind != "b":
            assert got.dtype == wanted.dtype
        assert_rounded(got, exact.T, 16)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_networks_are_what_they_say(session, name: str, dtype: str):
    x = numbers(dtype)
    got = only(session, f"D[i,j] := {name}(A[i,j])", A=x)
    assert got.dtype == x.dtype
    assert_rounded(got, NAMED[name](wide(x)), 16)


@pytest.mark.parametrize("symbol", COMPARISONS)
def test_comparisons_give_bools(session, symbol: str):
    for left, right in [("f8", "f8"), ("i1", "f4"), ("i8", "i4"), ("?", "u1")]:
        x, y = numbers(left), numbers(right, (4,), seed=2)
        y[0] = x[1, 0]
        got = only(session, f"D[i,j] := A[i,j] {symbol} v[j]", A=x, v=y)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, COMPARISONS[symbol](x, y))
    if symbol in ("==", "!="):
        z = numbers("c8")
        w = np.where(numbers("?") > 0, z, 0)
        got = only(session, f"D[i,j] := A[i,j] {symbol} B[i,j]", A=z, B=w)
        np.testing.assert_array_equal(got, COMPARISONS[symbol](z, w))


def test_integers_are_widened_for_the_numbers_that_multiply_them(session):
    m, a = np.array([3, -7, 9], "i4"), np.array([1, -2, 100], "i1")
    b, v = np.array([True, False, True]), np.array([1.0, 2, 4])
    wide, ones = a.astype("i8"), b.astype("i8")
    for text, wanted in {
        "max(M[i]/2, 1)": np.maximum(m / 2, 1),
        "0.5*M[i] < 2": 0.5 * m < 2,
        "where(M[i] > 0, M[i]/4, 0)": np.where(m > 0, m / 4, 0),
        "(0.5*M[i])^2": (0.5 * m) ** 2,
        "floor(M[i]/2)": np.floor(m / 2),
        "M[i]*M[i]/4": m * m / 4,
        "300*M[i] + 1": 300 * m + 1,
        "max(300*A[i], 0)": np.maximum(300 * wide, 0),
        "min(0.5*A[i], 1000)": np.minimum(0.5 * a, 1000),
        "A[i] + 300": wide + 300,
        "A[i] + 0.5": a + 0.5,
        "A[i]/0.5": a / 0.5,
        "(A[i]/0.5)*M[i] - (A[i]/1)": a / 0.5 * m - a,
        "max(A[i], -128)": a,
        "2^-M[i]": 2.0**-m,
        "b[i] + 1": ones + 1,
        "1 - (v[i] > 1)": 1 - (v > 1).astype("i8"),
        "(1 - b[i])*v[i]": (1 - ones) * v,
        "b[i]^1": ones,
    }.items():
        used = {k: x for k, x in dict(M=m, A=a, b=b, v=v).items() if f"{k}[" in text}
        got = only(session, f"D[i] := {text}", **used)
        assert got.dtype == wanted.dtype, text
        np.testing.assert_array_equal(got, wanted, text)
    # Into integers, fractions are lost.
    d = session.upload(np.ones(3, "i4"))
    session.run("D[i] = M[i]/2; D[i] += 0.5*M[i]", D=d, M=m)
    np.testing.assert_array_equal(d.numpy(), [2, -6, 8])


def test_numbers_beyond_a_type_are_infinite(session):
    f, h = numbers("f4"), numbers("f2")
    assert np.all(only(session, "D[i,j] := A[i,j] < 1e39", A=f))
    np.testing.assert_array_equal(only(session, "D[i,j] := max(A[i,j], -1e39)", A=f), f)
    np.testing.assert_array_equal(only(session, "D[i,j] := min(A[i,j], 1e6)", A=h), h)


def test_divisors_sum_what_the_output_has_not(session):
    c, v = numbers("f8", (4, 4)) + 2, numbers("f8", (4,), seed=2)
    diagonal, norms = np.diagonal(c), np.sqrt((c * c).sum(axis=0))
    for text, wanted in {
        "v[i]/C[i,i]": v / diagonal,
        "1/C[i,i]": 1 / diagonal,
        "v[i]/C[k,k]": v / np.trace(c),
        "v[i]/sqrt(C[k,i]*C[k,i])": v / norms,
        "v[i]/max(v[i]*v[i], 0.5)": v / np.maximum(v * v, 0.5),
        "((v[i]*v[i])*v[i])/C[i,i]": v**3 / diagonal,
        # In parentheses all that is there twice, as TensorOperations.jl does.
        "v[i]/(C[i,i])": v / np.trace(c),
        "v[i]/(v[i]*v[i])": v / (v @ v),
    }.items():
        used = {k: x for k, x in dict(C=c, v=v).items() if f"{k}[" in text}
        got = only(session, f"D[i] := {text}", **used)
        np.testing.assert_allclose(got, wanted, rtol=16 * np.finfo("f8").eps)


def test_tensors_are_filled(session):
    d = session.upload(numbers("f4"))
    session.run("D[i,j] = 2; D[i,j] += x - 0.5; D[i,j] -= t[]/4", D=d, x=3, t=np.ones(()))
    np.testing.assert_array_equal(d.numpy(), np.full((3, 4), 4.25, "f4"))
    for dtype, number in (("f4", 0), ("i1", 5), ("i4", 0.5), ("c8", 2), ("?", 1)):
        d = session.upload(numbers(dtype))
        session.run("D[i,j] = x", D=d, x=number)
        np.testing.assert_array_equal(d.numpy(), np.full((3, 4), number).astype(dtype))
        assert d.report.operation_count == (2 if number == 0.5 else 1)


@pytest.mark.parametrize("name", [*UNARY, *NAMED])
def test_functions_of_numbers_are_those_of_tensors(session, name: str):
    xs: list[complex] = [0.5, -0.25, 2.0, -3.0]
    if name in UNARY and name not in ("ceil", "floor"):
        xs += [0.5 + 1j, -2 - 0.5j]
    for x in xs:
        number = only(session, f"s = {name}(x)*o[]", x=x, o=np.ones((), "c16"))
        dtype = "c16" if isinstance(x, complex) else "f8"
        tensor = only(session, f"s = {name}(t[])*o[]", t=np.array(x, dtype), o=np.ones((), "c16"))
        assert np.isnan(number) == np.isnan(tensor)
        assert np.isnan(number) or abs(number - tensor) <= 16 * 2**-52 * abs(tensor)


@pytest.mark.parametrize("x", [300, -1, 0.5, 2])
def test_numbers_have_their_value_beside_integers(session, x: float):
    a = numbers("i1")
    for name, function in (("max", np.maximum), ("min", np.minimum)):
        got = only(session, f"D[i,j] := {name}(A[i,j], x)", A=a, x=x)
        np.testing.assert_array_equal(got, function(a.astype("f8"), x))
    np.testing.assert_array_equal(only(session, "D[i,j] := A[i,j] < x", A=a, x=x), a < x)


def test_powers_are_numpys(session):
    for dtype in FLOATS:
        x = numbers(dtype)
        x += x.dtype.type(2)
        for exponent in (2, -1, 0.5, -1.5):
            got = only(session, "D[i,j] := A[i,j]^x", A=x, x=exponent)
            assert got.dtype == x.dtype
            assert_rounded(got, wide(x) ** np.longdouble(exponent), 32)
        got = only(session, "D[i,j] := A[i,j]**B[j,i]", A=x, B=numbers(dtype).T)
        assert_rounded(got, wide(x) ** wide(numbers(dtype)), 32)
    i = numbers("i4")
    np.testing.assert_array_equal(only(session, "D[i,j] := A[i,j]^3", A=i), i**3)
    i = i + 4
    np.testing.assert_array_equal(only(session, "D[i,j] := A[i,j]^-1", A=i), 1 / i)
    assert only(session, "D[i,j] := A[i,j]^2", A=numbers("?")).dtype == "i8"


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_quotients_are_numpys_to_the_bit(session, dtype: str):
    x, y = numbers(dtype, (30, 40)), numbers(dtype, (40,), seed=2)
    y[y == 0] = 3
    text = "D[i,j] := A[i,j]/v[j]"
    got, wanted = only(session, text, A=x, v=y), x / y
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    got = only(session, "D[j] := 7/v[j]", v=y)
    np.testing.assert_array_equal(got, np.array(7, y.dtype) / y)


def test_small_divisors_give_no_infinities(session):
    x, y = np.full((2, 3), 3e-310), np.full(3, 1.5e-310)
    got = only(session, "D[i,j] := A[i,j]/v[j]", A=x, v=y)
    np.testing.assert_array_equal(got, x / y)


def test_choices_are_numpys(session):
    a, b, v = numbers("f8"), numbers("f4", seed=2), numbers("f8", (4,), seed=3)
    for mask in (a > 0, numbers("i4"), numbers("f8") * (a > 0), numbers("c8") * (a > 0)):
        got = only(session, "D[i,j] := where(M[i,j], A[i,j], B[i,j])", M=mask, A=a, B=b)
        np.testing.assert_array_equal(got, np.where(mask, a, b))
    got = only(session, "D[i,j] := where(v[j] > 0, B[i,j], 0)", v=v, B=b)
    assert got.dtype == "f4"
    np.testing.assert_array_equal(got, np.where(v > 0, b, np.float32(0)))
    # What is not chosen does not matter.
    a[0, 0] = np.nan
    got = only(session, "D[i,j] := where(A[i,j] == A[i,j], A[i,j], 0)", A=a)
    np.testing.assert_array_equal(got, np.nan_to_num(a))


def test_nan_is_the_larger_and_the_smaller(session):
    x, y = np.array([np.nan, 1, 2]), np.array([1, np.nan, 3])
    for name, function in (("max", np.maximum), ("min", np.minimum)):
        got = only(session, f"D[i] := {name}(A[i], B[i])", A=x, B=y)
        np.testing.assert_array_equal(got, function(x, y))
        got = only(session, f"D[i] := {name}(A[i], x)", A=x, x=float("nan"))
        assert np.all(np.isnan(got))


def test_norms_and_normalisations(session):
    z = numbers("c16", (6, 7))
    norm = only(session, "n = sqrt(real(A[i,j]*conj(A[i,j])))", A=z)
    assert norm.dtype == "f8"
    assert_rounded(norm, np.linalg.norm(z), 50)
    text = "D[i,j] := A[i,j]/sqrt(real(A[k,l]*conj(A[k,l])))"
    assert_rounded(only(session, text, A=z), z / np.linalg.norm(z), 60)
    text = "E[i,j] := exp(A[i,j]); Z[i] := E[i,j]*o[j]; P[i,j] := E[i,j]/Z[i]"
    a = numbers("f8", (6, 7))
    got = only(session, text, A=a, o=np.ones(7))
    assert_rounded(got, np.exp(a) / np.exp(a).sum(axis=1, keepdims=True), 50)


def test_tensors_are_changed_in_place(session):
    a = numbers("f8")
    d = session.upload(a)
    session.run("D[i,j] = max(D[i,j], 0); D[i,j] += D[i,j] > 0.5; D[i,j] = D[i,j] - 1", D=d)
    wanted = np.maximum(a, 0)
    wanted += wanted > 0.5
    np.testing.assert_array_equal(d.numpy(), wanted - 1)
    # Into fewer bits, and into what is there.
    half = session.upload(np.zeros((3, 4), "f4"))
    session.run("H[i,j] = sqrt(abs(D[i,j]))", H=half, D=d)
    np.testing.assert_array_equal(half.numpy(), np.sqrt(np.abs(d.numpy())).astype("f4"))


def test_scalars_of_prepared_programs_may_change(session):
    a = numbers("f8")
    program = session.program("D[i,j] := max(A[i,j], sqrt(x))/exp(y)", A=a, x=4, y=0)
    for x, y in ((4, 0), (0.01, 0), (0.01, 1)):
        got = program(A=a, x=x, y=y, inline=True)
        assert_rounded(got, np.maximum(a, np.sqrt(x)) / np.exp(y), 4)


class Expressions:
    """Statements over three matrices and what NumPy says that they are.

    Of operations that round to the nearest number, so that both give the same bits.
    """

    def __init__(self, draw: Any, dtype: str) -> None:
        self._draw = draw
        self.operands = {
            "A": numbers(dtype, (5, 6), seed=1),
            "B": numbers(dtype, (5, 6), seed=2),
            "v": numbers(dtype, (6,), seed=3),
        }

    def make(self, depth: int) -> tuple[str, np.ndarray]:
        if depth == 0:
            name = self._draw(st.sampled_from("ABv"))
            return f"{name}[{'j' if name == 'v' else 'i,j'}]", self.operands[name]
        kind = self._draw(
            st.sampled_from(["abs", "floor", "max", "min", "+", "-", "/", "where", "sqrt"])
        )
        x, a = self.make(depth - 1)
        if kind in ("abs", "floor"):
            return f"{kind}({x})", getattr(np, kind)(a)
        if kind == "sqrt":
            return f"sqrt(abs({x}))", np.sqrt(np.abs(a))
        y, b = self.make(self._draw(st.integers(0, depth - 1)))
        if kind in ("max", "min"):
            function = np.maximum if kind == "max" else np.minimum
            return f"{kind}({x},{y})", function(a, b)
        if kind in "+-":
            if a.shape != b.shape:  # Terms have the same labels.
                return f"max({x}, 2)", np.maximum(a, a.dtype.type(2))
            return f"abs({x} {kind} ({y}))", np.abs(a + b if kind == "+" else a - b)
        if kind == "/":
            divisor = np.maximum(np.abs(b), b.dtype.type(0.25))
            return f"abs(({x})/max(abs({y}), 0.25))", np.abs(a / divisor)
        symbol = self._draw(st.sampled_from(list(COMPARISONS)))
        return f"where({x} {symbol} {y}, {x}, 0.5)", np.where(
            COMPARISONS[symbol](a, b), a, a.dtype.type(0.5)
        )


@given(st.data(), st.sampled_from(["f4", "f8"]), st.integers(1, 4))
def test_nested_functions_are_numpys_to_the_bit(session, data, dtype: str, depth: int):
    expressions = Expressions(data.draw, dtype)
    text, wanted = expressions.make(depth)
    used = {k: v for k, v in expressions.operands.items() if f"{k}[" in text}
    labels = "i,j" if wanted.ndim == 2 else "j"
    got = only(session, f"D[{labels}] := {text}", **used)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("text", "reason", "message"),
    [
        ("D[i,j] := max(Z[i,j], 0)", "OPERATOR_NEEDS_ORDER", "column 11: operator MAX"),
        ("D[i,j] := Z[i,j] < 1", "OPERATOR_NEEDS_ORDER", "column 11: operator LESS"),
        ("D[i,j] := 1 + relu(Z[i,j])", "OPERATOR_NEEDS_ORDER", "column 15: .*relu"),
        ("D[i,j] := A[i,j]/(1 - cos(0))", "DIVISION_BY_ZERO", "column 18: the divisor"),
        ("D[i,j] := sqr(A[i,j])", "SYNTAX_ERROR", "got 'sqr' .*nearest is 'sqrt'"),
        ("D[i,j] := where(A[i,j], 1)", "SYNTAX_ERROR", "behind argument 2 of 3 of where"),
        ("D[i,j] := exp(A[i,j] + v[k])*v[k]", "LABELS_DIFFER", "label 'k' of this term"),
        ("D[i,j] := max(A[i,j], v[i])", "MODE_EXTENT_MISMATCH", "label 'i' has extent 4"),
        ("D[i,j] := A[i,j]^Z[i]", "MODE_COUNT_MISMATCH", r"'Z\[i\]' has 1 labels"),
        ("D[i,j] := exp(s)*A[i,j]", "NAME_UNKNOWN", "name 's' stands for nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(session, text: str, reason: str, message: str):
    operands = {"A": numbers("f8"), "Z": numbers("c16"), "v": numbers("f8", (4,))}
    used = {k: x for k, x in operands.items() if f"{k}[" in text}
    with pytest.raises(tensord.InvalidArgument, match=message) as refusal:
        session.run(text, used)
    assert refusal.value.reason == reason
