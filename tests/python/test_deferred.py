"""Deferred sessions compute what others do, in order, and lose no error."""

from __future__ import annotations

import gc
import inspect
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tensord
from tensord.transforms import PassThrough, Slice, place
from waiting import eventually, listens


@pytest.fixture
def x(deferred: tensord.DeferredSession) -> tensord.RemoteTensor:
    return deferred.upload(np.array([0.0, 1.0]))


def calls(session: tensord.Session, operation: str) -> int:
    """How many operations of a kind the server has counted, of all its sessions."""
    return sum(
        each.count for each in session.stats().operations if each.operation == operation
    )


def keep_busy(session: tensord.Session) -> tensord.RemoteTensor:
    """Has the device compute for a while."""
    large = session.upload(np.full((1000, 1000), 1e-3))
    product = large
    for _ in range(24):
        product = session.contract(product, "ik", large, "kj", "ij")
    return product


def refused(session: tensord.Session, x: tensord.RemoteTensor) -> tensord.RemoteTensor:
    """Calls what the server alone finds wrong: there is no such kernel."""
    return session.elementwise(x, "i", x, "i", algorithm="no.such.kernel")


def test_operations_return_before_they_are_done(deferred, x):
    product = keep_busy(deferred)
    last = deferred.reduce(product, "ij", "")
    assert last.report is None and last.shape == () and last.dtype == np.float64
    np.testing.assert_allclose(last.numpy(), 1e6 * 1e-3)
    assert last.report is not None


@pytest.mark.parametrize(
    "operation",
    [
        lambda s, a, b: s.contract(a, "ik", b, "kj", "ij"),
        lambda s, a, b: s.contract(a, "ik", b, "kj"),
        lambda s, a, b: s.einsum("ik,kj->ji", a, b),
        lambda s, a, b: s.permute(a, "ij", "ji", alpha=2),
        lambda s, a, b: s.permute(
            a, "ij", "ji", pad_width=((1, 2), (0, 3)), pad_value=7
        ),
        lambda s, a, b: s.reduce(a, "ij", "j", op="max"),
        lambda s, a, b: s.reduce(a, "ij", "j", c=np.ones(4), beta=3),
        lambda s, a, b: s.reduce(a, "ij", "ji", along="j"),
        lambda s, a, b: s.reduce(a, "ij", "ij", along="i", sort="ascending"),
        lambda s, a, b: s.elementwise(a, "ij", a, "ij", op="mul"),
        lambda s, a, b: s.elementwise(a, "ij", a[0], "j", "ji"),
        lambda s, a, b: s.permute(a, "ij", "ji", dtype=np.float32),
        lambda s, a, b: a + 1,
        lambda s, a, b: (a * a).sum(axis=0),
        lambda s, a, b: np.einsum("ij->j", a),
        lambda s, a, b: s.einsum("ik,kj,jl->il", a, b, np.ones((2, 2))),
        lambda s, a, b: s.run("D[i,j] := 2*A[i,k]*B[k,j]", A=a, B=b),
        lambda s, a, b: s.plan.contract(a, "ik", b, "kj", "ij")(a, b),
        lambda s, a, b: s.factorize("ij->ik,kj", a, method="qr")[1],
        lambda s, a, b: s.einsum("ik,kj->ij", a, np.ones((4, 3), np.float32)),
    ],
)
def test_results_are_those_of_other_sessions(
    address: str, deferred, rng, operation: Callable[..., tensord.RemoteTensor]
) -> None:
    a, b = rng.random((3, 4)), rng.random((4, 2))
    with tensord.connect(address) as session:
        wanted = operation(session, session.upload(a), session.upload(b))
        got = operation(deferred, deferred.upload(a), deferred.upload(b))
        assert (got.shape, got.dtype, got.strides) == (
            wanted.shape,
            wanted.dtype,
            wanted.strides,
        )
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


def test_a_loop_goes_over_one_stream(private_address: str) -> None:
    with tensord.connect(private_address, deferred=True) as session:
        a = session.upload(np.eye(4))
        product = a
        for _ in range(100):
            product = session.einsum("ij,jk->ik", product, a)
        np.testing.assert_array_equal(product.numpy(), np.eye(4))
        assert calls(session, "contract") == 100
        assert calls(session, "execute_stream") in (0, 1)


def test_operations_take_effect_in_the_order_of_calls(deferred, x):
    one = deferred.upload(np.ones(2))
    for _ in range(50):
        x.write(np.array([0.0, 1.0]))
        before = x.copy()
        for i in range(20):
            deferred.elementwise(x, "i", x if i % 2 == 0 else one, "i", "i", out=x)
        np.testing.assert_array_equal(x.numpy(), [1023, 2047])
        np.testing.assert_array_equal(before.numpy(), [0, 1])


def test_what_is_not_deferred_comes_after_what_was(deferred, x):
    busy = keep_busy(deferred)
    y = x + 1
    view = y[::-1]
    doubled = deferred.run("D[i] := 2*Y[i]", Y=y)
    y.write(np.array([5.0, 6.0]))
    z = view + 0
    np.testing.assert_array_equal(doubled.numpy(), [2, 4])
    np.testing.assert_array_equal(z.numpy(), [6, 5])
    assert busy.state == "ready"


def test_an_error_comes_at_the_use_and_names_the_call(deferred, x):
    line = inspect.currentframe().f_lineno + 1
    bad = deferred.elementwise(x, "i", x, "i", algorithm="no.such.kernel")
    good = x + 1
    np.testing.assert_array_equal(good.numpy(), [1, 2])
    for use in (
        bad.numpy,
        bad.copy,
        lambda: bad.state,
        lambda: bad[::-1],
        lambda: bad + 1,
    ):
        with pytest.raises(tensord.NotFound) as raised:
            use()
        assert "no.such.kernel" in str(raised.value)
        assert str(raised.value).endswith(
            f"; the call was elementwise in {__file__}, line {line}"
        )
    deferred.wait()  # It has been met.


def test_what_depends_on_it_fails_with_the_same_error(deferred, x):
    keep_busy(deferred)  # so that it is not known yet
    bad = refused(deferred, x)
    dependent = (bad + 1).sum()
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        dependent.numpy()
    deferred.wait()


def test_an_error_of_an_existing_output_goes_with_its_next_contents(deferred, x):
    out = deferred.create(2, np.float64)
    deferred.elementwise(x, "i", x, "i", out=out, algorithm="no.such.kernel")
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        out.numpy()
    deferred.wait()
    keep_busy(deferred)
    deferred.elementwise(x, "i", x, "i", out=out, algorithm="no.such.kernel")
    deferred.elementwise(x, "i", x, "i", out=out)
    np.testing.assert_array_equal(out.numpy(), [0, 2])
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        deferred.wait()  # Nobody has met the second one.
    deferred.wait()


def test_what_is_written_anew_is_good_again(deferred, x):
    out = deferred.create(2, np.float64)
    deferred.elementwise(x, "i", x, "i", out=out, algorithm="no.such.kernel")
    out.write(np.array([3.0, 4.0]))
    np.testing.assert_array_equal((out + 0).numpy(), [3, 4])
    missing = refused(deferred, x)
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        missing.write(np.zeros(2))  # It was never there.
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        deferred.wait()  # Nobody has met the one of out.


def test_views_and_tensors_share_what_is_missing(deferred):
    t = deferred.upload(np.full((2, 2), 3.0))
    view, other = t[0], t[1]
    assert view.name != other.name  # They are made.
    deferred.permute(t, "ij", "ji", out=t, algorithm="no.such.kernel")
    tripled = other * 3
    for use in (
        view.numpy,
        tripled.numpy,
        t.copy,
        lambda: t[1].state,
        lambda: view * 3,
    ):
        with pytest.raises(tensord.NotFound, match="no.such.kernel"):
            use()
    t.write(np.ones((2, 2)))
    np.testing.assert_array_equal(view.numpy(), [1, 1])
    deferred.permute(other, "i", out=view, algorithm="no.such.kernel")
    for use in (view.numpy, t.numpy, deferred.tensor(t.name).numpy):
        with pytest.raises(tensord.NotFound, match="no.such.kernel"):
            use()
    view.write(np.zeros(2))
    np.testing.assert_array_equal(t.numpy(), [[0, 0], [1, 1]])
    deferred.wait()


def test_calls_with_a_timeout_see_what_is_missing(deferred):
    t = deferred.upload(np.full((2, 2), 3.0))
    deferred.permute(t, "ij", "ji", out=t, algorithm="no.such.kernel")
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        deferred.permute(t, "ij", "ji", timeout=5)
    with pytest.raises(ValueError):
        t.write([[1.0], [2.0, 3.0]])
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        t.numpy()


@pytest.mark.timing
def test_much_may_be_deferred_as_long_as_it_goes_on(address: str) -> None:
    with tensord.connect(address, deferred=True, timeout=1.5) as session:
        large = session.upload(np.full((900, 900), 1 / 900))
        product = large
        begun = time.monotonic()
        while time.monotonic() - begun < 2:
            product = session.contract(product, "ik", large, "kj", "ij")
        np.testing.assert_allclose(product[0, 0].numpy(), 1 / 900)


@pytest.mark.timing
@pytest.mark.parametrize("mode", ["deferred", "recorded"])
def test_a_server_that_is_silent_holds_nobody_for_ever(
    tmp_path: Path, mode: str
) -> None:
    command = [
        os.environ["TENSORD_SERVER"],
        f"--listen=unix:{tmp_path}/s",
        "--devices=cpu",
    ]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        assert listens(tmp_path / "s")
        session = tensord.connect(f"unix:{tmp_path}/s", timeout=2, **{mode: True})
        x = session.upload(np.zeros(2))
        (x + 1).numpy()
        server.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        with pytest.raises(tensord.DeadlineExceeded):
            for _ in range(1000):
                x = x + 1
        for seconds in 1, 0.2:
            with pytest.raises(tensord.DeadlineExceeded):
                session.wait(seconds)
        session.close(1)
        assert time.monotonic() - begun < 60
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize("timeout", ["x", -1, float("nan")])
def test_a_timeout_is_checked(deferred, timeout: object) -> None:
    with pytest.raises((TypeError, tensord.InvalidArgument)):
        deferred.wait(timeout)


def test_deferred_is_a_bool(address: str) -> None:
    with pytest.raises(TypeError):
        tensord.connect(address, deferred="yes")  # type: ignore[arg-type]


def test_a_pipeline_comes_after_what_was_deferred(deferred, x):
    y = keep_busy(deferred)[0, :2] + x
    with deferred.pipeline() as pipeline:
        pipeline.elementwise(x, "i", x, "i", out=x)
    np.testing.assert_allclose(y.numpy() - x.numpy(), [1e-3, -1 + 1e-3], atol=1e-6)


def test_an_error_that_nobody_met_ends_the_session(address: str) -> None:
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        with tensord.connect(address, deferred=True) as session:
            refused(session, session.upload(np.zeros(2)))
    with pytest.raises(KeyError, match="of the user"):
        with tensord.connect(address, deferred=True) as session:
            refused(session, session.upload(np.zeros(2)))
            raise KeyError("of the user")


def test_what_can_be_seen_to_be_wrong_is_refused_at_once(deferred, x):
    with pytest.raises(tensord.InvalidArgument, match="unary operator"):
        deferred.permute(x, "i", op_a="no such")
    with pytest.raises(TypeError):
        deferred.permute(x, "i", colour="red")
    with pytest.raises(tensord.InvalidArgument):
        deferred.contract(x, "i", x, "j", "ik")  # The server is asked: k is in neither.
    deferred.wait()


@pytest.mark.timing
def test_a_timeout_is_that_of_one_call(deferred, x):
    np.testing.assert_array_equal(deferred.permute(x, "i", timeout=60).numpy(), [0, 1])
    keep_busy(deferred)
    with pytest.raises(tensord.DeadlineExceeded, match="were not done after"):
        deferred.wait(0.001)
    deferred.wait()


def test_dropped_results_leave_the_server(private_address: str) -> None:
    with tensord.connect(private_address, deferred=True) as session:
        a = session.upload(np.ones(10))
        for _ in range(300):
            a + 1
        product = a
        for _ in range(300):
            product = product + 1  # Each is dropped while the next one needs it.
        np.testing.assert_array_equal(product.numpy(), np.full(10, 301.0))
        gc.collect()

        def tensors() -> int:
            session.link.keeper.flush()
            return len(session.list())

        assert eventually(lambda: tensors() == 2)


def test_a_new_tensor_may_have_a_name(deferred, x):
    named = deferred.permute(x, "i", name="deferred-result")
    assert named.name == "deferred-result"
    np.testing.assert_array_equal(deferred.tensor("deferred-result").numpy(), [0, 1])
    again = deferred.permute(x, "i", name="deferred-result")
    with pytest.raises(tensord.AlreadyExists):
        again.numpy()


def test_a_name_that_is_taken_harms_nobody(deferred, x):
    first = deferred.upload(np.ones(2), name="taken")
    second = deferred.permute(x, "i", name="taken")
    with pytest.raises(tensord.AlreadyExists):
        second.numpy()
    np.testing.assert_array_equal(first.numpy(), [1, 1])
    np.testing.assert_array_equal(deferred.tensor("taken").numpy(), [1, 1])
    failed = deferred.permute(x, "i", name="later", algorithm="no.such.kernel")
    with pytest.raises(tensord.NotFound, match="no.such.kernel"):
        failed.numpy()
    uploaded = deferred.upload(np.ones(2), name="later")
    np.testing.assert_array_equal((uploaded[::-1] + 0).numpy(), [1, 1])


@pytest.mark.timing
def test_threads_share_a_session(deferred):
    wrong = []

    def compute(number: int) -> None:
        value = deferred.upload(np.full(3, float(number)))
        for _ in range(50):
            value = value + 1
        if not np.array_equal(value.numpy(), np.full(3, number + 50.0)):
            wrong.append(number)

    threads = [threading.Thread(target=compute, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("mode", ["deferred", "recorded"])
def test_a_server_that_goes_is_told_at_the_use(mode: str) -> None:
    server = tensord.serve(threads=1)
    address = server.__enter__()
    session = tensord.connect(address, **{mode: True})
    x = session.upload(np.zeros(2))
    keep_busy(session)
    y = x + 1
    server.__exit__(None, None, None)
    with pytest.raises(tensord.Error):
        y.numpy()
    with pytest.raises(tensord.Error):
        (x + 1).numpy()
    session.close()


@pytest.mark.parametrize("mode", ["deferred", "recorded"])
def test_a_session_that_is_dropped_ends(address: str, mode: str) -> None:
    session = tensord.connect(address, job="dropped while deferred", **{mode: True})
    tensor = session.upload(np.zeros(2)) + 1
    tensor += 1
    keeper = session.link.keeper
    del tensor, session
    gc.collect()
    keeper.join(20)
    assert not keeper._thread.is_alive()


def test_views_are_part_of_what_uses_them(deferred, x):
    count = calls_of_views(deferred)
    product = keep_busy(deferred)
    seen = product.T[:2, ::2].reshape(-1)
    assert seen.shape == (1000,) and seen.is_view and product.report is None
    total = deferred.reduce(seen, "i", "")
    np.testing.assert_allclose(total.numpy(), 1000 * 1e-3)
    assert calls_of_views(deferred) == count
    assert seen.viewed == product.name and seen.strides is None
    assert calls_of_views(deferred) == count + 1  # It has a name from then on.
    for wrong in (
        lambda: product[2000],
        lambda: product.view([[place(PassThrough(), 0, 0)]]),
        lambda: product.view(
            [[place(Slice(0, 2000), 0, 0), place(PassThrough(), 1, 1)]]
        ),
    ):
        with pytest.raises(tensord.InvalidArgument):
            wrong()


def calls_of_views(session: tensord.Session) -> int:
    """How many views the server has made."""
    return sum(each.is_view for each in session.list())


@pytest.mark.parametrize(
    "see",
    [
        lambda t: t[1:, ::-1, None],
        lambda t: t.reshape(6, 4).T,
        lambda t: t.reshape(2, 2, 6)[..., 1].swapaxes(0, 1),
        lambda t: t.diagonal(1)[..., None].squeeze(),
        lambda t: t.expand_dims(1).broadcast_to((4, 3, 6)),
        lambda t: t.flip().moveaxis(0, 1).ravel(),
    ],
)
def test_views_of_views_are_those_of_other_sessions(deferred, address, see):
    array = np.arange(24.0).reshape(4, 6)
    with tensord.connect(address) as other:
        expected = see(other.upload(array))
        seen = see(deferred.upload(array))
        assert seen.shape == expected.shape
        np.testing.assert_array_equal(seen.numpy(), expected.numpy())
        assert seen.strides == expected.strides
        assert seen.is_gathered == expected.is_gathered


def test_views_are_written_and_outlive_what_they_see(deferred):
    t = deferred.upload(np.zeros((4, 4)))
    row = t[1][::-1]
    row[...] = np.arange(4.0)
    assert t.numpy()[1].tolist() == [3, 2, 1, 0]
    part = (t + 1)[1, :2]
    gc.collect()
    assert part.numpy().tolist() == [4, 3]
    named = deferred.upload(np.ones(3), name="named")
    seen = deferred.tensor("named")[::2]
    deferred.delete([named])
    assert seen.numpy().tolist() == [1, 1]


def test_views_of_what_failed_fail(deferred, x):
    broken = refused(deferred, x)
    for use in (
        lambda: broken[None].numpy(),
        lambda: (broken[::-1].reshape(2, 1) + 1).numpy(),
        lambda: broken.reshape(1, 2),
    ):
        with pytest.raises(tensord.Error, match="the call was elementwise"):
            use()
    deferred.wait()


def test_factorizations_are_deferred(deferred):
    product = keep_busy(deferred)
    array = np.random.default_rng(1).random((2, 4, 3))
    q, r = deferred.factorize("bij->bik,bkj", array, method="qr")
    u, s, v = deferred.factorize(
        "ij->ik,k,kj", array[0] * (1 + 1j), method="svd", rank=2
    )
    w, vectors = deferred.factorize("ij->k,ik", np.diag([2.0, 1.0]), method="eigh")
    (lower,) = deferred.factorize(
        "ij->ik", deferred.upload(np.eye(2)) * 4, method="cholesky"
    )
    assert product.report is not None  # An upload waits.
    again = deferred.factorize("ij->ik,kj", q[0], method="lq", name=("l", None))
    assert [each.shape for each in (q, r, u, s, v, w, vectors, lower)] == [
        (2, 4, 3), (2, 3, 3), (4, 2), (2,), (2, 3), (2,), (2, 2), (2, 2)
    ]  # fmt: skip
    assert u.dtype == np.complex128 and s.dtype == np.float64
    np.testing.assert_allclose((q @ r).numpy(), array)
    np.testing.assert_allclose(w.numpy(), [1, 2])
    np.testing.assert_allclose(lower.numpy(), 2 * np.eye(2))
    np.testing.assert_allclose((again[0] @ again[1]).numpy(), q[0].numpy(), atol=1e-15)
    assert s.report is v.report or s.report == v.report
    assert s.report.kept_extent == 2
    assert deferred.tensor("l").shape == again[0].shape == (4, 3)


def test_all_results_of_a_factorization_fail_together(deferred):
    bad = deferred.upload(np.full((3, 3), np.nan))
    u, s, v = deferred.factorize("ij->ik,k,kj", bad, method="svd")
    line = inspect.currentframe().f_lineno - 1
    for each in u, s, v, u @ v:
        with pytest.raises(
            tensord.InvalidArgument, match=rf"factorize in .*line {line}"
        ):
            each.numpy()
    good = deferred.upload(np.eye(2))
    (root,) = deferred.factorize("ij->ik", good, method="cholesky", timeout=30)
    assert root.report is not None


@pytest.mark.parametrize("begin", ["whole", "view"])
def test_operands_may_overlap_the_output(deferred, begin: str) -> None:
    array = np.arange(16.0).reshape(4, 4)
    t = deferred.upload(array)
    b = t if begin == "whole" else t[::-1]
    x = array if begin == "whole" else array[::-1]
    b -= b[0]
    x -= x[0].copy()
    b += b.T
    x += x.T.copy()
    b[1:] += b[:-1]
    x[1:] += x[:-1].copy()
    b[1:] = b[:-1]
    x[1:] = x[:-1].copy()
    b[0] = b[:, 1]
    x[0] = x[:, 1].copy()
    b[1:3] += 1
    x[1:3] += 1
    b *= b
    x *= x
    np.testing.assert_array_equal(t.numpy(), array)
    deferred.wait()


def test_a_view_that_repeats_is_refused_as_output_at_the_call(deferred) -> None:
    t = deferred.upload(np.arange(3.0))
    view = t.broadcast_to((2, 3))
    with pytest.raises(tensord.InvalidArgument) as raised:
        view += 1
    assert raised.value.reason == "OUTPUT_NOT_INJECTIVE"
    row = t.broadcast_to((2, 3))[0]
    row += 1
    np.testing.assert_array_equal(t.numpy(), [1, 2, 3])
    deferred.wait()


def test_what_is_refused_leaves_contents_as_they_were(deferred, x) -> None:
    t = deferred.upload(np.arange(3.0))
    for use in lambda: (t[1:] + 1).numpy(), t.numpy, deferred.wait:
        deferred.permute(t[:2], "i", "i", out=t[1:])
        with pytest.raises(tensord.InvalidArgument, match="d overlaps a.*permute"):
            use()
        np.testing.assert_array_equal(t.numpy(), [0, 1, 2])
    deferred.wait()


def test_views_keep_the_memory_of_what_is_deleted(deferred) -> None:
    t = deferred.upload(np.arange(3.0))
    v, w = t[1:], t[1:][::-1]
    t.delete()
    assert v.numpy().tolist() == [1, 2] and w.numpy().tolist() == [2, 1]
    u = v + 1
    row = u[0]
    deferred.delete([u])
    assert row.numpy() == 2
    with v:
        part = v[:1]
    assert part.numpy().tolist() == [1]
