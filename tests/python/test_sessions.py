"""Sessions own tensors, keep their lease and go without a trace."""

from __future__ import annotations

import concurrent.futures
import gc
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import grpc
import numpy as np
import pytest

import tensord
from bounds import assert_within_bound
from faulty_server import FaultyServer
from tensord import _keeper
from tensord.v1 import session_pb2, session_pb2_grpc
from waiting import eventually


def memory_used(session: tensord.Session) -> int:
    return sum(device.memory_used_bytes for device in session.stats().devices)


def test_remote_tensors_look_like_arrays(session):
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = session.upload(array)
    assert tensor.shape == (2, 3, 4) and tensor.dtype == np.float32
    assert (tensor.ndim, tensor.size, tensor.nbytes) == (3, 24, 96)
    assert tensor.device == session.device
    assert tensor.state == "ready" and tensor.session is session
    assert "shape=(2, 3, 4), dtype=float32" in repr(tensor)
    assert tensor.name in repr(tensor)
    np.testing.assert_array_equal(np.asarray(tensor), array)
    as_double = np.asarray(tensor, dtype=np.float64)
    assert as_double.dtype == np.float64
    np.testing.assert_array_equal(np.add(tensor, 1), array + 1)
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        with pytest.raises(ValueError):
            np.asarray(tensor, copy=False)
    with pytest.raises(tensord.InvalidArgument, match="24 elements"):
        float(tensor)


def test_layouts_of_other_clients_are_understood(session, stubs):
    from tensord.v1 import tensor_pb2

    array = np.arange(12, dtype=np.float64).reshape(3, 4)
    for strides in [1, 3], [5, 1], [2, 7]:
        created = stubs.tensors.CreateTensor(
            tensor_pb2.CreateTensorRequest(
                session=session.name,
                element_type=tensor_pb2.ELEMENT_TYPE_FLOAT64,
                layout=tensor_pb2.Layout(extents=[3, 4], strides=strides, offset=2),
            )
        ).tensor
        tensor = session.tensor(created.name)
        tensor.write(array)
        np.testing.assert_array_equal(tensor.numpy(), array)
        np.testing.assert_array_equal(tensor.copy().numpy(), array)
        transposed = session.permute(tensor, "ij", "ji")
        np.testing.assert_array_equal(transposed.numpy(), array.T)
        tensor.delete()


def test_copies_are_independent(session):
    tensor = session.upload(np.zeros(3))
    copied = tensor.copy()
    tensor.write(np.ones(3))
    np.testing.assert_array_equal(copied.numpy(), np.zeros(3))


def test_copies_go_to_other_sessions(session, address):
    array = np.arange(12.0).reshape(3, 4)
    with tensord.connect(address) as other:
        copied = session.upload(array).copy(session=other)
        assert copied.full_name.startswith(other.name)
        np.testing.assert_array_equal(copied.numpy(), array)
        np.testing.assert_array_equal(other.einsum("ij->ji", copied).numpy(), array.T)


def test_copies_go_to_sessions_only(session):
    with pytest.raises(TypeError, match="session is of type str, wanted a Session"):
        session.upload(np.ones(2)).copy(session="sessions/1")


def test_unnamed_tensors_leave_with_their_last_reference(session):
    tensor = session.upload(np.ones(5))
    full_name = tensor.full_name
    doubled = session.permute(tensor, "i", "i", alpha=2)
    del tensor
    gc.collect()
    assert eventually(lambda: full_name not in {t.full_name for t in session.list()})
    np.testing.assert_array_equal(doubled.numpy(), np.full(5, 2))


def test_server_tells_what_it_keeps_in_host_memory(private_address):
    with tensord.connect(private_address) as session:
        tensor = session.create(0, np.float64)
        stats = session.stats()
        (tensors,) = (use for use in stats.host_memory if use.use == "tensors")
        assert tensors.count == 1 and 0 < tensors.used_bytes < tensors.count_limit
        assert stats.host_memory_limit_bytes > tensors.used_bytes
        limits = session.info().limits
        assert limits.max_tensors == 100_000 and limits.transfer_idle_seconds == 30
        assert limits.max_view_stages == 32
        assert limits.max_sessions_per_peer == 256
        del tensor


def test_handles_dropped_together_go_in_one_call(faulty: FaultyServer, monkeypatch):
    monkeypatch.setattr(_keeper, "_GATHER_SECONDS", 60.0)  # flush() ends it
    with tensord.connect(faulty.address) as session:
        results = [session.create(3, np.float64) for _ in range(20)]
        names = [result.full_name for result in results]
        results.clear()
        gc.collect()
        session.link.keeper.flush()
        assert sorted(faulty.deleted) == sorted(names)
        assert faulty.deletion_count == 1
        assert session.link.keeper.deleted_count == 20


def test_many_tensors_are_deleted_in_one_call(session):
    tensors = [session.upload(np.ones(2)) for _ in range(3)]
    session.upload(np.ones(2), name="deleted-too")
    names = {tensor.full_name for tensor in tensors}
    assert session.delete([*tensors, "deleted-too"]) == 4
    assert not names & {tensor.full_name for tensor in session.list()}
    kept = session.upload(np.ones(2), name="deleted-anyway")
    with pytest.raises(tensord.NotFound, match="1 of 2 tensors were deleted"):
        session.delete(["deleted-too", kept])
    with pytest.raises(tensord.NotFound):
        session.tensor("deleted-anyway")
    assert session.delete([]) == 0


def test_named_tensors_stay_until_deleted(session):
    session.upload(np.ones(5), name="kept-1")
    gc.collect()
    session.link.keeper.flush()
    found = session.tensor("kept-1")
    assert found.name == "kept-1" and found.full_name.endswith("/tensors/kept-1")
    del found
    gc.collect()
    session.link.keeper.flush()
    with session.tensor("kept-1") as found:
        np.testing.assert_array_equal(found.numpy(), np.ones(5))
    with pytest.raises(tensord.NotFound):
        session.tensor("kept-1")


def test_memory_of_forgotten_tensors_serves_new_ones(address):
    with tensord.connect(address, quota_bytes=10_000_000, transport="grpc") as session:
        for _ in range(8):
            session.upload(np.zeros(1_000_000))
        for _ in range(8):
            np.testing.assert_array_equal(
                session.einsum("i,j->ij", np.ones(1000), np.ones(1000)).numpy(), 1
            )


def test_failed_calls_keep_no_tensors(address):
    with tensord.connect(address, quota_bytes=10_000_000, transport="grpc") as session:

        def refused(call: Callable[[], object]) -> str:
            try:
                call()
            except tensord.Error as error:
                return type(error).__name__
            return "nothing"

        for _ in range(5):
            tensor = session.upload(np.zeros((1000, 1000)))
            assert refused(tensor.copy) == "ResourceExhausted"
            assert refused(tensor.item) == "InvalidArgument"
            assert refused(partial(tensor.numpy, 1e-5)) == "DeadlineExceeded"
            cycle = [tensor]
            cycle.append(cycle)
            del tensor, cycle


def test_lists_show_every_tensor_by_name(address):
    with tensord.connect(address) as session:
        names = [f"t{i:04}" for i in range(1100)]
        for name in reversed(names):
            session.create((), np.int8, name=name)
        assert [tensor.name for tensor in session.list()] == names


def test_info_tells_what_the_server_is(session):
    info = session.info()
    assert info.version and info.devices[0].name
    assert info.devices[0].thread_count >= 1
    assert info.devices[0].kernels
    assert int(info.devices[0].properties["copy_gb_per_s"]) >= 1
    assert info.limits.max_chunk_bytes >= 1 << 16
    assert info.limits.max_modes == 64
    assert info.limits.max_program_bytes >= 1 << 16
    assert info.limits.max_program_depth == 64
    assert info.limits.max_search_seconds == 60
    assert info.limits.max_programs == 10_000


def test_describe_and_stats_count(private_address):
    with tensord.connect(private_address, job="counting", lease=30) as session:
        session.upload(np.ones(1000), name="a")
        session.reduce(np.ones(10), "i", "")
        description = session.describe()
        assert description.job == "counting" and description.lease_seconds == 30
        assert description.memory_used_bytes >= 8000
        stats = session.stats()
        assert stats.session_count == 1
        assert stats.uploaded_bytes == 8000
        assert stats.devices[0].memory_used_bytes >= 8000
        assert stats.devices[0].staging_used_bytes == 0
        assert description.staging_used_bytes == 0
        counts = {(o.operation, o.code): o.count for o in stats.operations}
        assert counts["reduce", "OK"] == 1


def test_closing_a_session_frees_its_memory(private_address):
    with tensord.connect(private_address) as observer:
        before = memory_used(observer)
        with tensord.connect(private_address, transport="grpc") as session:
            session.upload(np.ones(100_000), name="large")
            assert memory_used(observer) >= before + 800_000
        assert memory_used(observer) == before
        assert observer.stats().session_count == 1


@pytest.mark.timing
def test_sessions_nobody_holds_are_closed(faulty: FaultyServer):
    session = tensord.connect(faulty.address)
    assert not faulty.closed.is_set()
    del session
    gc.collect()
    assert faulty.closed.wait(5)


def test_sessions_are_closed_when_the_program_ends(faulty: FaultyServer):
    program = "import sys, tensord; session = tensord.connect(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, faulty.address], check=True)
    assert faulty.closed.is_set()


@pytest.mark.timing
def test_leases_are_renewed_while_the_program_runs(faulty: FaultyServer):
    with tensord.connect(faulty.address, lease=1):
        assert eventually(lambda: faulty.beat_count >= 2)


@pytest.mark.timing
def test_idle_sessions_outlive_their_lease(private_address):
    with tensord.connect(private_address, lease=5) as session:
        tensor = session.upload(np.ones(3))
        # Nobody renews the lease of another one, which is opened later and ends later.
        request = session_pb2.OpenSessionRequest()
        request.lease.FromSeconds(6)
        with grpc.insecure_channel(private_address) as channel:
            session_pb2_grpc.SessionServiceStub(channel).OpenSession(request)
        assert session.stats().session_count == 2
        assert eventually(lambda: session.stats().session_count == 1, 60)
        np.testing.assert_array_equal(tensor.numpy(), np.ones(3))


@pytest.mark.timing
def test_many_threads_share_a_session(session, rng):
    a = rng.random((30, 40))
    shared = session.upload(a)

    def work(seed: int) -> None:
        b = np.random.default_rng(seed).random((40, 20))
        for _ in range(10):
            product = session.einsum("ij,jk", shared, b)
            assert_within_bound(product.numpy(), a @ b, a @ b, 40)
            uploaded = session.upload(b)
            assert_within_bound(
                session.einsum("ij,jk", shared, uploaded).numpy(), a @ b, a @ b, 40
            )

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for done in [pool.submit(work, seed) for seed in range(32)]:
            done.result()


@pytest.mark.timing
def test_calls_go_on_during_a_transfer(session, rng):
    array = rng.random((256, 1024, 64))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        upload = pool.submit(session.upload, array)
        calls = 0
        while not upload.done():
            assert float(session.einsum("i,i->", np.ones(4), np.ones(4))) == 4
            calls += 1
        np.testing.assert_array_equal(upload.result().numpy(), array)
    assert calls > 0
