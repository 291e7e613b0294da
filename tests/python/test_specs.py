"""A TensorSpec says what a tensor is like, and has no elements."""

from __future__ import annotations

import numpy as np
import pytest

import tensord
from tensord import TensorSpec


def test_specs_say_what_tensors_are_like():
    spec = TensorSpec((2, 3), "float32")
    assert (spec.shape, spec.dtype, spec.strides) == ((2, 3), np.float32, None)
    assert spec == TensorSpec([2, 3], np.float32, (12, 4)) and spec.span_bytes == 24
    assert TensorSpec(5, bool).shape == (5,) and TensorSpec((), int).span_bytes == 8
    padded = TensorSpec((2, 3), "float32", (16, 4))
    assert padded.span_bytes == 28
    assert str(padded) == "float32 (2, 3) with strides (16, 4)"
    assert {spec: 1}[TensorSpec((2, 3), ">f4")] == 1
    for wrong, reason in [
        (lambda: TensorSpec((2, 3), "float32", (4,)), "MODE_COUNT_MISMATCH"),
        (lambda: TensorSpec((2, 3), "float32", (6, 2)), "STRIDE_NOT_MULTIPLE"),
        (lambda: TensorSpec((2, 3), "datetime64[s]"), "ELEMENT_TYPE_UNKNOWN"),
        (lambda: TensorSpec(2**63, "float32"), "EXTENT_OUT_OF_RANGE"),
    ]:
        with pytest.raises(tensord.InvalidArgument) as failure:
            wrong()
        assert failure.value.reason == reason
    with pytest.raises(TypeError, match="shape"):
        TensorSpec("ab", "float32")


def test_specs_have_no_elements(session, plan, b):
    for refused in (
        lambda: plan(plan.operands["a"], b),
        lambda: session.permute(TensorSpec(3, "float32"), "i", "i"),
        lambda: session.upload(TensorSpec(3, "float32")),
    ):
        with pytest.raises(TypeError, match="TensorSpec, which has no elements"):
            refused()


def test_specs_with_strides_are_laid_out(session, rng):
    padded = TensorSpec((4, 3), "float64", (40, 8))
    plan = session.plan.permute(padded, "ij", "ji")
    assert plan.operands["a"] == padded
    x = rng.random((4, 3))
    np.testing.assert_array_equal(plan(x).numpy(), x.T)
    rows = session.upload(rng.random((4, 5)))
    np.testing.assert_array_equal(plan(rows[:, :3]).numpy(), rows.numpy()[:, :3].T)
    for strides in (0, 8), (-8, 8):
        with pytest.raises(tensord.InvalidArgument) as failure:
            session.plan.permute(TensorSpec((2, 2), "float64", strides), "ij", "ji")
        assert failure.value.reason == "STRIDE_NOT_POSITIVE"
