"""Plans run the kernel that was asked for, or that measurements have chosen."""

from __future__ import annotations

import numpy as np
import pytest

import tensord
from bounds import assert_product


def test_kernels_are_listed(session):
    kernels = session.kernels()
    assert {kernel.operation for kernel in kernels} == {
        "contract", "elementwise", "factorize", "permute", "reduce", "solve"
    }  # fmt: skip
    assert all(kernel.version >= 1 for kernel in kernels)
    assert session.kernels(session.device) == kernels
    (device,) = (d for d in session.info().devices if d.name == session.device)
    assert set(device.kernels) == {kernel.name for kernel in kernels}
    asked = session.explain.permute(np.ones((2, 3)), "ij", "ji").candidates
    permuting = [k.name for k in kernels if k.operation == "permute"]
    assert [candidate.kernel for candidate in asked] == permuting
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.kernels("tpu:0")
    assert failure.value.reason == "DEVICE_NOT_FOUND"


def test_options_are_the_plan_s(session, a, b):
    kernels = {
        candidate.kernel
        for candidate in session.explain.contract(a, "ik", b, "kj", "ij").candidates
        if not candidate.refusal
    }
    for kernel in kernels:
        plan = session.plan.contract(a, "ik", b, "kj", "ij", algorithm=kernel)
        assert plan.kernel == kernel
        assert plan(a, b).report.kernel == kernel
    single = session.plan.contract(a, "ik", b, "kj", "ij", dtype=np.float64)
    assert single(a, b).dtype == np.float64
    frugal = session.plan.contract(a, "ik", b, "kj", "ij", workspace_limit_bytes=0)
    assert frugal.workspace_bytes == 0
    narrow = session.plan.permute(a, "ij", "ji", dtype=np.float32)
    np.testing.assert_array_equal(narrow(a).numpy(), a.T.astype(np.float32))


def measured(plan: tensord.PlanInfo) -> dict[str, float]:
    """What the server has measured of each kernel, in nanoseconds."""
    return {
        candidate.kernel: candidate.measured_nanoseconds
        for candidate in plan.candidates
        if candidate.measured_nanoseconds > 0
    }


@pytest.mark.parametrize("through", ["plan", "operation", "pipeline", "both"])
def test_incremental_selection_ends_with_one_kernel(session, through: str):
    shapes = {"plan": 31, "operation": 32, "pipeline": 33, "both": 34}
    rng = np.random.default_rng(5)
    a, b = rng.random((40, shapes[through])), rng.random((shapes[through], 20))
    x, y = session.upload(a), session.upload(b)
    plan = session.plan.contract(x, "ik", y, "kj", "ij", selection="incremental")
    assert plan.selection == "incremental"

    def run(index: int) -> tensord.RemoteTensor:
        way = ("plan", "operation")[index % 2] if through == "both" else through
        if way == "plan":
            return plan(x, y)
        if way == "operation":
            return session.contract(x, "ik", y, "kj", "ij", selection="incremental")
        with session.pipeline() as pipeline:
            return pipeline.execute(plan, x, y).result()

    tried = []
    described = plan.describe()
    assert described.sample_count == described.wanted_sample_count == 0
    for index in range(50):
        result = run(index)
        assert_product(result, a, b)
        tried.append(result.report.kernel)
        described = plan.describe()
        if described.sample_count == described.wanted_sample_count:
            break
    else:
        pytest.fail(f"tuning did not end: {described}")
    could = {c.kernel for c in described.candidates if not c.refusal}
    times = measured(described)
    assert set(times) == set(tried) and len(times) > 1 and set(times) <= could
    # Closer times do not differ, see core/plan/tuning.h.
    assert times[described.kernel] <= 1.05 * min(times.values())
    for index in range(10):
        result = run(index)
        assert result.report.kernel == described.kernel
        assert_product(result, a, b)
    assert plan.describe().kernel == described.kernel


# The models are wrong about the first, and kernels far apart in the others.
@pytest.mark.timing
@pytest.mark.parametrize("m, k, n", [(4, 4, 4), (40, 31, 20), (120, 6, 120)])
def test_measured_plans_run_what_was_fastest(session, rng, m: int, k: int, n: int):
    told: list[bool] = []
    for more in range(3):  # another plan each time
        a, b = rng.random((m, k)), rng.random((k, n + more))

        def prepare(**options: str) -> tensord.Plan:
            prepared = session.plan.contract(
                a, "ik", b, "kj", "ij", selection="measure", **options
            )
            assert prepared.selection == "measure"
            return prepared

        # Of each kernel alone, measured in the same way.
        times: dict[str, float] = {}
        for candidate in prepare().candidates:
            if not candidate.refusal:
                alone = prepare(algorithm=candidate.kernel)
                assert alone(a, b).report.kernel == candidate.kernel
                times |= measured(alone.describe())
        assert len(times) > 1
        plan = prepare()
        for _ in range(3):
            result = plan(a, b)
            assert_product(result, a, b)
            assert result.report.kernel == plan.describe().kernel
        ((kernel, nanoseconds),) = measured(plan.describe()).items()
        assert kernel == plan.describe().kernel
        least = min(times.values())
        slow = {each for each, time in times.items() if time >= 2 * least}
        # time: what else the machine does may hold up one of them, but not most
        is_fastest = max(times[kernel], nanoseconds) < 2 * least
        told.append(is_fastest and bool(slow or m == 4))
        if told.count(True) == 2:
            return
    pytest.fail(f"{told}; at last {kernel} was taken with {nanoseconds} ns, of {times}")


@pytest.mark.parametrize("selection", ["measure", "incremental"])
def test_kernels_of_programs_are_chosen_by_time_too(
    private_address: str, rng, selection: str
):
    # Small whole numbers, which every kernel adds without rounding.
    a, b, c = (rng.integers(-4, 5, (6, 6)).astype(float) for _ in range(3))
    statements = "D[i,l] := A[i,j]*B[j,k]*C[k,l]"
    named = {"A": a, "B": b, "C": c}
    how = {"selection": selection}
    with tensord.connect(private_address) as alone:
        prepared = alone.program("ij,jk,kl->il", a, b, c, **how)
        statement = alone.program(statements, named, **how)
        for run in (
            lambda: alone.einsum("ij,jk,kl->il", a, b, c, **how),
            lambda: alone.einsum("ij,jk,kl->il", a, b, c, alpha=1, c=a, **how),
            lambda: alone.ncon([a, b, c], [[-1, 1], [1, 2], [2, -2]], **how),
            lambda: alone.run(statements, named, **how),
            lambda: prepared(a, b, c),
            lambda: statement(named),
        ):
            alone.plan_cache.clear()
            np.testing.assert_array_equal(run().numpy(), a @ b @ c)
            found = {entry.selection for entry in alone.plan_cache.entries()}
            assert selection in found
        assert alone.explain.einsum("ij,jk,kl->il", a, b, c, **how).operations
        with pytest.raises(tensord.InvalidArgument) as failure:
            alone.run(statements, named, deterministic=True, **how)
        assert failure.value.reason == "SELECTION_CONFLICTS"
        with pytest.raises(tensord.InvalidArgument, match="selection 'best'"):
            alone.run(statements, named, selection="best")


def test_selection_keeps_one_operation_one(session, a, b):
    how = {"selection": "measure"}
    for subscripts, operands, dtype in [
        ("ij,jk->ik", (a, b), None),
        ("ij->ji", (a,), "f4"),  # Without selection, a program.
    ]:
        result = session.einsum(subscripts, *operands, dtype=dtype, **how)
        plan = session.plan.einsum(subscripts, *operands, dtype=dtype, **how)
        assert isinstance(plan, tensord.Plan) and plan.selection == "measure"
        with session.pipeline() as pipeline:
            pending = pipeline.einsum(subscripts, *operands, dtype=dtype, **how)
        for made in result, plan(*operands), pending.result():
            assert made.report.kernel
            np.testing.assert_array_equal(made.numpy(), result.numpy())
