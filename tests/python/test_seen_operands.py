"""Views of deferred tensors are part of what uses them: no call makes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tensord
import tensord.array as xp
from tensord.transforms import Embed, Pad, place

A = np.arange(24.0).reshape(4, 6)
SQUARE = np.eye(4) * 3 + np.arange(16.0).reshape(4, 4) / 7


def view_count(session: tensord.Session) -> int:
    """How many views have a name."""
    return sum(each.is_view for each in session.list())


USES: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {
    "contraction": (
        lambda s, t: s.einsum("ij,kj->ik", t[1:3], t.T[:, ::2].T),
        lambda a: a[1:3] @ a.T[:, ::2],
    ),
    "products": (
        lambda s, t: s.einsum("ij,jk,kl->il", t[:2], t.T, t[:, 1:4]),
        lambda a: a[:2] @ a.T @ a[:, 1:4],
    ),
    "reduction": (lambda s, t: t[::-1, 2].sum(), lambda a: a[::-1, 2].sum()),
    "elementwise": (lambda s, t: t[0] * t[:1] + t[-1], lambda a: a[0] * a[:1] + a[-1]),
    "comparison": (lambda s, t: t[0] < t[1:, ::-1], lambda a: a[0] < a[1:, ::-1]),
    "choice": (
        lambda s, t: xp.where(t[0] > 2, t[1], t[:, :1][2]),
        lambda a: np.where(a[0] > 2, a[1], a[:, :1][2]),
    ),
    "statements": (
        lambda s, t: s.run("D[i] := A[i,j]*B[j] + v", A=t[1:3], B=t[0], v=2.0),
        lambda a: a[1:3] @ a[0] + 2,
    ),
    "factors": (
        lambda s, t: abs(s.factorize("ij->ik,kj", t[:3, :2], method="qr")[1]),
        lambda a: np.abs(np.linalg.qr(a[:3, :2])[1]),
    ),
    "values": (
        lambda s, t: xp.linalg.svdvals(t.reshape(3, 8)[:, 1:]),
        lambda a: np.linalg.svd(a.reshape(3, 8)[:, 1:], compute_uv=False),
    ),
    "equations": (
        lambda s, t: xp.linalg.solve(s.upload(SQUARE).T, t[:, 2:4]),
        lambda a: np.linalg.solve(SQUARE.T, a[:, 2:4]),
    ),
    "padding": (
        lambda s, t: t.pad(1, value=7) + 0,
        lambda a: np.pad(a, 1, constant_values=7),
    ),
    "diagonal": (lambda s, t: t.diagonal(1).copy(), lambda a: a.diagonal(1)),
    "windows": (
        lambda s, t: t.sliding_window_view((2, 3)).sum((2, 3)),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 3)).sum((2, 3)),
    ),
    "repeated": (
        lambda s, t: t[:, None, :1].broadcast_to((4, 5, 6)) * 2,
        lambda a: np.broadcast_to(a[:, None, :1], (4, 5, 6)) * 2,
    ),
}


@pytest.mark.parametrize("use", USES)
def test_views_are_seen_everywhere(deferred: tensord.DeferredSession, use: str) -> None:
    ours, theirs = USES[use]
    for scale in 1.0, -0.5, 3.0:  # Those after the first one are written anew.
        t = deferred.upload(A * scale)
        result = ours(deferred, t)
        assert isinstance(result, tensord.RemoteTensor)
        expected = np.asarray(theirs(A * scale))
        assert result.shape == expected.shape and result.dtype == expected.dtype
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)
    # Padded views are made.
    assert view_count(deferred) == 0 or use in ("padding", "diagonal")


def test_views_are_made_for_servers_that_know_no_others(
    deferred: tensord.DeferredSession,
) -> None:
    deferred.deferral.sees_operands = False
    for ours, theirs in USES.values():
        t = deferred.upload(A)
        result = ours(deferred, t)
        assert isinstance(result, tensord.RemoteTensor)
        np.testing.assert_allclose(result.numpy(), theirs(A), rtol=1e-12, atol=1e-12)
    t[1:3, ::2] = 7.0
    np.testing.assert_array_equal(t[1, :3].numpy(), [7, A[1, 1], 7])
    row = t[0]
    assert (row + 1).shape == (6,) and view_count(deferred) > 0


def test_prepared_programs_and_plans_see_views(deferred: tensord.DeferredSession) -> None:
    t = deferred.upload(A)
    program = deferred.program("D[i] := A[i,j]*B[j]", A=t[1:3], B=t[0])
    product = deferred.plan.einsum("ij,kj->ik", t[1:3], t[::2])
    for first in 1, 0:
        result = program(A=t[first : first + 2], B=t[3])
        np.testing.assert_allclose(result.numpy(), A[first : first + 2] @ A[3])
        planned = deferred.execute(product, t[first : first + 2], t[first::2])
        expected = A[first : first + 2] @ A[first::2].T
        np.testing.assert_allclose(planned.numpy(), expected)
    out = deferred.upload(np.zeros((4, 2)))
    deferred.execute(product, t[1:3], t[::2], out=out[1:3])
    expected = np.zeros((4, 2))
    expected[1:3] = A[1:3] @ A[::2].T
    np.testing.assert_allclose(out.numpy(), expected)
    wanted = view_count(deferred)
    np.testing.assert_array_equal(t[2, 1:3].numpy(), A[2, 1:3])
    assert view_count(deferred) == wanted


def test_parts_are_written(deferred: tensord.DeferredSession) -> None:
    a, t = A.copy(), deferred.upload(A)
    for row in range(3):
        t[row] = t[row + 1]
        a[row] = a[row + 1]
        t[:, row] += 1
        a[:, row] += 1
        t.T[row, ::-2] = row
        a.T[row, ::-2] = row
        t.reshape(2, 12)[1, row:3] = t[0, :1]
        a.reshape(2, 12)[1, row:3] = a[0, :1]
        deferred.einsum("i,i->i", t[0], t[1], out=t[2])
        a[2] = a[0] * a[1]
    np.testing.assert_allclose(t.numpy(), a)
    assert view_count(deferred) == 0
    repeated = t[:, :1].broadcast_to((4, 6))
    with pytest.raises(tensord.InvalidArgument, match="two indices"):
        deferred.permute(t, "ij", out=repeated)
    overlapping = t.view([[place(Embed((3, 2), (1, 1)), 0, (0, 1))] + [place(Pad(0, 0), 1, 2)]])
    with pytest.raises(tensord.InvalidArgument, match="two indices"):
        overlapping[...] = 0
    np.testing.assert_allclose(t.numpy(), a)


def test_views_of_very_many_views(deferred: tensord.DeferredSession) -> None:
    a, t = np.arange(100.0), deferred.upload(np.arange(100.0))
    for _ in range(45):
        a, t = a[1:], t[1:]
    np.testing.assert_array_equal((t + 1).numpy(), a + 1)
    np.testing.assert_array_equal(t.numpy(), a)
    t[:2] = 7
    np.testing.assert_array_equal(t[:3].numpy(), [7, 7, a[2]])


def test_many_operations_see_views_of_many_views(
    deferred: tensord.DeferredSession,
) -> None:
    a = np.arange(2.0**12).reshape((2,) * 12)
    t, turned = deferred.upload(a), deferred.upload(a)
    for _ in range(30):
        turned = turned[(slice(None),) * 12].T
    rows = deferred.upload(np.arange(40.0))
    for _ in range(32):
        rows = rows[1:]
    for _ in range(200):  # They go out together.
        product = t * turned
        total = rows + rows
    np.testing.assert_array_equal(product.numpy(), a * a)
    np.testing.assert_array_equal(total.numpy(), 2 * np.arange(32.0, 40.0))


def test_a_part_that_failed_is_good_once_it_is_written_again(
    deferred: tensord.DeferredSession,
) -> None:
    t, x = deferred.upload(np.zeros(4)), deferred.upload(np.ones(2))
    deferred.permute(x, "i", out=t[:2], algorithm="no.such.kernel")
    deferred.permute(x, "i", out=t[:2])
    np.testing.assert_array_equal(t.numpy(), [1, 1, 0, 0])
    first, last = t[:2], t[2:]
    deferred.permute(x, "i", out=first, algorithm="no.such.kernel")
    deferred.permute(x, "i", out=last)
    for use in t.numpy, t[:2].numpy, (t[:1] + 1).numpy:
        with pytest.raises(tensord.NotFound, match="no.such.kernel"):
            use()
    deferred.permute(x, "i", out=first)
    np.testing.assert_array_equal(t[1:3].numpy(), [1, 1])
    # Also of one that has a name, and when another one sees it.
    other = t[:2]
    assert first.name
    for bad, good in (first, other), (other, first):
        deferred.permute(x, "i", out=bad, algorithm="no.such.kernel")
        deferred.permute(x, "i", out=good)
        np.testing.assert_array_equal(t.numpy(), [1, 1, 1, 1])


def test_requests_of_other_operations_are_not_taken(
    deferred: tensord.DeferredSession,
) -> None:
    t, out = deferred.upload(A), deferred.upload(np.zeros((6, 4)))
    assert deferred.einsum("ij->ji", t).shape == (6, 4)
    with pytest.raises(TypeError, match="method"):
        deferred.factorize("ij->ji", t)  # type: ignore[call-arg]
    deferred.permute(t, "ij", "ji", out=out)
    for told in {"dtype": "f4"}, {"name": "new"}:
        with pytest.raises(tensord.InvalidArgument, match="for a new tensor"):
            deferred.permute(t, "ij", "ji", out=out, **told)  # type: ignore[arg-type]
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        deferred.permute(t, "ij", "ji", algorithm="no.such.kernel").numpy()
    for factor in 2, 2.5, -1, True:
        expected = A.T * factor
        np.testing.assert_array_equal(
            deferred.permute(t, "ij", "ji", alpha=factor).numpy(), expected
        )
        np.testing.assert_array_equal(
            deferred.permute(t, (0, 1), [1, 0], alpha=factor).numpy(), expected
        )
    for array in A[0], A[0][::-1], A[:, ::2].T, np.asfortranarray(A), A.astype(">f8"):
        labels = "ij"[: array.ndim]
        ones = deferred.upload(np.ones(array.shape))
        result = deferred.elementwise(ones, labels, array, labels, op="mul", dtype="f8")
        np.testing.assert_array_equal(result.numpy(), array)


def test_what_is_deleted_stays_as_long_as_it_is_seen(
    deferred: tensord.DeferredSession,
) -> None:
    t = deferred.upload(A)
    sums = [(t[i] * t[i, ::-1]).sum() for i in range(4)]
    row = t[1]
    del t
    assert [float(each) for each in sums] == [(a * a[::-1]).sum() for a in A]
    np.testing.assert_array_equal((row + row).numpy(), 2 * A[1])


def test_views_keep_what_is_deleted_by_name(deferred: tensord.DeferredSession) -> None:
    t = deferred.permute(deferred.upload(A), "ij", "ji")
    row, column = t[1], t[:, 1]
    np.testing.assert_array_equal(row.numpy(), A[:, 1])
    name = t.name
    assert deferred.delete([name]) == 1
    deferred.upload(np.full((6, 4), 7.0), name=name)
    np.testing.assert_array_equal(row.numpy(), A[:, 1])
    np.testing.assert_array_equal((column + 0).numpy(), A[1])


def test_values_come_back_where_memory_is_full(address: str) -> None:
    with tensord.connect(address, deferred=True, quota_bytes=1 << 16) as full:
        array = np.arange(8000.0)
        t = full.upload(array)
        np.testing.assert_array_equal(t.numpy(), array)
        np.testing.assert_array_equal(t[1:].numpy(), array[1:])
        assert any(each.code == "RESOURCE_EXHAUSTED" for each in full.stats().operations)


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "i2", "i4", "i8", "u1", "f2", "f4", "f8", "c8", "c16", "bfloat16"]
)
def test_small_values_of_all_types_come_back(
    deferred: tensord.DeferredSession, dtype: str
) -> None:
    kind = tensord.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    for shape in (), (0,), (3, 0), (1,), (5, 3), (2, 3, 4):
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)
        t = deferred.upload(array)
        for seen, expected in (t, array), (t[...], array), (t.T, array.T):
            result = seen.numpy()
            assert result.dtype == expected.dtype and result.shape == expected.shape
            np.testing.assert_array_equal(result, expected)
            assert result.flags.writeable
    order = deferred.permute(deferred.upload(A.astype("f4")), "ij", "ji")
    np.testing.assert_array_equal(order.numpy(), A.T)


def test_values_of_what_failed_are_told(deferred: tensord.DeferredSession) -> None:
    singular = deferred.upload(np.zeros((2, 2)))
    inverse = xp.linalg.inv(singular)
    with pytest.raises(tensord.InvalidArgument, match=r"solve in .*test_seen_operands.py") as told:
        inverse[0].numpy()
    assert told.value.reason == "MATRIX_SINGULAR"
    with pytest.raises(tensord.FailedPrecondition, match="t[0-9]+") as told:
        deferred.create((2, 2), "f8")[0].numpy()
    assert told.value.reason == "TENSOR_NOT_READY"
