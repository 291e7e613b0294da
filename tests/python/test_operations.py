"""Typed operations compute what they say."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

import tensord
from bounds import assert_within_bound, widened
from random_arrays import random_array
from tensord import _dtypes as dtypes
from tensord._operators import UNARY_OPERATORS

FLOATS = [np.float32, np.float64, np.complex64, np.complex128]
HALVES = [np.float16, ml_dtypes.bfloat16]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8]

BINARY = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def soft_plus(x):
    return np.log1p(np.exp(x))


UNARY = {
    "identity": lambda x: x,
    "sqrt": np.sqrt,
    "relu": lambda x: np.maximum(x, 0),
    "conj": np.conj,
    "rcp": lambda x: 1 / x,
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "floor": np.floor,
    "mish": lambda x: x * np.tanh(soft_plus(x)),
    "swish": lambda x: x * sigmoid(x),
    "soft_plus": soft_plus,
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "real": np.real,
    "imag": np.imag,
}
NEEDS_ORDER = {
    "relu", "sigmoid", "ceil", "floor", "mish", "swish", "soft_plus", "soft_sign"
}  # fmt: skip


def domain(operator: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Arguments for which the operator is real and well conditioned."""
    if operator == "acosh":
        return rng.uniform(1.2, 4, count)
    positive = rng.uniform(0.1, 0.9, count)
    return positive if operator in ("sqrt", "log") else positive * rng.choice([-1, 1])


def test_every_unary_operator_has_a_formula():
    assert UNARY.keys() == UNARY_OPERATORS.keys() and len(UNARY) == 30


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("operator", UNARY)
def test_unary_operators_of_reals(session, rng, operator: str, dtype: type):
    a = domain(operator, rng, 1000).astype(dtype)
    result = session.permute(a, "i", "i", op_a=operator).numpy()
    expected = UNARY[operator](a.astype(np.float64))
    # Library functions are within a few units in the last place; formulas that
    # combine up to four of them pass on each other's errors.
    assert result.dtype == dtype
    error = np.abs(result - expected) / np.abs(np.where(expected == 0, 1, expected))
    assert np.max(error) <= 16 * np.finfo(dtype).eps


@pytest.mark.parametrize("operator", sorted(UNARY.keys() - NEEDS_ORDER))
def test_unary_operators_of_complex_numbers(session, rng, operator: str):
    a = rng.uniform(0.2, 0.8, 500) + 1j * rng.uniform(0.2, 0.8, 500)
    result = session.permute(a, "i", "i", op_a=operator).numpy()
    expected = UNARY[operator](a)
    error = np.abs(result - expected) / np.abs(expected)
    assert np.max(error) <= 64 * np.finfo(np.float64).eps


@pytest.mark.parametrize("operator", sorted(NEEDS_ORDER))
def test_complex_numbers_have_no_order(session, operator: str):
    with pytest.raises(tensord.InvalidArgument, match="complex128") as failure:
        session.permute(np.ones(3, complex), "i", "i", op_a=operator)
    assert failure.value.reason == "OPERATOR_NEEDS_ORDER"


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.__name__)
def test_unary_operators_of_half_precision(session, rng, dtype: type):
    a = rng.uniform(0.1, 0.9, 200).astype(dtype)
    result = session.permute(a, "i", "i", op_a="sqrt")
    assert result.dtype == dtype
    expected = np.sqrt(widened(a))
    assert_within_bound(result.numpy(), expected, expected, 1)


def test_relu_and_max_keep_nan(session):
    a = np.array([np.nan, -1.0, 2.0])
    relu = session.permute(a, "i", "i", op_a="relu").numpy()
    np.testing.assert_array_equal(relu, [np.nan, 0, 2])
    np.testing.assert_equal(session.reduce(a, "i", "", op="max").item(), np.nan)


@pytest.mark.parametrize("dtype", FLOATS + HALVES + INTEGERS + [np.bool_])
def test_permutation_moves_modes(session, rng, dtype):
    a = random_array(rng, (3, 4, 5, 2), np.float64).astype(dtype)
    result = session.permute(a, "ijkl", "lkij").numpy()
    np.testing.assert_array_equal(result, a.transpose(3, 2, 0, 1))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_permutation_scales(session, rng, dtype):
    a = random_array(rng, (3, 4, 5), dtype)
    result = session.permute(a, (7, -2, 0), (0, 7, -2), alpha=2).numpy()
    assert_within_bound(
        result, 2 * widened(a).transpose(2, 0, 1), 2 * abs(result.astype(complex)), 1
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.float64, np.float32),
        (np.float32, np.float64),
        (np.float32, np.float16),
        (np.float16, np.float32),
        (np.complex128, np.complex64),
        (np.complex64, np.complex128),
    ],
)
def test_permutation_converts(session, rng, source, target):
    a = random_array(rng, (7, 5), source)
    result = session.permute(a, "ij", "ji", dtype=target).numpy()
    assert result.dtype == target
    np.testing.assert_array_equal(result, a.T.astype(target))


def test_permutation_broadcasts_into_an_existing_tensor(session, rng):
    out = session.create((3, 4), np.float64)
    a = rng.random(4)
    assert session.permute(a, "j", "ij", out=out) is out
    np.testing.assert_array_equal(out.numpy(), np.broadcast_to(a, (3, 4)))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize(
    "pad_width", [1, (2, 0), ((0, 3), (1, 0), (0, 0)), {-1: (1, 2)}], ids=str
)
def test_permutation_pads(session, rng, dtype, pad_width):
    a = random_array(rng, (3, 4, 5), np.float64).astype(dtype)
    result = session.permute(a, "ijk", "kij", pad_width=pad_width, pad_value=7)
    pairs = ((0, 0), (0, 0), (1, 2)) if isinstance(pad_width, dict) else pad_width
    expected = np.pad(a.transpose(2, 0, 1), pairs, constant_values=7)
    np.testing.assert_array_equal(result.numpy(), expected)


def test_padding_is_neither_scaled_nor_converted(session, rng):
    a = rng.random((2, 3))
    out = session.upload(np.ones((4, 4), np.float32))
    session.permute(
        a,
        "ij",
        "ji",
        alpha=0.5,
        op_a="sqrt",
        pad_width=((0, 1), (2, 0)),
        pad_value=-3,
        out=out,
    )
    expected = np.full((4, 4), -3, np.float32)
    expected[:3, 2:] = 0.5 * np.sqrt(a.T)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_padding_may_be_the_least_integer(session):
    least = np.iinfo(np.int64).min
    result = session.permute(
        np.ones(2, np.int64), "i", "i", pad_width=1, pad_value=least
    )
    assert result.numpy().tolist() == [least, 1, 1, least]


def test_padding_of_planned_and_piped_permutations(session, rng):
    a = rng.random((2, 3))
    expected = np.pad(a.T, 1, constant_values=2)
    plan = session.plan.permute(a, "ij", "ji", pad_width=1, pad_value=2)
    np.testing.assert_array_equal(plan(a).numpy(), expected)
    with session.pipeline() as pipe:
        result = pipe.permute(a, "ij", "ji", pad_width=1, pad_value=2)
    np.testing.assert_array_equal(result.result().numpy(), expected)


def test_padding_that_does_not_fit_is_refused(session, rng):
    a = rng.random((2, 3))
    for options, reason in [
        ({"pad_width": -1}, "NEGATIVE_PADDING"),
        ({"pad_width": ((1, 1),) * 3}, "MODE_COUNT_MISMATCH"),
        ({"pad_width": 2**63}, "PADDING_TOO_LARGE"),
        ({"pad_width": (0, 2**70)}, "PADDING_TOO_LARGE"),
        ({"pad_value": 1}, "PADDING_MISSING"),
        ({"pad_width": 1, "pad_value": 1j}, "SCALAR_NOT_REAL"),
        ({"pad_width": 1, "pad_value": 1e300, "dtype": "f4"}, "SCALAR_OUT_OF_RANGE"),
        ({"pad_width": 2, "out": session.create((3, 2), "f8")}, "PADDING_TOO_LARGE"),
        ({"pad_width": 1, "out": session.create((3, 2), "f8")}, "MODE_EXTENT_MISMATCH"),
    ]:
        with pytest.raises(tensord.InvalidArgument) as failure:
            session.permute(a, "ij", "ji", **options)
        assert failure.value.reason == reason
    with pytest.raises(TypeError):
        session.permute(a, "ij", "ji", pad_width=0.5)


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_binary_operators(session, rng, op: str, dtype):
    a, c = random_array(rng, (3, 4), dtype), random_array(rng, (4, 3), dtype)
    if op in ("max", "min") and np.dtype(dtype).kind == "c":
        with pytest.raises(tensord.InvalidArgument) as failure:
            session.elementwise(a, "ij", c, "ji", "ij", op=op)
        assert failure.value.reason == "OPERATOR_NEEDS_ORDER"
        return
    result = session.elementwise(a, "ij", c, "ji", "ij", op=op, alpha=2).numpy()
    expected = BINARY[op](2 * widened(a), widened(c.T))
    assert_within_bound(
        result, expected.astype(widened(result).dtype), 4 + 0 * abs(expected), 2
    )


@pytest.mark.parametrize("op_ab", BINARY)
@pytest.mark.parametrize("op", BINARY)
def test_three_operands(session, rng, op: str, op_ab: str):
    a, b, c = rng.random((3, 4)), rng.random(4), rng.random((4, 3))
    result = session.elementwise(
        a, "ij", c, "ji", "ij", b=b, modes_b="j", op=op, op_ab=op_ab,
        alpha=2, beta=-1, gamma=0.5, op_a="sqrt", op_b="neg", op_c="exp",
    )  # fmt: skip
    inner = BINARY[op_ab](2 * np.sqrt(a), -1 * np.negative(b))
    expected = BINARY[op](inner, 0.5 * np.exp(c.T))
    assert_within_bound(result.numpy(), expected, 8 + 0 * expected, 8)


def test_elementwise_broadcasts_vectors_to_a_matrix(session, rng):
    e, f = rng.random(4), rng.random(6)
    result = session.elementwise(e, "i", f, "a", "ia", gamma=-1).numpy()
    np.testing.assert_array_equal(result, e[:, None] - f)


@pytest.mark.parametrize("dtype", FLOATS + HALVES + INTEGERS)
def test_sums(session, rng, dtype):
    a = random_array(rng, (3, 40, 5), dtype)
    c = random_array(rng, (5, 3), dtype)
    result = session.reduce(a, "ijk", "ki", c=c, alpha=2, beta=3).numpy()
    wide = widened(a).sum(1, dtype=widened(a).dtype).T
    expected = 2 * wide + 3 * widened(c)
    magnitude = 2 * abs(widened(a)).sum(1).T + 3 * abs(widened(c))
    assert_within_bound(
        result, expected.astype(widened(result).dtype), magnitude, 40 * 15
    )


@pytest.mark.parametrize(
    ("op", "reduction"), [("mul", np.prod), ("max", np.max), ("min", np.min)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_other_reductions(session, rng, op, reduction, dtype):
    a = random_array(rng, (3, 6, 5), dtype)
    result = session.reduce(a, "ijk", "k", op=op).numpy()
    expected = reduction(widened(a), axis=(0, 1)).astype(widened(result).dtype)
    assert_within_bound(result, expected, abs(expected), 18)


@pytest.mark.parametrize(
    ("op", "cumulative"),
    [("add", np.cumsum), ("mul", np.cumprod), ("max", np.maximum.accumulate)],
)
@pytest.mark.parametrize("dtype", FLOATS + HALVES + INTEGERS)
def test_reductions_along_a_mode(session, rng, op, cumulative, dtype):
    if op == "max" and np.dtype(dtype).kind == "c":
        return
    a = random_array(rng, (3, 40, 5), dtype)
    c = random_array(rng, (5, 3, 40), dtype)
    result = session.reduce(a, "ijk", "kij", op=op, along="j", c=c, alpha=2, beta=3)
    wide = cumulative(widened(a), axis=1).astype(widened(a).dtype)
    expected = 2 * wide.transpose(2, 0, 1) + 3 * widened(c)
    sizes = abs(wide) if op != "add" else np.cumsum(abs(widened(a)), axis=1)
    magnitude = 2 * sizes.transpose(2, 0, 1) + 3 * abs(widened(c))
    assert_within_bound(
        result.numpy(), expected.astype(widened(result.numpy()).dtype), magnitude, 160
    )


def test_indices_that_sort(session, rng):
    a = rng.integers(-9, 9, (30, 4)).astype(np.float32)
    up = session.reduce(a, "ij", "ji", along="i", sort="ascending")
    assert up.dtype == np.int64
    np.testing.assert_array_equal(up.numpy(), np.argsort(a, 0, kind="stable").T)
    down = session.reduce(a, [0, 1], [0, 1], along=1, sort="descending", alpha=-2)
    np.testing.assert_array_equal(down.numpy(), -2 * np.argsort(-a, 1, kind="stable"))


def test_reductions_along_a_mode_want_one(session, rng):
    a = rng.random((3, 4))
    for options, reason in (
        ({"along": "k"}, "MODE_NOT_IN_INPUT"),
        ({"along": "ij"}, "MODE_COUNT_MISMATCH"),
        ({"sort": "ascending"}, "MODES_MISSING"),
        ({"along": "i", "sort": "up"}, "SORTING_UNKNOWN"),
        ({"along": "i", "sort": "ascending", "op_a": "abs"}, "OPERATOR_IN_SORTING"),
        ({"along": "i", "op": "div"}, "OPERATOR_DOES_NOT_REDUCE"),
    ):
        with pytest.raises(tensord.InvalidArgument) as refused:
            session.reduce(a, "ij", "ij", **options)
        assert refused.value.reason == reason
    with pytest.raises(tensord.InvalidArgument, match="mode 'i' of a"):
        session.reduce(a, "ij", "j", along="j")
    with pytest.raises(tensord.Unimplemented, match=r"nearest: \(float64, int64\) in integer"):
        session.reduce(a, "ij", "ij", along="j", sort="ascending", dtype=np.int32)


def test_plans_go_along_a_mode(session, rng):
    a = rng.random((3, 40))
    spec = tensord.TensorSpec(a.shape, a.dtype)
    sums = session.plan.reduce(spec, "ij", "ij", along="j")
    np.testing.assert_allclose(sums(a).numpy(), np.cumsum(a, 1), rtol=1e-14)
    order = session.plan.reduce(spec, "ij", "ij", along="j", sort="descending")
    np.testing.assert_array_equal(order(a).numpy(), np.argsort(-a, 1))
    explained = session.explain.reduce(a, "ij", "ij", along="j", sort="ascending")
    assert "ascending indices" in explained.problem


def test_reduction_over_nothing_gives_the_identity(session):
    nothing = np.zeros((0, 2))
    for op, identity in ("add", 0), ("mul", 1), ("max", -np.inf), ("min", np.inf):
        result = session.reduce(nothing, "ij", "j", op=op).numpy()
        np.testing.assert_array_equal(result, [identity, identity])


def test_reduction_applies_operators(session, rng):
    a = rng.uniform(-1, 1, (4, 9))
    norms = session.reduce(a, "ij", "i", op_a="abs")
    assert_within_bound(norms.numpy(), abs(a).sum(1), abs(a).sum(1), 9)


@pytest.mark.parametrize("dtype", FLOATS + HALVES + INTEGERS)
def test_contraction_with_addend(session, rng, dtype):
    a, b = random_array(rng, (3, 7), dtype), random_array(rng, (7, 2, 3), dtype)
    c = random_array(rng, (2, 3), dtype)
    result = session.contract(a, "ik", b, "kji", "ji", c=c, alpha=2, beta=3).numpy()
    wide = np.einsum("ik,kji->ji", widened(a), widened(b))
    sizes = np.einsum("ik,kji->ji", abs(widened(a)), abs(widened(b)))
    expected = 2 * wide + 3 * widened(c)
    magnitude = 2 * sizes + 3 * abs(widened(c))
    assert_within_bound(result, expected.astype(widened(result).dtype), magnitude, 21)


def test_contraction_conjugates(session, rng):
    a, b = random_array(rng, (3, 4), np.complex128), random_array(rng, 4, np.complex128)
    result = session.contract(a, "ij", b, "j", "i", op_a="conj", alpha=1j).numpy()
    expected = 1j * (a.conj() @ b)
    assert_within_bound(result, expected, abs(a) @ abs(b), 4)


@pytest.mark.parametrize("compute_type", ["tf32", "3xtf32", "bfloat16", "float16"])
def test_compute_types_are_taken(session, rng, compute_type: str):
    a, b = rng.random((20, 30), np.float32), rng.random((30, 10), np.float32)
    result = session.contract(a, "ik", b, "kj", "ij", compute_type=compute_type)
    np.testing.assert_allclose(result.numpy(), a @ b, rtol=2.0**-6)
    assert result.dtype == np.float32


def test_sums_are_in_the_compute_type(session):
    """A5.8: a long sum in float16 is rounded to it, also before beta."""
    count = 1 << 17
    ones = session.upload(np.ones(count, np.float16))
    mean = {"alpha": 2.0**-17}
    half = session.reduce(ones, "i", "", compute_type="float16", **mean)
    assert half.item() == np.inf  # 131072 is beyond float16.
    assert session.reduce(ones, "i", "", compute_type="float32", **mean).item() == 1
    odd, even = ones[:4097], np.float16(-4096)  # float16 has no 4097.
    rest = {"c": even, "beta": 1}
    assert session.reduce(odd, "i", "", compute_type="float16", **rest).item() == 0
    assert session.reduce(odd, "i", "", compute_type="float32", **rest).item() == 1


def test_modes_of_results_have_defaults(session, rng):
    """C19: copies and sums have the modes of `a`, traces those that occur once, and
    contractions, outer products among them, those that only one input has."""
    a, b = rng.random((3, 4)), rng.random((4, 5))
    np.testing.assert_array_equal(session.permute(a, "ji", alpha=2).numpy(), 2 * a)
    added = session.elementwise(a, "ji", a.T.copy(), "ij")
    np.testing.assert_array_equal(added.numpy(), a + a)
    halved = session.elementwise(None, None, a, "ji", alpha=0, gamma=0.5)
    np.testing.assert_array_equal(halved.numpy(), a / 2)
    stack = rng.random((3, 6, 3))
    traced = session.einsum("aba", stack).numpy()
    assert_within_bound(traced, np.einsum("aba->b", stack), traced, 3)
    for modes_a, modes_b, subscripts in [
        ("ik", "kj", "ik,kj->ij"),
        ("zk", "ka", "zk,ka->za"),  # first those of `a`, whatever the alphabet says
        ("ij", "kl", "ij,kl->ijkl"),
    ]:
        expected = np.einsum(subscripts, a, b)
        for result in (
            session.contract(a, modes_a, b, modes_b),
            session.plan.contract(a, modes_a, b, modes_b)(a, b),
        ):
            assert_within_bound(result.numpy(), expected, expected, 4)
    labels = session.contract(a, [7, 8], b, [8, -1])
    assert labels.shape == (3, 5)


def test_operands_need_modes(session):
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.elementwise(None, None, np.ones(3), None, alpha=0)
    assert failure.value.reason == "MODES_MISSING"


def test_factor_zero_means_not_read(session):
    nan, ones = np.full((3, 3), np.nan), np.ones((3, 3))
    summed = session.elementwise(nan, "ij", ones, "ij", "ij", alpha=0).numpy()
    np.testing.assert_array_equal(summed, ones)
    summed = session.elementwise(ones, "ij", None, None, "ij", gamma=0).numpy()
    np.testing.assert_array_equal(summed, ones)
    product = session.contract(ones, "ik", ones, "kj", "ij", c=nan, beta=0).numpy()
    np.testing.assert_array_equal(product, 3 * ones)


def test_out_accumulates_in_place(session, rng):
    a, b = rng.random((5, 6)), rng.random((6, 4))
    out = session.upload(np.ones((5, 4)))
    for _ in range(3):
        assert session.contract(a, "ik", b, "kj", "ij", out=out, beta=1) is out
    expected = 3 * (a @ b) + 1
    assert_within_bound(out.numpy(), expected, expected, 21)
    session.elementwise(out, "ij", out, "ij", "ij", out=out, op="mul", op_a="rcp")
    np.testing.assert_allclose(out.numpy(), 1, rtol=1e-15)


def test_named_results_stay(session):
    ones = np.ones((2, 3))
    session.contract(ones, "ij", ones, "kj", "ik", name="gram")
    np.testing.assert_array_equal(session.tensor("gram").numpy(), np.full((2, 2), 3))
    session.tensor("gram").delete()


def test_results_say_how_they_came_about(session, rng):
    a, b = rng.random((20, 30)), rng.random((30, 10))
    first = session.contract(a, "ik", b, "kj", "ij")
    assert first.report.kernel and first.report.executed_seconds >= 0
    again = session.contract(a, "ik", b, "kj", "ij")
    assert again.report.plan_cache_hit
    chosen = session.contract(
        a, "ik", b, "kj", "ij", algorithm=first.report.kernel, deterministic=True
    )
    np.testing.assert_array_equal(chosen.numpy(), first.numpy())


def test_kernels_can_be_measured(session, rng):
    a, b = rng.random((20, 30)), rng.random((30, 10))
    measured = session.contract(a, "ik", b, "kj", "ij", selection="measure")
    np.testing.assert_allclose(measured.numpy(), a @ b, rtol=1e-13)
    again = session.contract(a, "ik", b, "kj", "ij", selection="measure")
    assert again.report.plan_cache_hit
    assert again.report.kernel == measured.report.kernel


def test_explain_says_what_would_run(session, rng):
    a, b = rng.random((20, 30)), rng.random((30, 10))
    gc.collect()  # results that other tests have left in circles
    session.link.keeper.flush()
    before = session.describe().tensor_count
    explanation = session.explain.contract(a, "ik", b, "kj", "ij")
    assert explanation.kernel == session.contract(a, "ik", b, "kj", "ij").report.kernel
    assert explanation.flops == 2 * 20 * 30 * 10
    assert explanation.moved_bytes == 8 * (20 * 30 + 30 * 10 + 20 * 10)
    ran = [c.kernel for c in explanation.candidates if not c.refusal]
    assert explanation.kernel in ran
    for explained in (
        session.explain.permute(a, "ij", "ji"),
        session.explain.reduce(a, "ij", "j"),
        session.explain.elementwise(a, "ij", a, "ij", "ij"),
        session.explain.einsum("ij,jk", a, b),
        session.explain.reduce(rng.random((1000, 1000)), "ij", "j"),
    ):
        assert explained.candidates
    session.link.keeper.flush()
    assert session.describe().tensor_count == before


@pytest.mark.parametrize("dtype", dtypes.DTYPES, ids=str)
def test_scalars_are_tensors(session, dtype):
    tensor = session.upload(np.ones((), dtype))
    assert tensor.shape == () and tensor.size == 1 and tensor.ndim == 0
    assert tensor.item() == 1
    assert complex(tensor) == 1 and tensor.numpy().shape == ()
    if np.dtype(dtype).kind != "c":
        assert float(tensor) == 1 and int(tensor) == 1


@pytest.mark.parametrize(
    "op, formula",
    [
        ("div", np.divide),
        ("pow", np.power),
        ("equal", np.equal),
        ("not_equal", np.not_equal),
        ("less", np.less),
        ("less_equal", np.less_equal),
        ("greater", np.greater),
        ("greater_equal", np.greater_equal),
    ],
)
def test_operators_of_element_wise_operations_alone(session, rng, op: str, formula):
    a, c = rng.integers(1, 4, (3, 4)) / 2, rng.integers(1, 4, 4) / 2
    result = session.elementwise(a, "ij", c, "j", "ij", op=op)
    expected = formula(a, c)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-15)


def test_where_chooses_by_b(session, rng):
    a, b = rng.random((3, 4)), rng.random(4) > 0.5
    zero = np.zeros(())
    result = session.elementwise(a, "ij", zero, "", "ij", b=b, modes_b="j", op="where")
    np.testing.assert_array_equal(result.numpy(), np.where(b, a, 0))
