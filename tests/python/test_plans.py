"""Plans run their operation on any operands that are like their own."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensord
from bounds import assert_product, assert_within_bound, widened
from random_arrays import random_array
from tensord import TensorSpec
from tensord.v1 import compute_pb2

DTYPES = [np.float32, np.float64, np.complex128, np.int32]


# What plans compute.


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_contractions(session, rng, dtype):
    a, b = random_array(rng, (8, 9), dtype), random_array(rng, (9, 7), dtype)
    plan = session.plan.contract(a, "ik", b, "kj", "ij")
    for _ in range(3):
        a, b = random_array(rng, (8, 9), dtype), random_array(rng, (9, 7), dtype)
        assert_product(plan(a, session.upload(b)), a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_permutations(session, rng, dtype):
    plan = session.plan.permute(TensorSpec((3, 4, 5), dtype), "ijk", "kij")
    for _ in range(3):
        a = random_array(rng, (3, 4, 5), dtype)
        np.testing.assert_array_equal(plan(a).numpy(), a.transpose(2, 0, 1))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_reductions(session, rng, dtype):
    like = TensorSpec((6, 50), dtype)
    plan = session.plan.reduce(like, "ij", "i", c=TensorSpec(6, dtype), beta=2)
    for _ in range(3):
        a, c = random_array(rng, (6, 50), dtype), random_array(rng, (6,), dtype)
        wide = widened(a).sum(1, dtype=widened(a).dtype) + 2 * widened(c)
        magnitude = abs(widened(a)).sum(1) + 2 * abs(widened(c))
        assert_within_bound(
            plan(a, c).numpy(), wide.astype(widened(a).dtype), magnitude, 51
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_elementwise_operations(session, rng, dtype):
    matrix, vector = TensorSpec((3, 4), dtype), TensorSpec(4, dtype)
    two = session.plan.elementwise(matrix, "ij", vector, "j", "ij", op="mul")
    three = session.plan.elementwise(
        matrix, "ij", matrix, "ij", "ij", b=vector, modes_b="j", op_ab="mul"
    )
    a, c = random_array(rng, (3, 4), dtype), random_array(rng, (3, 4), dtype)
    b = random_array(rng, (4,), dtype)
    expected = widened(a) * widened(b)
    assert_within_bound(two(a, b).numpy(), expected, 4 + 0 * abs(expected), 1)
    expected = expected + widened(c)
    # In the order a, b, c, which is not that of `elementwise`.
    assert_within_bound(three(a, b, c).numpy(), expected, 4 + 0 * abs(expected), 2)


def test_einsum_is_planned_as_what_it_is(session, rng):
    a, b = rng.random((4, 5)), rng.random((5, 3))
    kinds = {}
    for subscripts, operands in [
        ("ij,jk->ik", (a, b)),
        ("ij->ji", (a,)),
        ("ij->j", (a,)),
    ]:
        plan = session.plan.einsum(subscripts, *operands)
        expected = np.einsum(subscripts, *operands)
        assert_within_bound(plan(*operands).numpy(), expected, expected, 5)
        kinds[subscripts] = plan.operation
    assert list(kinds.values()) == ["contract", "permute", "reduce"]


@given(st.data())
def test_plans_give_the_same_bits_as_operations(session, data):
    extents = {mode: data.draw(st.integers(1, 5)) for mode in "ijkl"}
    modes = st.lists(st.sampled_from("ijkl"), min_size=1, max_size=4, unique=True)
    modes_a, modes_b = data.draw(modes), data.draw(modes)
    result = [mode for mode in "ijkl" if mode in {*modes_a, *modes_b}]
    modes_d = data.draw(st.lists(st.sampled_from(result), unique=True))
    subscripts = f"{''.join(modes_a)},{''.join(modes_b)}->{''.join(modes_d)}"
    seed = np.random.default_rng(data.draw(st.integers(0, 1000)))
    a = seed.random([extents[mode] for mode in modes_a])
    b = seed.random([extents[mode] for mode in modes_b])
    plan = session.plan.einsum(subscripts, a, b)
    planned, direct = plan(a, b), session.einsum(subscripts, a, b)
    np.testing.assert_array_equal(planned.numpy(), direct.numpy())
    assert planned.report.kernel == direct.report.kernel == plan.kernel
    assert planned.report.plan_cache_hit


def test_results_are_as_those_of_operations(session, plan, a, b):
    result = plan.execute(a, b)
    assert isinstance(result, tensord.RemoteTensor)
    assert result.shape == (20, 10) and result.dtype == np.float64
    assert result.device == session.device and result.state == "ready"
    assert result.report.kernel == plan.kernel and result.report.plan_cache_hit
    named = plan(a, b, name="product")
    assert named.name == "product"
    np.testing.assert_array_equal(session.tensor("product").numpy(), result.numpy())
    with pytest.raises(tensord.AlreadyExists):
        plan(a, b, name="product")
    named.delete()


def test_factors_are_overridden(session, a, b, rng):
    c = rng.random((20, 10))
    plan = session.plan.contract(a, "ik", b, "kj", "ij", c=c, alpha=2, beta=3)
    for given_alpha, given_beta in [
        (None, None),
        (5, None),
        (None, 7),
        (5, 7),
        (-1, 0),
    ]:
        alpha = 2 if given_alpha is None else given_alpha
        beta = 3 if given_beta is None else given_beta
        result = plan(a, b, c, alpha=given_alpha, beta=given_beta).numpy()
        expected = alpha * (a @ b) + beta * c
        magnitude = abs(alpha) * (a @ b) + beta * c
        assert_within_bound(result, expected, magnitude, 31)


def test_a_factor_of_zero_spares_its_operands(session, plan, a, b):
    np.testing.assert_array_equal(plan(alpha=0).numpy(), np.zeros((20, 10)))
    nan = np.full((20, 10), np.nan)
    adding = session.plan.contract(a, "ik", b, "kj", "ij", c=nan, beta=1)
    assert_product(adding(a, b, beta=0), a, b)
    assert_product(adding(a, b, nan, beta=0), a, b)
    np.testing.assert_array_equal(adding(None, None, nan, alpha=0).numpy(), nan)
    scaled = session.plan.elementwise(nan, "ij", nan, "ij", "ij", gamma=0.5)
    ones = np.ones((20, 10))
    np.testing.assert_array_equal(scaled(c=ones, alpha=0).numpy(), ones / 2)


def test_results_go_to_existing_tensors(session, plan, a, b):
    out = session.create((20, 10), np.float64)
    assert plan(a, b, out=out) is out
    assert_product(out, a, b)
    assert out.report.kernel == plan.kernel
    other = session.upload(np.ones((40, 10)))
    part = other[10:30]
    assert plan(a, b, out=part) is part
    assert_product(part, a, b)
    assert other.numpy()[:10].all() and (other.numpy()[30:] == 1).all()


def test_out_stands_for_the_addend_that_is_left_out(session, a, b):
    out = session.upload(np.ones((20, 10)))
    plan = session.plan.contract(a, "ik", b, "kj", "ij", out=out, beta=1)
    for count in range(1, 4):
        plan(a, b, out=out)
        expected = count * (a @ b) + 1
        assert_within_bound(out.numpy(), expected, expected, 31 * count)
    fresh = session.create((20, 10), np.float64)
    assert_product(plan(a, b, out=fresh, beta=0), a, b)
    with pytest.raises(tensord.InvalidArgument) as failure:
        plan(a, b)
    assert failure.value.reason == "INPUT_MISSING"


def test_large_arrays_are_uploaded(address, rng):
    with tensord.connect(address) as session:
        limit = session.info().limits.max_inline_bytes
        count = limit // 8 + 1
        plan = session.plan.elementwise(
            TensorSpec(count, "float64"), "i", TensorSpec((), "float64"), "", "i"
        )
        before = session.describe().tensor_count
        x = rng.random(count)
        np.testing.assert_array_equal(plan(x, 2.0).numpy(), x + 2)
        session.link.keeper.flush()
        assert session.describe().tensor_count == before


def test_small_results_come_inline(session, stubs, plan, a, b):
    request = compute_pb2.ExecutePlanRequest(plan=plan.full_name, inline=True)
    request.a.data, request.b.data = a.tobytes(), b.tobytes()
    result = stubs.compute.ExecutePlan(request).result
    assert result.tensor.name == ""
    product = np.frombuffer(result.data).reshape(20, 10)
    np.testing.assert_array_equal(product, plan(a, b).numpy())


@pytest.mark.timing
def test_any_number_of_threads_shares_a_plan(plan):
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            a, b = rng.random((20, 30)), rng.random((30, 10))
            assert_product(plan(a, b), a, b)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, seed) for seed in range(16)]:
            done.result()


# What plans are made for.


def test_operands_are_described_and_not_sent(address):
    with tensord.connect(address) as session:
        before = session.describe()
        uploaded = session.stats().uploaded_bytes
        enormous = TensorSpec((1 << 24, 1 << 24), "float32")
        plan = session.plan.reduce(enormous, "ij", "i")
        assert plan.operands == {
            "a": enormous,
            "d": TensorSpec((1 << 24,), "float32"),
        }
        assert plan.moved_bytes == 4 * (2**48 + 2**24)
        array = np.ones((1000, 1000))
        assert session.plan.permute(array, "ij", "ji").operands["a"] == TensorSpec(
            (1000, 1000), np.float64
        )
        session.plan.permute(session.create(3, np.float32), "i", "i")  # no contents
        assert session.explain.reduce(enormous, "ij", "i").kernel == plan.kernel
        session.link.keeper.flush()
        after = session.describe()
        assert after.memory_used_bytes == before.memory_used_bytes
        assert after.tensor_count == before.tensor_count
        assert session.stats().uploaded_bytes == uploaded


def test_plans_outlive_the_tensors_that_they_were_made_for(session, a, b):
    x, y = session.upload(a, name="x"), session.upload(b)
    out = session.create((20, 10), np.float64)
    plan = session.plan.contract(x, "ik", y, "kj", "ij", out=out)
    for tensor in x, y, out:
        tensor.delete()
    assert_product(plan(a, b), a, b)
    assert_product(plan(session.upload(a), session.upload(b)), a, b)


def test_plans_say_what_they_are(session, a, b):
    plan = session.plan.contract(a, "ik", b, "kj", "ij", name="told")
    assert plan.name == "told" and plan.session is session
    assert plan.full_name == f"{session.name}/plans/told"
    assert plan.operation == "contract" and plan.device == session.device
    assert plan.selection == "heuristic" and plan.factors == ("alpha", "beta")
    assert plan.flops == 2 * 20 * 30 * 10
    assert plan.moved_bytes == 8 * (20 * 30 + 30 * 10 + 20 * 10)
    assert plan.min_workspace_bytes <= plan.workspace_bytes <= plan.max_workspace_bytes
    explained = session.explain.contract(a, "ik", b, "kj", "ij")
    assert (plan.kernel, plan.problem) == (explained.kernel, explained.problem)
    assert plan.candidates == explained.candidates
    text = repr(plan)
    assert text.startswith("Plan('told', contract, a=float64 (20, 30), b=")
    assert plan.kernel in text and plan.device in text
    described = plan.describe()
    assert described.execution_count == 0
    assert (described.name, described.kernel) == (plan.full_name, plan.kernel)
    plan(a, b)
    plan(a, b)
    assert plan.describe().execution_count == 2
    plan.delete()


# Views.


def test_views_are_operands(session, rng):
    base = session.upload(rng.random((8, 8)))
    array = base.numpy()
    plan = session.plan.contract(base[:4, ::2], "ik", base[4:, :4].T, "kj", "ij")
    assert plan.operands["a"].strides == (64, 16)
    for begin in 0, 2, 4:
        x, y = base[begin : begin + 4, ::2], base[4:, begin : begin + 4].T
        expected = (array[begin : begin + 4, ::2], array[4:, begin : begin + 4].T)
        assert_product(plan(x, y), *expected)
        # Arrays are laid out as the plan wants them, here or there.
        assert_product(plan(*expected), *expected)


@pytest.mark.parametrize(
    "see",
    [
        lambda t: t[::-1, ::2],
        lambda t: t.pad(1, value=2),
        lambda t: t.T,
        lambda t: t[2:5, 1:],
        lambda t: t.diagonal(),
        lambda t: t.sliding_window_view(2, axis=1),
    ],
    ids=["backwards", "padded", "transposed", "part", "diagonal", "windows"],
)
def test_plans_are_made_for_views_of_any_kind(session, rng, see):
    first, second = (session.upload(rng.random((6, 6))) for _ in range(2))
    modes = "ijk"[: see(first).ndim]
    for plan in (
        session.plan.reduce(see(first), modes, ""),
        session.plan.elementwise(see(first), modes, see(first), modes, modes, gamma=0),
    ):
        expected = see(second).numpy()
        total = expected.sum() if plan.operation == "reduce" else expected
        for operand in see(second), expected:
            result = plan(a=operand).numpy()
            assert_within_bound(result, total, abs(total), expected.size)


def test_views_that_repeat_are_wanted_as_such(session, rng):
    row = session.upload(rng.random(4))
    repeated = row.broadcast_to((3, 4))
    matrix = TensorSpec((3, 4), "float64")
    plan = session.plan.elementwise(repeated, "ij", matrix, "ij", "ij")
    other = session.upload(rng.random(4))
    ones = np.ones((3, 4))
    np.testing.assert_array_equal(
        plan(other.broadcast_to((3, 4)), ones).numpy(), other.numpy() + ones
    )
    for packed in ones, session.upload(ones):
        with pytest.raises(tensord.InvalidArgument, match="strides") as failure:
            plan(packed, ones)
        assert failure.value.reason == "PLAN_OPERAND_DIFFERS"


# What plans refuse.


def test_operands_unlike_the_plan_s_are_refused(session, plan, a, b):
    cases: list[tuple[str, str, Callable[[], Any]]] = [
        ("operand a is an array of float32", "PLAN_OPERAND_DIFFERS",
         lambda: plan(a.astype(np.float32), b)),
        ("operand a has float32 elements", "PLAN_OPERAND_DIFFERS",
         lambda: plan(session.upload(a.astype(np.float32)), b)),
        (r"operand b is an array of float64 \(30, 9\)", "PLAN_OPERAND_DIFFERS",
         lambda: plan(a, b[:, :9])),
        (r"operand b has extents \(30, 9\)", "PLAN_OPERAND_DIFFERS",
         lambda: plan(a, session.upload(b[:, :9]))),
        (r"operand a has strides \(1, 20\)", "PLAN_OPERAND_DIFFERS",
         lambda: plan(session.upload(a.T).T, b)),
        (r"operand d has extents \(10, 20\)", "PLAN_OPERAND_DIFFERS",
         lambda: plan(a, b, out=session.create((10, 20), np.float64))),
        ("operand d has float32 elements", "PLAN_OPERAND_DIFFERS",
         lambda: plan(a, b, out=session.create((20, 10), np.float32))),
        ("takes a and b, got 3", "PLAN_HAS_NO_OPERAND", lambda: plan(a, b, a)),
        ("no operand c", "PLAN_HAS_NO_OPERAND", lambda: plan(a, b, c=a)),
        ("no factor gamma", "PLAN_HAS_NO_FACTOR", lambda: plan(a, b, gamma=1)),
        ("operand b of plan .* left out", "INPUT_MISSING", lambda: plan(a)),
        ("operand a of plan .* left out", "INPUT_MISSING", lambda: plan(None, b)),
        ("together with out", "OUTPUT_EXISTS",
         lambda: plan(a, b, name="x", out=session.create((20, 10), np.float64))),
        ("out is of type ndarray", "OUTPUT_NOT_REMOTE", lambda: plan(a, b, out=a)),
        ("timeout", "TIMEOUT_NOT_POSITIVE", lambda: plan(a, b, timeout=0)),
        ("alpha is 9007199254740993", "FACTOR_NOT_REPRESENTABLE",
         lambda: plan(a, b, alpha=2**53 + 1)),
    ]  # fmt: skip
    for message, reason, run in cases:
        with pytest.raises(tensord.InvalidArgument, match=message) as failure:
            run()
        assert failure.value.reason == reason
    with pytest.raises(TypeError, match="operand a is given twice"):
        plan(a, b, a=a)
    with pytest.raises(TypeError, match="plan is of type str"):
        session.execute("p1", a, b)
    assert_product(plan(a, b), a, b)


def test_out_must_not_overlap_an_input(session, rng):
    square = session.upload(rng.random((5, 5)))
    plan = session.plan.contract(square, "ik", square, "kj", "ij")
    with pytest.raises(tensord.InvalidArgument) as failure:
        plan(square, square, out=square)
    assert failure.value.reason == "OUTPUT_OVERLAPS_INPUT"


def test_operands_have_to_be_there(session, plan, a, b):
    gone = session.upload(a)
    gone.delete()
    with pytest.raises(tensord.NotFound) as missing:
        plan(gone, b)
    assert missing.value.reason == "TENSOR_NOT_FOUND"
    with pytest.raises(tensord.FailedPrecondition) as empty:
        plan(session.create((20, 30), np.float64), b)
    assert empty.value.reason == "TENSOR_NOT_READY"


def test_operations_that_make_no_sense_are_not_planned(session, a, b):
    for wrong, reason in [
        (lambda: session.plan.contract(a, "ik", b, "jk", "ij"), "MODE_EXTENT_MISMATCH"),
        (lambda: session.plan.reduce(a, "ij", "i", beta=1), "INPUT_MISSING"),
        (
            lambda: session.plan.permute(a, "ij", "ji", selection="best"),
            "SELECTION_UNKNOWN",
        ),
        (
            lambda: session.plan.permute(
                a, "ij", "ji", selection="incremental", deterministic=True
            ),
            "SELECTION_CONFLICTS",
        ),
        (lambda: session.plan.permute(a, "ij", "ji", name="a/b"), "PLAN_ID_MALFORMED"),
    ]:
        with pytest.raises(tensord.InvalidArgument) as failure:
            wrong()
        assert failure.value.reason == reason
    with pytest.raises(tensord.Unimplemented):
        session.plan.contract(TensorSpec((2, 2), bool), "ik", b[:2, :2], "kj", "ij")
    with pytest.raises(TypeError, match="option 'nmae' is unknown"):
        session.plan.permute(a, "ij", "ji", nmae="x")


def test_plans_run_in_their_session(address, session, plan, a, b):
    with tensord.connect(address) as other:
        with pytest.raises(tensord.InvalidArgument) as failure:
            other.execute(plan, a, b)
        assert failure.value.reason == "SESSION_DIFFERS"
        with pytest.raises(tensord.NotFound) as unknown:
            other.get_plan(plan.name)
        assert unknown.value.reason == "PLAN_NOT_FOUND"
        with pytest.raises(tensord.NotFound):
            other.get_plan(plan.full_name)
        foreign = other.upload(a)
        with pytest.raises(tensord.InvalidArgument) as failure:
            plan(foreign, b)
        assert failure.value.reason == "SESSION_DIFFERS"


# Pipelines.


def test_plans_run_in_pipelines(session, rng):
    x = session.upload(np.array([0.0, 1.0]))
    one = session.upload(np.ones(2))
    add = session.plan.elementwise(x, "i", x, "i", "i")
    with session.pipeline() as pipeline:
        for index in range(20):
            pipeline.execute(add, x, x if index % 2 == 0 else one, out=x)
        copied = pipeline.execute(add, x, np.zeros(2), name="copied")
        scaled = pipeline.execute(add, x, one, alpha=2, gamma=-1)
        direct = pipeline.elementwise(x, "i", one, "i", "i")
    np.testing.assert_array_equal(x.numpy(), [1023, 2047])
    assert copied.result().name == "copied"
    np.testing.assert_array_equal(session.tensor("copied").numpy(), [1023, 2047])
    np.testing.assert_array_equal(scaled.result().numpy(), [2045, 4093])
    np.testing.assert_array_equal(direct.result().numpy(), [1024, 2048])
    assert scaled.result().report.kernel
    session.tensor("copied").delete()


def test_a_plan_that_fails_does_not_end_the_pipeline(session, plan, a, b):
    x = session.upload(a)
    wrong = session.create((30, 20), np.float64)
    with pytest.raises(tensord.InvalidArgument) as failure:
        with session.pipeline() as pipeline:
            differs = pipeline.execute(plan, wrong, b)
            good = pipeline.execute(plan, x, b)
            with pytest.raises(tensord.InvalidArgument):
                pipeline.execute(plan, b, b)  # known here already
    assert failure.value.reason == "PLAN_OPERAND_DIFFERS"
    with pytest.raises(tensord.InvalidArgument):
        differs.result()
    assert_product(good.result(), a, b)
