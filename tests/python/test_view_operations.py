"""Operations take views for any of their operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tensord
from tensord import RemoteTensor
from tensord._dtypes import DTYPES
from tensord.transforms import Xor, place

SHAPE = (4, 6)
PADDING = 7


class Kind(NamedTuple):
    """A way to see a tensor of `base` as one of SHAPE, here and in NumPy.

    Attributes:
        gathered: Whether operations have to gather it.
        writable: Whether it can be an output.
    """

    base: tuple[int, ...]
    here: Callable[[RemoteTensor], RemoteTensor]
    there: Callable[[np.ndarray], np.ndarray]
    gathered: bool = False
    writable: bool = True


def swizzled(x: RemoteTensor) -> RemoteTensor:
    return x.view([[place(Xor(), (1, 0), (1, 0))]])


SWIZZLE = np.arange(4)[:, None] ^ (np.arange(6) % 4)

KINDS = {
    "whole": Kind((4, 6), lambda x: x[...], lambda x: x),
    "sliced": Kind((9, 8), lambda x: x[1::2, 1:-1], lambda x: x[1::2, 1:-1]),
    "transposed": Kind((6, 4), lambda x: x.T, lambda x: x.T),
    "frozen": Kind((4, 2, 6), lambda x: x[:, 1], lambda x: x[:, 1]),
    "diagonal": Kind(
        (6, 4, 6), lambda x: x.diagonal(0, 0, 2), lambda x: x.diagonal(0, 0, 2)
    ),
    "windows": Kind(
        (9,),
        lambda x: x.sliding_window_view(6),
        lambda x: sliding_window_view(x, 6),
        writable=False,
    ),
    "repeated": Kind(
        (6,),
        lambda x: x.broadcast_to((4, 6)),
        lambda x: np.broadcast_to(x, (4, 6)),
        writable=False,
    ),
    "reversed": Kind(
        (4, 6), lambda x: x[::-1, ::-1], lambda x: x[::-1, ::-1], gathered=True
    ),
    "padded": Kind(
        (3, 3),
        lambda x: x.pad([(1, 0), (1, 2)], PADDING),
        lambda x: np.pad(x, [(1, 0), (1, 2)], constant_values=PADDING),
        gathered=True,
    ),
    "reshaped": Kind(
        (8, 3), lambda x: x.T.reshape(4, 6), lambda x: x.T.reshape(4, 6), gathered=True
    ),
    "swizzled": Kind(
        (4, 6), swizzled, lambda x: x[SWIZZLE, np.arange(6)], gathered=True
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(params=[name for name, kind in KINDS.items() if kind.writable])
def writable(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def integers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers whose sums and products are exact."""
    return rng.integers(-9, 10, shape).astype(np.float64)


def seen_through(kind: Kind, session, rng) -> tuple[RemoteTensor, np.ndarray]:
    """A view and the array that it should be."""
    base = integers(rng, kind.base)
    view = kind.here(session.upload(base))
    assert view.shape == SHAPE
    return view, kind.there(base)


def places_of(kind: Kind) -> np.ndarray:
    """The element of `base` that each index has; -1 is padding."""
    numbered = np.arange(math.prod(kind.base)).reshape(kind.base)
    return kind.there(numbered + PADDING + 1) - PADDING - 1


def test_views_are_inputs_of_permutations(session, rng, kind: Kind):
    view, array = seen_through(kind, session, rng)
    assert view.is_gathered == kind.gathered
    result = session.permute(view, "ij", "ji", alpha=2, op_a="neg")
    np.testing.assert_array_equal(result.numpy(), -2 * array.T)
    assert (result.report.gathered_bytes > 0) == kind.gathered
    assert result.report.gathered_bytes in (0, view.nbytes)


@pytest.mark.parametrize("operand", "abc")
def test_views_are_inputs_of_elementwise_operations(session, rng, kind, operand: str):
    view, array = seen_through(kind, session, rng)
    tensors = {name: integers(rng, SHAPE) for name in "abc"}
    arrays = {**tensors, operand: array}
    tensors[operand] = view
    result = session.elementwise(
        tensors["a"],
        "ij",
        tensors["c"],
        "ij",
        "ij",
        b=tensors["b"],
        modes_b="ij",
        op_ab="mul",
    )
    expected = arrays["a"] * arrays["b"] + arrays["c"]
    np.testing.assert_array_equal(result.numpy(), expected)
    assert (result.report.gathered_bytes > 0) == kind.gathered


@pytest.mark.parametrize("operand", "ac")
def test_views_are_inputs_of_reductions(session, rng, kind: Kind, operand: str):
    view, array = seen_through(kind, session, rng)
    if operand == "a":
        a, b = array, integers(rng, 4)
        result = session.reduce(view, "ij", "i", c=b, beta=3)
    else:
        a, b = integers(rng, (6, 5, 4)), array.T
        result = session.reduce(a, "jki", "ji", c=view.T, beta=3)
    np.testing.assert_array_equal(result.numpy(), a.sum(1) + 3 * b)
    assert session.reduce(view, "ij", "", op="max").item() == array.max()


@pytest.mark.parametrize("operand", "abc")
def test_views_are_inputs_of_contractions(session, rng, kind: Kind, operand: str):
    view, array = seen_through(kind, session, rng)
    arrays = {
        "a": integers(rng, (4, 6)),
        "b": integers(rng, (6, 6)),
        "c": integers(rng, (4, 6)),
    }
    if operand == "b":
        arrays["b"] = array.T
        arrays["c"] = integers(rng, (4, 4))
        tensors = {**arrays, "b": view.T}
    else:
        arrays[operand] = array
        tensors = {**arrays, operand: view}
    result = session.contract(
        tensors["a"], "ik", tensors["b"], "kj", "ij", c=tensors["c"], beta=2
    )
    np.testing.assert_array_equal(
        result.numpy(), arrays["a"] @ arrays["b"] + 2 * arrays["c"]
    )


def test_views_are_operands_of_einsum(session, rng, kind: Kind):
    view, array = seen_through(kind, session, rng)
    for subscripts in "ij->ji", "ij->j", "ij->":
        np.testing.assert_array_equal(
            session.einsum(subscripts, view).numpy(), np.einsum(subscripts, array)
        )
    for subscripts in "ij,kj->ik", "ij,ij->j", "ij,ij":
        np.testing.assert_array_equal(
            session.einsum(subscripts, view, view).numpy(),
            np.einsum(subscripts, array, array),
        )


def test_views_of_every_kind_mix(session, rng):
    seen = [seen_through(kind, session, rng) for kind in KINDS.values()]
    for view, array in seen:
        for other, other_array in seen:
            product = session.contract(view, "ik", other, "jk", "ij")
            np.testing.assert_array_equal(product.numpy(), array @ other_array.T)


SIX = np.arange(6.0)
FOUR = np.arange(4.0)

CALLS = {
    "permute": (
        lambda s, x, out: s.permute(x, "ij", "ij", alpha=2, out=out),
        lambda x, old: 2 * x,
    ),
    "elementwise": (
        lambda s, x, out: s.elementwise(x, "ij", x, "ij", "ij", op="mul", out=out),
        lambda x, old: x * x,
    ),
    "elementwise with itself": (
        lambda s, x, out: s.elementwise(x, "ij", out, "ij", "ij", out=out),
        lambda x, old: x + old,
    ),
    "broadcast": (
        lambda s, x, out: s.permute(x[0], "j", "ij", out=out),
        lambda x, old: np.broadcast_to(x[0], SHAPE),
    ),
    "reduce": (
        lambda s, x, out: s.reduce(x.broadcast_to((2, *SHAPE)), "kij", "ij", out=out),
        lambda x, old: 2 * x,
    ),
    "reduce and add": (
        lambda s, x, out: s.reduce(
            x.broadcast_to((2, *SHAPE)), "kij", "ij", beta=-1, out=out
        ),
        lambda x, old: 2 * x - old,
    ),
    "contract": (
        lambda s, x, out: s.contract(x, "ik", np.outer(SIX, SIX), "kj", "ij", out=out),
        lambda x, old: x @ np.outer(SIX, SIX),
    ),
    "contract and add": (
        lambda s, x, out: s.contract(x, "ij", FOUR, "i", "ij", beta=2, out=out),
        lambda x, old: x * FOUR[:, None] + 2 * old,
    ),
    "einsum": (
        lambda s, x, out: s.einsum("ij,j->ij", x, SIX, out=out),
        lambda x, old: x * SIX,
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_views_are_outputs(session, rng, writable: Kind, call: str):
    base = integers(rng, writable.base)
    x = integers(rng, SHAPE)
    places = places_of(writable)
    tensor = session.upload(base)
    view = writable.here(tensor)
    perform, formula = CALLS[call]
    assert perform(session, session.upload(x), view) is view
    result = formula(x, writable.there(base))
    visible = places >= 0
    base.reshape(-1)[places[visible]] = result[visible]
    np.testing.assert_array_equal(tensor.numpy(), base)
    np.testing.assert_array_equal(view.numpy(), writable.there(base))
    assert view.report.gathered_bytes > 0 or not writable.gathered
    assert view.state == tensor.state == "ready"


def test_views_with_several_indices_for_an_element_are_no_outputs(session):
    tensor = session.upload(np.zeros(9))
    for view in tensor.sliding_window_view(6), tensor.broadcast_to((4, 9)):
        with pytest.raises(tensord.InvalidArgument) as failure:
            session.permute(np.ones(view.shape), "ij", "ij", out=view)
        assert failure.value.reason == "OUTPUT_NOT_INJECTIVE"
    np.testing.assert_array_equal(tensor.numpy(), np.zeros(9))


def test_outputs_must_not_overlap_views_of_them(session):
    array = np.arange(36.0).reshape(6, 6)
    tensor = session.upload(array)
    for out, view in [
        (tensor, tensor.T),
        (tensor[1:], tensor[:-1]),
        (tensor[:, 1:], tensor[:, :-1]),
        (tensor[0], tensor.diagonal()),
    ]:
        modes = "ij"[: view.ndim]
        with pytest.raises(tensord.InvalidArgument) as failure:
            session.permute(view, modes, modes, out=out)
        assert failure.value.reason == "OUTPUT_OVERLAPS_INPUT"
    with pytest.raises(tensord.InvalidArgument) as failure:
        session.contract(tensor, "ik", tensor, "kj", "ij", out=tensor.T)
    assert failure.value.reason == "OUTPUT_OVERLAPS_INPUT"
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_gathered_operands_overlap_nothing(session):
    array = np.arange(36.0).reshape(6, 6)
    for see in (
        lambda x: (x[1:], x[::-1][:5]),
        lambda x: (x[::-1], x),
        lambda x: (x.T.reshape(4, 9), x.reshape(4, 9)),
        lambda x: (x.T.reshape(6, 6), x.T.reshape(6, 6)[::-1]),
    ):
        tensor, expected = session.upload(array), array.copy()
        out, view = see(tensor)
        places, seen = see(np.arange(36).reshape(6, 6))
        session.permute(view, "ij", "ij", out=out)
        expected.reshape(-1)[places] = array.reshape(-1)[seen]
        np.testing.assert_array_equal(tensor.numpy(), expected)


def test_parts_that_share_nothing_may_be_inputs_and_outputs(session):
    array = np.arange(36.0).reshape(6, 6)
    tensor = session.upload(array)
    session.contract(
        tensor[:3, :3], "ik", tensor[3:, :3], "kj", "ij", out=tensor[:3, 3:]
    )
    array[:3, 3:] = array[:3, :3] @ array[3:, :3]
    session.elementwise(
        tensor[3:, 3:], "ij", tensor[3:, 3:], "ij", "ij", out=tensor[3:, 3:]
    )
    array[3:, 3:] *= 2
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_matrices_are_filled_block_by_block(session, rng):
    a, b = integers(rng, (64, 32)), integers(rng, (32, 48))
    left, right = session.upload(a), session.upload(b)
    out = session.upload(np.zeros((64, 48)))
    for i in range(0, 64, 16):
        for j in range(0, 48, 16):
            session.contract(
                left[i : i + 16], "ik", right[:, j : j + 16], "kj", "ij",
                out=out[i : i + 16, j : j + 16],
            )  # fmt: skip
    np.testing.assert_array_equal(out.numpy(), a @ b)


def test_convolutions_are_contractions_of_windows(session, rng):
    image, kernel = integers(rng, (2, 10, 12)), integers(rng, (4, 2, 3, 3))
    padded = session.upload(image).pad([(0, 0), (1, 1), (1, 1)])
    windows = padded.sliding_window_view((3, 3), (1, 2))
    result = session.contract(windows, "cyxpq", kernel, "ocpq", "oyx")
    expected = sliding_window_view(
        np.pad(image, [(0, 0), (1, 1), (1, 1)]), (3, 3), (1, 2)
    )
    np.testing.assert_array_equal(
        result.numpy(), np.einsum("cyxpq,ocpq->oyx", expected, kernel)
    )
    assert result.report.gathered_bytes == windows.nbytes


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_views_of_every_dtype_are_operands(session, rng, dtype: np.dtype):
    array = rng.integers(0, 2, (5, 7)).astype(dtype)
    tensor = session.upload(array)
    for here, there in [
        (tensor[::-2, 1:], array[::-2, 1:]),
        (tensor.pad(1, 1), np.pad(array, 1, constant_values=np.ones((), dtype))),
        (tensor.T.reshape(5, 7), array.T.reshape(5, 7)),
    ]:
        moved = session.permute(here, "ij", "ji")
        assert moved.dtype == dtype
        np.testing.assert_array_equal(moved.numpy(), there.T)
    target = session.upload(np.zeros((7, 5), dtype))
    session.permute(tensor, "ij", "ji", out=target[::-1])
    np.testing.assert_array_equal(target.numpy(), array.T[::-1])


def test_large_views_are_gathered_and_scattered(session, rng):
    array = rng.random((700, 900))
    tensor, out = session.upload(array), session.upload(np.zeros((900, 700)))
    result = session.permute(tensor[::-1, ::-1], "ij", "ji", out=out[::-1])
    np.testing.assert_array_equal(out.numpy(), array[::-1, ::-1].T[::-1])
    assert result.report.gathered_bytes == 2 * array.nbytes
    weights = rng.random((700, 8))
    product = session.contract(tensor.T.reshape(900, 700), "ik", weights, "kj", "ij")
    np.testing.assert_allclose(product.numpy(), array.T @ weights, rtol=1e-12)


def test_pipelines_take_views(session, rng):
    array = integers(rng, (6, 6))
    tensor, out = session.upload(array), session.upload(np.zeros((6, 6)))
    with session.pipeline() as pipeline:
        for i in range(6):
            pipeline.permute(tensor[::-1, i], "i", "i", alpha=i, out=out[i])
        total = pipeline.reduce(out.T.reshape(-1), "i", "")
        with pytest.raises(TypeError, match="not subscriptable"):
            total[0]
    expected = array[::-1].T * np.arange(6)[:, None]
    np.testing.assert_array_equal(out.numpy(), expected)
    assert float(total.result()) == expected.sum()


def test_explain_takes_views(session):
    tensor = session.upload(np.zeros((6, 8)))
    for view in (
        tensor[1:, ::2],
        tensor[::-1],
        tensor.pad(1),
        tensor.broadcast_to((6, 8)),
    ):
        plan = session.explain.permute(view, "ij", "ji")
        assert plan.kernel == session.permute(view, "ij", "ji").report.kernel
        assert session.explain.contract(view, "ij", view, "kj", "ik").kernel


def test_factor_zero_means_that_a_view_is_not_gathered(session):
    view = session.upload(np.full((3, 3), np.nan))[::-1]
    result = session.elementwise(view, "ij", np.ones((3, 3)), "ij", "ij", alpha=0)
    np.testing.assert_array_equal(result.numpy(), np.ones((3, 3)))
    assert result.report.gathered_bytes == 0
