"""Memory that clients share with a server on the same host."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensord
from tensord._regions import Region, Way
from waiting import eventually

LARGE = (300, 400)  # More than goes by gRPC in any case.


@pytest.fixture(scope="module", params=["cpu", "gpu"])
def device_address(request: pytest.FixtureRequest, address: str) -> Iterator[str]:
    """Of the shared server, and of one whose device has memory of its own."""
    if request.param == "cpu":
        yield address
        return
    module = Path(os.environ["TENSORD_SERVER"]).with_name("liblosable_device.so")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TEST_OWN_MEMORY", "1")
        with tensord.serve(cuda_module=str(module)) as gpu_address:
            yield gpu_address


@pytest.fixture
def shared(device_address: str) -> Iterator[tensord.Session]:
    """A session of its own whose arrays go by shared memory."""
    with tensord.connect(device_address, transport="shm") as opened:
        yield opened


def is_copied(session: tensord.Session) -> bool:
    """Whether uploads are copied to memory of the device's own."""
    return session.describe().device != "cpu:0"


def filled(session: tensord.Session, values: np.ndarray) -> np.ndarray:
    """An array in shared memory."""
    array = session.empty(values.shape, values.dtype)
    array[...] = values
    return array


def used_bytes(session: tensord.Session) -> int:
    """What counts in the session's quotas, of regions and of tensors."""
    described = session.describe()
    return described.memory_used_bytes + described.staging_used_bytes


def moved_bytes(session: tensord.Session) -> float:
    """What the server has received and sent as the contents of tensors."""
    stats = session.stats()
    return stats.uploaded_bytes + stats.downloaded_bytes


def regions_of(session: Any) -> list[Any]:
    """What the session shares with the server, as it knows now."""
    memory = session.link.memory
    memory._way.hear(memory._regions)
    return list(memory._regions)


def test_transports_are_what_was_asked_for(address: str) -> None:
    with tensord.connect(address) as session:
        assert session.transport == "shm"
    with tensord.connect(address, transport="grpc") as session:
        assert session.transport == "grpc"
        with pytest.raises(tensord.FailedPrecondition) as error:
            session.empty(3)
        assert error.value.reason == "SHARED_MEMORY_NOT_WANTED"
    with pytest.raises(tensord.InvalidArgument) as refused:
        tensord.connect(address, transport="pigeon")
    assert refused.value.reason == "TRANSPORT_UNKNOWN"


def test_arrays_of_empty_are_operands_and_outputs_in_place(
    shared: tensord.Session, rng: np.random.Generator
) -> None:
    x, y = rng.random((300, 200)), rng.random((200, 100))
    a, b = filled(shared, x), filled(shared, y)
    c = shared.empty((300, 100))
    before = moved_bytes(shared)
    result = shared.contract(a, "ik", b, "kj", "ij", out=c)
    np.testing.assert_allclose(c, x @ y)
    shared.einsum("ij,jk->ik", a, b, out=c)
    np.testing.assert_allclose(c, x @ y)
    a[...] = 2 * x  # It is read as it is then.
    shared.einsum("ij,jk->ik", a, b, out=c)
    np.testing.assert_allclose(c, 2 * (x @ y))
    assert moved_bytes(shared) == before
    np.testing.assert_array_equal(result.numpy(), c)


def test_parts_with_strides_are_used_where_they_are(
    shared: tensord.Session, rng: np.random.Generator
) -> None:
    x = rng.random((60, 80))
    a = filled(shared, x)
    c = filled(shared, np.zeros((60, 80)))
    before = moved_bytes(shared)
    shared.permute(a[3:40:2, 5:70], "ij", "ji", out=c.T[5:70, 1:20])
    expected = np.zeros((60, 80))
    expected.T[5:70, 1:20] = x[3:40:2, 5:70].T
    np.testing.assert_array_equal(c, expected)
    assert moved_bytes(shared) == before


@pytest.mark.parametrize(
    "dtype",
    ["float16", tensord.bfloat16, "float32", "complex64", "complex128", "int8", "bool"],
)
def test_every_dtype_passes(shared: tensord.Session, dtype: Any) -> None:
    values = (np.arange(120_000) % 2).reshape(LARGE).astype(dtype)
    a = filled(shared, values)
    result = shared.permute(a, "ij", "ji").numpy()
    np.testing.assert_array_equal(result, values.T)
    tensor = shared.upload(values)
    np.testing.assert_array_equal(tensor.numpy(), values)


def test_what_no_tensor_is_like_is_copied(
    shared: tensord.Session, rng: np.random.Generator
) -> None:
    x = rng.random(LARGE)
    a = filled(shared, x)
    for part in (a[::-1], np.broadcast_to(a[0], LARGE), a.astype(">f8")):
        result = shared.permute(part, "ij", "ij").numpy()
        np.testing.assert_array_equal(result, part.astype("f8"))
    b = filled(shared, x > 0.5)
    result = shared.permute(b[:, ::2], "ij", "ij").numpy()
    np.testing.assert_array_equal(result, b[:, ::2])
    with pytest.raises(tensord.InvalidArgument) as error:
        shared.permute(a, "ij", "ij", out=a[::-1])  # type: ignore[call-overload,unused-ignore]
    assert error.value.reason == "OUTPUT_NOT_REMOTE"
    a.flags.writeable = False
    with pytest.raises(tensord.InvalidArgument) as error:
        shared.permute(x, "ij", "ij", out=a)
    assert error.value.reason == "OUTPUT_NOT_REMOTE"


def test_outputs_that_overlap_inputs_are_refused(shared: tensord.Session) -> None:
    a = filled(shared, np.ones((200, 200)))
    with pytest.raises(tensord.InvalidArgument) as error:
        shared.permute(a[1:], "ij", "ij", out=a[:-1])
    assert error.value.reason == "OUTPUT_OVERLAPS_INPUT"
    for x, out in (a, a), (a[:100], a[50:150]), (a[:, :100], a[:, 50:150]):
        with pytest.raises(tensord.InvalidArgument) as error:
            shared.einsum("ij,jk->ik", x, a[: x.shape[1], : out.shape[1]], out=out)
        assert error.value.reason == "OUTPUT_OVERLAPS_INPUT"
    assert (a == 1).all()


def test_programs_see_it_as_one_memory(
    shared: tensord.Session, rng: np.random.Generator
) -> None:
    x, y = rng.random((200, 200)), rng.random((200, 200))
    a, b, d = filled(shared, x), filled(shared, y), filled(shared, x)
    whole = shared.einsum("ij->ij", a, out=d)
    shared.run(
        "P[i,j] = A[k,i]*B[k,j]; Q[i,j] = A[k,i]*A[k,j]",
        P=whole[:, :][:100, :],
        Q=whole[100:, :100],
        A=a[:, :100],
        B=b,
    )
    np.testing.assert_allclose(d[:100], x[:, :100].T @ y)
    np.testing.assert_allclose(d[100:, :100], x[:, :100].T @ x[:, :100])
    np.testing.assert_array_equal(d[100:, 100:], x[100:, 100:])
    with pytest.raises(tensord.InvalidArgument) as error:
        shared.run(
            "P[i,j] += B[i,j]; R[i,j] := Q[i,k]*B[k,j]", P=whole, Q=whole[:, :], B=b
        )
    assert error.value.reason == "OUTPUT_OVERLAPS_INPUT"


def test_ordinary_arrays_go_through_it(
    shared: tensord.Session, rng: np.random.Generator
) -> None:
    before = shared.stats().uploaded_bytes
    for values in (
        rng.random(LARGE),
        rng.random(LARGE).T,
        rng.random((300, 800))[:, ::2],
        rng.random(LARGE).astype(">f4"),
    ):
        tensor = shared.upload(values)
        array = tensor.numpy()
        np.testing.assert_array_equal(array, values)
        view = tensor[::2, 3:]
        np.testing.assert_array_equal(view.numpy(), values[::2, 3:])
        np.testing.assert_array_equal(tensor.T.numpy(), values.T)
        array[...] = 0  # Ours alone.
        np.testing.assert_array_equal(tensor.numpy(), values)
    assert is_copied(shared) or shared.stats().uploaded_bytes == before


def test_downloads_are_operands_in_place(
    shared: tensord.Session, rng: np.random.Generator
) -> None:
    x = rng.random((200, 200))
    array = shared.upload(x).numpy()
    before = moved_bytes(shared)
    c = shared.empty((200, 200))
    shared.einsum("ij,jk->ik", array, array, out=c)
    np.testing.assert_allclose(c, x @ x)
    assert moved_bytes(shared) == before


def test_small_arrays_go_by_grpc(shared: tensord.Session) -> None:
    before = moved_bytes(shared)
    np.testing.assert_array_equal(shared.upload(np.ones(10)).numpy(), np.ones(10))
    assert moved_bytes(shared) == before + 160


def test_regions_are_reused_and_given_back(
    shared: tensord.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensord._shared_memory._KEPT_SECONDS", 600.0)
    x = np.ones((1000, 1000))
    for _ in range(10):
        tensor = shared.upload(x)
        array = tensor.numpy()
        assert array.sum() == 1_000_000
        tensor.delete()
        del tensor, array
        # The server's word of it comes on a way of its own.
        assert eventually(lambda: all(each.is_idle() for each in regions_of(shared)))
    assert len(regions_of(shared)) <= 3
    assert used_bytes(shared) >= 8_000_000

    def are_given_back() -> bool:
        shared.link.memory.trim()
        return not regions_of(shared)

    assert eventually(are_given_back)
    assert used_bytes(shared) == 0


def test_the_word_of_a_release_may_come_late(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, deaf_until = Way._next, 0.0
    late: list[tuple[Region, int]] = []

    def read_late(self: Way, regions: list[Region], flags: int = 0) -> Any:
        is_deaf = time.monotonic() < deaf_until
        if not is_deaf:
            for region, released in late:
                region.released = released
            late.clear()
        before = [(region, region.released) for region in regions]
        answer = read(self, regions, flags)
        for region, released in before:
            if is_deaf and region.released != released:
                late.append((region, region.released))
                region.released = released
        return answer

    monkeypatch.setattr(Way, "_next", read_late)
    monkeypatch.setattr("tensord._shared_memory._WORD_SECONDS", 10.0)
    with tensord.connect(address, transport="shm", quota_bytes=10_000_000) as session:
        for _ in range(5):
            session.upload(np.ones((1000, 1000)))
            deaf_until = time.monotonic() + 0.03
            session.link.keeper.flush()


def test_interrupted_uploads_leave_no_tensor(
    shared: tensord.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    x = np.ones((1000, 1000))
    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", interrupt)
        for name in None, "interrupted":
            with pytest.raises(KeyboardInterrupt):
                shared.upload(x, name=name)
    shared.link.keeper.flush()
    assert shared.list() == ()
    assert eventually(lambda: used_bytes(shared) == 0)
    np.testing.assert_array_equal(shared.upload(x).numpy(), x)


def test_arrays_outlive_tensors_and_sessions(
    address: str, rng: np.random.Generator
) -> None:
    x = rng.random(LARGE)
    with tensord.connect(address, transport="shm") as session:
        array = session.upload(x).numpy()
        empty = filled(session, x)
        part = array[5:]
        del array
        gc.collect()
    np.testing.assert_array_equal(part, x[5:])
    np.testing.assert_array_equal(empty, x)


def test_memory_is_kept_as_long_as_it_is_used(shared: tensord.Session) -> None:
    a = filled(shared, np.full((200, 200), 3.0))
    c = shared.empty((200, 200))
    with shared.pipeline() as pipeline:
        for _ in range(50):
            pending = pipeline.permute(a, "ij", "ji", out=c)
        del a
        gc.collect()
        filled(shared, np.full((200, 200), 4.0))
    pending.result()
    assert c.sum() == 120_000


def test_regions_count_in_the_quota(private_address: str) -> None:
    with tensord.connect(
        private_address, transport="shm", quota_bytes=16 << 20
    ) as session:
        a = session.empty(1 << 20)  # 8 MiB
        assert session.describe().memory_used_bytes == 8 << 20
        with pytest.raises(tensord.ResourceExhausted) as error:
            session.empty(2 << 20)
        assert error.value.reason == "MEMORY_LIMIT"
        # By gRPC it does not fit either, until the array goes.
        with pytest.raises(tensord.ResourceExhausted):
            session.upload(np.ones(12 << 17))
        del a
        assert session.upload(np.ones(12 << 17)).numpy().sum() == 12 << 17


def test_on_gpus_arrays_leave_transfers_their_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = Path(os.environ["TENSORD_SERVER"]).with_name("liblosable_device.so")
    monkeypatch.setenv("TEST_OWN_MEMORY", "1")
    x = np.arange(1 << 17, dtype=np.float64)  # 1 MiB
    serving = tensord.serve(cuda_module=str(module), staging_limit_bytes="16MiB")
    with serving as address, contextlib.ExitStack() as stack:
        kept = []
        for _ in range(3):  # More than there is room for, and in each of them.
            session = stack.enter_context(tensord.connect(address))
            assert session.transport == "shm"
            tensor = session.upload(x)
            for _ in range(12):
                kept.append(tensor.numpy())
                np.testing.assert_array_equal(kept[-1], x)
            assert session.einsum("i,i->", x[:9], x[:9]).numpy() == 204
        assert session.describe().staging_used_bytes <= 8 << 20
        kept.clear()
        gc.collect()

        def gets_more_at_once() -> bool:
            """What is kept for reuse goes for what is larger."""
            try:
                return session.empty(3 << 20, np.uint8).size > 0
            except tensord.ResourceExhausted:
                return False

        assert eventually(gets_more_at_once)


def test_what_is_kept_for_reuse_is_no_obstacle(
    private_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensord._shared_memory._WORD_SECONDS", 10.0)
    with tensord.connect(private_address, quota_bytes=16 << 20) as session:
        assert session.transport == "shm"
        session.upload(np.ones(12 << 17)).delete()
        made = session.create(12 << 17, "float64")
        made.write(np.ones(12 << 17))
        assert made.shape == (12 << 17,)


def test_shares_and_constants_may_be_in_it(shared: tensord.Session) -> None:
    x = np.arange(120_000.0).reshape(LARGE)
    tensor = shared.upload(x)
    share = tensor.share("default")
    np.testing.assert_array_equal(shared.open_shared(share).numpy(), x)
    tensor.unshare()
    program = shared.program("ij,jk->ik", tensor, x.T, constants=[0])
    np.testing.assert_allclose(program(x.T).numpy(), x @ x.T)


def test_deferred_sessions_read_and_write_it_in_their_order(address: str) -> None:
    with tensord.connect(address, transport="shm", deferred=True) as session:
        a = filled(session, np.full((200, 200), 2.0))
        b = session.einsum("ij,jk->ik", a, a)
        c = session.empty((200, 200))
        session.permute(b, "ij", "ji", out=c)
        session.wait()
        assert (c == 800).all()
        assert (session.permute(c, "ij", "ji").numpy() == 800).all()


def test_deferred_errors_of_arrays_are_met_by_wait(address: str) -> None:
    with tensord.connect(address, transport="shm", deferred=True) as session:
        a = filled(session, np.arange(120_000.0).reshape(LARGE))
        c = filled(session, np.zeros(LARGE[::-1]))
        session.permute(a, "ij", "ji", out=c, algorithm="no.such.kernel")
        with pytest.raises(tensord.NotFound, match="no.such.kernel"):
            session.wait()
        assert (c == 0).all()
        session.permute(a, "ij", "ji", out=c)
        session.wait()
        np.testing.assert_array_equal(c, a.T)


def test_asyncio_has_the_same(address: str, rng: np.random.Generator) -> None:
    x = rng.random((200, 200))

    async def multiply() -> None:
        async with tensord.aio.connect(address, transport="shm") as session:
            assert session.transport == "shm"
            a = session.empty((200, 200))
            a[...] = x
            c = session.empty((200, 200))
            await session.einsum("ij,jk->ik", a, a, out=c)
            np.testing.assert_allclose(c, x @ x)
            tensor = await session.upload(x)
            np.testing.assert_array_equal(await tensor.numpy(), x)

    asyncio.run(multiply())


@pytest.mark.timing
def test_many_threads_share_a_session(
    shared: tensord.Session, rng: np.random.Generator
) -> None:
    arrays = [rng.random((150, 150)) for _ in range(4)]
    failures: list[BaseException] = []

    def work(values: np.ndarray) -> None:
        try:
            for _ in range(15):
                c = shared.empty((150, 150))
                shared.einsum("ij,jk->ik", filled(shared, values), values, out=c)
                np.testing.assert_allclose(c, values @ values)
                np.testing.assert_array_equal(shared.upload(values).numpy(), values)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.timing
def test_forked_processes_leave_it_to_their_parent(
    shared: tensord.Session,
) -> None:
    a = filled(shared, np.ones(LARGE))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            shared.empty(LARGE)
        except tensord.FailedPrecondition as error:
            said = error.reason.encode()
        os.write(writer, said)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"SHARED_MEMORY_FORKED"
    os.close(reader)
    os.close(writer)
    c = shared.empty(LARGE)
    shared.permute(a, "ij", "ij", out=c)
    assert (c == 1).all()
