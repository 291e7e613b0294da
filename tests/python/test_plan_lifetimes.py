"""Plans have names, stay as long as they are held, and make room for others."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensord
from bounds import assert_product
from conftest import raw_stubs
from tensord import TensorSpec
from tensord.v1 import compute_pb2, plan_pb2
from waiting import eventually


@pytest.fixture
def session(address: str) -> Iterator[tensord.Session]:
    """A session that no other test uses."""
    with tensord.connect(address) as opened:
        yield opened


def plan_names(session: tensord.Session) -> list[str]:
    session.link.keeper.flush()
    return [plan.name for plan in session.plans()]


def test_plans_are_found_by_name(session, a, b):
    made = session.plan.contract(a, "ik", b, "kj", "ij", name="kept", alpha=2)
    for name in "kept", made.full_name:
        found = session.get_plan(name)
        assert (found.full_name, found.operands) == (made.full_name, made.operands)
        assert (found.kernel, found.flops) == (made.kernel, made.flops)
        np.testing.assert_array_equal(found(a, b).numpy(), made(a, b).numpy())
    with pytest.raises(tensord.AlreadyExists) as taken:
        session.plan.permute(a, "ij", "ji", name="kept")
    assert taken.value.reason == "PLAN_ALREADY_EXISTS"
    made.delete()
    for refused in (
        lambda: session.get_plan("kept"),
        lambda: found(a, b),
        lambda: session.execute(made, a, b),
        made.describe,
        made.delete,
    ):
        with pytest.raises(tensord.NotFound) as failure:
            refused()
        assert failure.value.reason == "PLAN_NOT_FOUND"


def test_plans_are_listed_by_name(session):
    assert session.plans() == ()
    spec = TensorSpec((2, 3), "float64")
    names = [f"plan-{number:04}" for number in range(1100)]  # more than a page
    for name in reversed(names):
        session.plan.permute(spec, "ij", "ji", name=name)
    listed = session.plans()
    assert [plan.name for plan in listed] == names
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(listed[7](x).numpy(), x.T)
    del listed
    gc.collect()
    assert len(plan_names(session)) == len(names)


def test_unnamed_plans_leave_with_their_last_reference(session, a, b):
    before = plan_names(session)
    plan = session.plan.contract(a, "ik", b, "kj", "ij")
    result = plan(a, b)
    assert plan.name in plan_names(session)
    borrowed = session.get_plan(plan.name)
    del plan
    assert eventually(lambda: plan_names(session) == before)
    with pytest.raises(tensord.NotFound):
        borrowed(a, b)
    assert_product(result, a, b)


def test_named_plans_stay(session, a):
    session.plan.permute(a, "ij", "ji", name="stays")
    gc.collect()
    assert "stays" in plan_names(session)
    with session.get_plan("stays") as plan:
        np.testing.assert_array_equal(plan(a).numpy(), a.T)
    assert "stays" not in plan_names(session)


def test_dropped_plans_make_room_for_others(session):
    spec = TensorSpec(3, "float64")
    held = session.plan.permute(spec, "i", "i")
    request = plan_pb2.CreatePlanRequest(
        permute=compute_pb2.PermuteRequest(
            session=session.name,
            a=compute_pb2.Operand(inline=spec.inline_message(), modes=[0]),
            d=compute_pb2.Output(modes=[0]),
        )
    )
    create = raw_stubs(session).plan.CreatePlan
    # Without waiting for each: there is room for 10 000.
    for call in [create.future(request) for _ in range(9_999)]:
        call.result()
    with pytest.raises(tensord.ResourceExhausted) as full:
        session.plan.permute(spec, "i", "i")
    assert full.value.reason == "TOO_MANY_PLANS"
    cycle: list[Any] = [held]
    cycle.append(cycle)
    del held, cycle  # Only the garbage collector finds it.
    session.plan.permute(spec, "i", "i")


def test_closing_a_session_deletes_its_plans(address, a):
    session = tensord.connect(address)
    plan = session.plan.permute(a, "ij", "ji", name="gone")
    session.close()
    with pytest.raises(tensord.FailedPrecondition) as closed:
        plan(a)
    assert closed.value.reason == "SESSION_CLOSED"


def test_a_plan_keeps_its_session(address, a):
    plan = tensord.connect(address).plan.permute(a, "ij", "ji")
    gc.collect()
    np.testing.assert_array_equal(plan(a).numpy(), a.T)
    plan.session.close()


def test_pipelines_keep_their_plans(session, a, b):
    large = session.upload(np.zeros((1000, 1000)))
    before = plan_names(session)
    with session.pipeline() as pipeline:
        for _ in range(5):
            pipeline.contract(large, "ik", large, "kj", "ij")
        product = pipeline.execute(session.plan.contract(a, "ik", b, "kj", "ij"), a, b)
    assert_product(product.result(), a, b)
    assert eventually(lambda: plan_names(session) == before)


def test_explanations_are_no_plans(session, a, b):
    before = plan_names(session)
    explained = session.explain.contract(a, "ik", b, "kj", "ij")
    assert isinstance(explained, tensord.Explanation)
    assert all(c.measured_nanoseconds == 0 for c in explained.candidates)
    assert math.isclose(explained.flops, 12000)
    assert plan_names(session) == before
