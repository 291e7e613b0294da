"""Pipelines keep the order of their operations, and lose nothing."""

from __future__ import annotations

import contextlib
import gc
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tensord
from tensord._keeper import NAMES_PER_CALL
from waiting import eventually

LARGE = 1200  # A product of such matrices takes a device some time.


@pytest.fixture
def x(session: tensord.Session) -> tensord.RemoteTensor:
    return session.upload(np.array([0.0, 1.0]))


@pytest.fixture(scope="module")
def large(session: tensord.Session) -> tensord.RemoteTensor:
    return session.upload(np.zeros((LARGE, LARGE)))


def add(pipeline, x: tensord.RemoteTensor, c) -> tensord.PendingTensor:
    """x = x + c, in place."""
    return pipeline.elementwise(x, "i", c, "i", "i", out=x)


def keep_busy(pipeline, large: tensord.RemoteTensor) -> list[tensord.PendingTensor]:
    return [pipeline.contract(large, "ik", large, "kj", "ij") for _ in range(10)]


def used_bytes(session: tensord.Session) -> int:
    gc.collect()
    session.link.keeper.flush()
    session.link.memory.trim()  # What the client keeps for reuse.
    return session.describe().memory_used_bytes


def test_operations_take_effect_in_the_order_of_adding(session, x):
    one = session.upload(np.ones(2))
    for _ in range(100):
        x.write(np.array([0.0, 1.0]))
        with session.pipeline() as pipeline:
            for i in range(20):
                add(pipeline, x, x if i % 2 == 0 else one)
        # Ten times 2 x + 1; another order gives another x.
        np.testing.assert_array_equal(x.numpy(), [1023, 2047])


def test_every_operation_gives_its_result(session, rng):
    a, b = rng.random((3, 4)), rng.random((4, 2))
    out = session.create((4, 3), np.float64)
    remote = session.upload(a)
    with session.pipeline() as pipeline:
        permuted = pipeline.permute(remote, "ij", "ji", out=out)
        reduced = pipeline.reduce(out, "ij", "i", op="max")
        contracted = pipeline.contract(remote, "ik", b, "kj", "ij", name="product")
        summed = pipeline.elementwise(out, "ij", remote, "ji", "ij")
        product = pipeline.einsum("ij,jk->ik", remote, out)
    assert all(p.done() for p in (permuted, reduced, contracted, summed, product))
    assert permuted.result() is out
    np.testing.assert_array_equal(out.numpy(), a.T)
    np.testing.assert_array_equal(reduced.result().numpy(), a.max(0))
    np.testing.assert_allclose(session.tensor("product").numpy(), a @ b)
    np.testing.assert_array_equal(summed.result().numpy(), a.T + a.T)
    np.testing.assert_allclose(product.result().numpy(), a @ a.T)
    assert contracted.result().report.kernel and out.report.kernel
    session.tensor("product").delete()


def test_a_failed_operation_does_not_end_the_pipeline(session, x):
    empty = session.create(2, np.float64)
    with pytest.raises(tensord.FailedPrecondition) as first:
        with session.pipeline() as pipeline:
            good = add(pipeline, x, np.ones(2))
            not_ready = add(pipeline, x, empty)
            misfit = add(pipeline, x, np.ones(3))
            last = add(pipeline, x, np.ones(2))
            with pytest.raises(tensord.InvalidArgument, match="extent") as failure:
                misfit.result()
            assert failure.value.reason == "MODE_EXTENT_MISMATCH"
            assert failure.value.cutensor_status == "INVALID_VALUE"
            assert last.result() is x
    assert first.value.reason == "TENSOR_NOT_READY"
    for _ in range(2):
        with pytest.raises(tensord.FailedPrecondition):
            not_ready.result()
    assert good.result() is x
    np.testing.assert_array_equal(x.numpy(), [2, 3])


def test_any_number_of_operations_is_on_its_way(session, x):
    one = session.upload(np.ones(2))
    with session.pipeline() as pipeline:
        for _ in range(2000):
            add(pipeline, x, one)
    np.testing.assert_array_equal(x.numpy(), [2000, 2001])


def test_operands_live_as_long_as_they_are_needed(session, large):
    before = used_bytes(session)
    sums = []
    with session.pipeline() as pipeline:
        busy = keep_busy(pipeline, large)
        for value in range(5):
            # Nobody else holds the tensors; the second array is too large to go inline.
            tensor = session.upload(np.full(10, value))
            sums.append(pipeline.reduce(tensor, "i", ""))
            sums.append(pipeline.reduce(np.full(300_000, value), "i", ""))
            del tensor
    assert [int(s.result()) for s in sums] == [
        count * value for value in range(5) for count in (10, 300_000)
    ]
    del busy, sums
    assert eventually(lambda: used_bytes(session) == before)


def test_an_exception_cancels_what_has_not_begun(session, x, large):
    before = used_bytes(session)
    with pytest.raises(ZeroDivisionError):
        with session.pipeline() as pipeline:
            busy = keep_busy(pipeline, large)
            never = add(pipeline, x, np.ones(2))
            1 / 0
    with pytest.raises(tensord.Cancelled):
        never.result()
    np.testing.assert_array_equal(x.numpy(), [0, 1])
    del busy
    # One may have been answered too late, and then stays.
    assert eventually(lambda: used_bytes(session) <= before + 8 * LARGE * LARGE)


@pytest.mark.timing
def test_waiting_for_a_result_can_end(session, large):
    with session.pipeline() as pipeline:
        last = keep_busy(pipeline, large)[-1]
        assert not last.done()
        with pytest.raises(tensord.DeadlineExceeded, match="0.001 s"):
            last.result(timeout=0.001)
        assert last.result(timeout=60).shape == (LARGE, LARGE)


@pytest.mark.timing
def test_a_pipeline_has_a_deadline(session, x):
    # Not by work: what is predicted to end behind the deadline is refused.
    with pytest.raises(tensord.DeadlineExceeded, match="ExecuteStream"):
        with session.pipeline(timeout=0.1) as pipeline:
            time.sleep(0.2)
            add(pipeline, x, np.ones(2))
    np.testing.assert_array_equal(x.numpy(), [0, 1])


def test_a_closed_session_fails_its_pipeline(address):
    session = tensord.connect(address)
    with pytest.raises(tensord.FailedPrecondition, match="closed") as caught:
        with session.pipeline() as pipeline:
            pending = pipeline.permute(np.ones(2), "i", "i")
            pending.result()
            session.close()
            pipeline.permute(np.ones(2), "i", "i").result()
    assert caught.value.reason == "SESSION_CLOSED"


def test_results_that_nobody_holds_do_not_pile_up(session, address):
    # Deletions that are due, at most the names of a call when an operation is added;
    # results on their way, at most the window; that operation's, and x.
    window = 2 * session.link.info.limits.max_stream_operations
    count = NAMES_PER_CALL + window + 2
    with tensord.connect(address, quota_bytes=count * 8192) as bounded:
        x = bounded.upload(np.zeros(1024))
        with bounded.pipeline() as pipeline:
            for _ in range(6000):
                pipeline.permute(x, "i", "i")


@pytest.mark.timing
def test_a_pipeline_refuses_what_it_cannot_do(session, x):
    with session.pipeline() as pipeline:
        pending = pipeline.permute(x, "i", "i")
        with pytest.raises(TypeError, match="pending"):
            pipeline.permute(pending, "i", "i")
        with pytest.raises(tensord.InvalidArgument) as failure:
            pipeline.permute(x, "i", "i", timeout=3)
        assert failure.value.reason == "TIMEOUT_NOT_APPLICABLE"
    for finished in (pipeline, session.pipeline()):
        with pytest.raises(tensord.FailedPrecondition) as failure:
            finished.permute(x, "i", "i")
        assert failure.value.reason == "PIPELINE_NOT_OPEN"
    with pytest.raises(tensord.FailedPrecondition):
        pipeline.__enter__()


VANISHES = """
import sys
import tensord
from tensord.v1 import compute_pb2, compute_pb2_grpc
import grpc

address, session, large, x, one = sys.argv[1:]
ExecuteStreamRequest = compute_pb2.ExecuteStreamRequest


def operand(tensor, *modes):
    return compute_pb2.Operand(tensor=tensor, modes=modes)


def requests():
    for _ in range(10):
        yield ExecuteStreamRequest(
            contract=compute_pb2.ContractRequest(
                session=session,
                a=operand(large, 0, 1),
                b=operand(large, 1, 2),
                d=compute_pb2.Output(modes=[0, 2]),
            )
        )
    while True:
        yield ExecuteStreamRequest(
            elementwise=compute_pb2.ElementwiseRequest(
                session=session,
                a=operand(x, 0),
                c=operand(one, 0),
                d=compute_pb2.Output(tensor=x, modes=[0]),
                op_abc=compute_pb2.BINARY_OPERATOR_ADD,
            )
        )


with grpc.insecure_channel(address) as channel:
    stub = compute_pb2_grpc.ComputeServiceStub(channel)
    for response in stub.ExecuteStream(requests()):
        print(response.index, flush=True)
"""


@pytest.mark.timing
def test_a_client_that_is_killed_leaves_nothing_running(private_address):
    with tensord.connect(private_address) as session:
        large = session.upload(np.zeros((LARGE, LARGE)))
        x, one = session.upload(np.array([0.0, 1.0])), session.upload(np.ones(2))
        before = used_bytes(session)
        names = [session.name, large.full_name, x.full_name, one.full_name]
        client = subprocess.Popen(
            [sys.executable, "-c", VANISHES, private_address, *names],
            stdout=subprocess.PIPE,
        )
        assert client.stdout.readline() == b"0\n"
        assert session.stats().devices[0].queued_operations > 1
        client.send_signal(signal.SIGKILL)
        client.wait()
        assert eventually(lambda: session.stats().devices[0].queued_operations == 0)
        np.testing.assert_array_equal(x.numpy(), [0, 1])
        # Of its products only those remain that were answered before it was gone.
        known = {large.name, x.name, one.name}
        for tensor in session.list():
            if tensor.name not in known:
                with contextlib.suppress(tensord.NotFound):  # it goes just now
                    if tensor.state == "ready":
                        tensor.delete()
        assert eventually(lambda: used_bytes(session) == before)


def test_aborted_pipelines_leave_no_tensors(address):
    with tensord.connect(address) as session:
        ones = session.upload(np.ones((8, 8)))
        for _ in range(5):
            with pytest.raises(ZeroDivisionError), session.pipeline() as pipeline:
                for _ in range(300):
                    pipeline.contract(ones, "ij", ones, "jk", "ik")
                raise ZeroDivisionError
        session.link.keeper.flush()
        assert len(session.list()) == 1
