"""tensord.aio does what the client does, and waits for nothing."""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Callable, Coroutine

import numpy as np
import pytest

import tensord
import tensord.aio
from bounds import assert_product, assert_within_bound
from faulty_server import FaultyServer
from random_products import assert_product_agrees
from tensord import TensorSpec, _keeper

LARGE = 1000


def in_a_loop(test: Callable[..., Coroutine]) -> Callable[..., None]:
    """Runs a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*args, **kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


@in_a_loop
async def test_front_door_example_agrees(address, rng):
    a, b = rng.random((50, 40, 60)), rng.random((60, 40, 30))
    async with tensord.aio.connect(address, job="tests") as session:
        remote = await session.upload(a)
        result = await session.einsum("ijk,kjl->il", remote, b)
        assert isinstance(result, tensord.aio.RemoteTensor)
        expected = np.einsum("ijk,kjl->il", a, b)
        assert_within_bound(await result.numpy(), expected, expected, 2400)
        assert result.report.kernel and session.info().version
    session = await tensord.aio.connect(address)
    assert (await session.describe()).tensor_count == 0
    await session.close()
    await session.close()
    with pytest.raises(tensord.FailedPrecondition) as failure:
        await session.einsum("i->", np.ones(2))
    assert failure.value.reason == "SESSION_CLOSED"


@in_a_loop
async def test_operations_agree_with_those_of_the_client(address, session, rng):
    a, b, c = rng.random((4, 5)), rng.random((5, 6)), rng.random((4, 6))
    calls = [
        lambda s: s.permute(a, "ij", "ji", alpha=2),
        lambda s: s.elementwise(a, "ij", a, "ij", "ij", op="mul"),
        lambda s: s.reduce(a, "ij", "j", op="max"),
        lambda s: s.contract(a, "ik", b, "kj", "ij", c=c, beta=2),
        lambda s: s.einsum("ik,kj->ij", a, b),
        lambda s: s.einsum("ik,kj,ij->", a, b, c),
        lambda s: s.einsum("ik,kj,ij->", a, b, c, alpha=2),
        lambda s: s.ncon([a, b], [[-1, 1], [1, -2]]),
        lambda s: s.run("D[i,j] := A[i,k]*B[k,j] - 2*C[i,j]", A=a, B=b, C=c),
    ]
    async with tensord.aio.connect(address) as twin:
        for call in calls:
            result = await call(twin)
            np.testing.assert_array_equal(await result.numpy(), call(session).numpy())
        out = await twin.create((4, 6), "f8")
        assert await twin.contract(a, "ik", b, "kj", "ij", out=out) is out
        assert await twin.run("D[i,j] += A[i,k]*B[k,j]", A=a, B=b, D=out) is None
        assert_within_bound(await out.numpy(), 2 * (a @ b), 2 * (a @ b), 7)
        await out.write(c)
        np.testing.assert_array_equal(await out.numpy(), c)
        inline = await twin.einsum("ik,kj,ij->", a, b, c, inline=True)
        assert_product_agrees(inline, "ik,kj,ij->", [a, b, c])


@in_a_loop
async def test_programs_are_prepared(address, rng):
    a, b = rng.random((20, 30)), rng.random((30, 10))
    async with tensord.aio.connect(address) as session:
        like = {"A": TensorSpec((20, 30), "f8"), "B": b, "x": 2}
        async with await session.program("D[i,j] := x*A[i,k]*B[k,j]", like) as program:
            result = await program(A=a, B=b, x=1)
            assert_product(Here(await result.numpy()), a, b)
            assert (await program.describe()).explanation.operations
        with pytest.raises(tensord.NotFound):
            await program(A=a, B=b)
        explained = await session.explain.einsum("ij,jk,kl->il", a, b, b.T)
        assert explained.products
        one = await session.explain.contract(a, "ik", b, "kj", "ij")
        assert one.candidates and "a[i,k]" in one.text and one.products


class Here:
    """An array that `numpy()` returns."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def numpy(self) -> np.ndarray:
        return self.array


@pytest.mark.timing
@in_a_loop
async def test_operations_are_on_their_way_together(address, rng):
    a = rng.random((30, 30))
    async with tensord.aio.connect(address) as session:
        remote = await session.upload(a)
        results = await asyncio.gather(
            *(session.einsum("ij,jk->ik", remote, a * i) for i in range(50))
        )
        for i, result in enumerate(results):
            assert_product(Here(await result.numpy()), a, a * i)
        large = await session.upload(np.zeros((LARGE, LARGE)))
        for slow in (
            session.einsum("ij,jk,kl,lm->im", large, large, large, large),
            session.upload(np.zeros((4 * LARGE, 4 * LARGE))),
        ):
            task = asyncio.ensure_future(slow)
            turns = 0
            while not task.done():
                turns += 1
                await asyncio.sleep(0)
            await task
            # The loop goes on meanwhile.
            assert turns > 100


@in_a_loop
async def test_large_arrays_are_uploaded_and_forgotten(address, rng):
    # Of whole numbers, so that every order of products gives the same.
    arrays = [rng.integers(-8, 9, (300, 300)).astype(np.float64) for _ in range(3)]
    async with tensord.aio.connect(address) as session:
        result = await session.einsum("ij,jk,kl->il", *arrays)
        np.testing.assert_array_equal(
            await result.numpy(), np.linalg.multi_dot(arrays)
        )
        gc.collect()
        await asyncio.to_thread(session.link.keeper.flush)
        assert (await session.describe()).tensor_count == 1
        del result
        gc.collect()
        await asyncio.to_thread(session.link.keeper.flush)
        assert (await session.describe()).tensor_count == 0


def test_handles_dropped_together_go_in_one_call(faulty: FaultyServer, monkeypatch):
    monkeypatch.setattr(_keeper, "_GATHER_SECONDS", 60.0)  # flush() ends it

    async def drop_all() -> None:
        async with tensord.aio.connect(faulty.address) as session:
            results = [await session.create(3, np.float64) for _ in range(20)]
            results.clear()
            gc.collect()
            await asyncio.to_thread(session.link.keeper.flush)
            assert len(faulty.deleted) == 20
            assert faulty.deletion_count == 1

    asyncio.run(drop_all())


@in_a_loop
async def test_many_tensors_are_deleted_in_one_call(address):
    async with tensord.aio.connect(address) as session:
        tensors = [await session.upload(np.ones(2)) for _ in range(3)]
        await session.upload(np.ones(2), name="named")
        assert await session.delete([*tensors, "named"]) == 4
        assert (await session.describe()).tensor_count == 0
        with pytest.raises(tensord.NotFound, match="0 of 1 tensors were deleted"):
            await session.delete(["named"])


@pytest.mark.timing
@in_a_loop
async def test_errors_are_those_of_the_client(address):
    async with tensord.aio.connect(address) as session:
        with pytest.raises(tensord.InvalidArgument) as failure:
            await session.run("D[i] := A[i", A=np.ones(2))
        assert failure.value.reason == "SYNTAX_ERROR"
        assert str(failure.value).endswith("^")
        with pytest.raises(tensord.NotFound, match="nothing"):
            await session.tensor("nothing")
        tensor = await session.upload(np.ones(3), name="ones")
        assert (await session.tensor("ones")).shape == (3,)
        with pytest.raises(tensord.AlreadyExists):
            await session.upload(np.ones(3), name="ones")
        assert await tensor.state() == "ready"
        with pytest.raises(TypeError, match="await tensor.numpy"):
            np.asarray(tensor)
        await tensor.delete()
        with pytest.raises(tensord.NotFound):
            await tensor.numpy()
        total = await session.reduce(np.ones(3), "i", "")
        assert await total.item() == 3
        with pytest.raises(tensord.DeadlineExceeded, match="Contract"):
            large = await session.create((LARGE, LARGE), "f8")
            await large.write(np.zeros((LARGE, LARGE)))
            await session.contract(large, "ij", large, "jk", "ik", timeout=1e-4)
    with pytest.raises(tensord.Unavailable, match="no tensord server answers"):
        await tensord.aio.connect("unix:/nonexistent/socket")


@in_a_loop
async def test_operators_hands_are_those_of_the_client(address):
    async with tensord.aio.connect(address, job="operated") as session:
        await session.upload(np.ones(1000), name="large")
        operator = session.operator
        [shown] = [each for each in await operator.sessions() if each.job == "operated"]
        [tensor] = await operator.tensors(count=1, session=shown.number)
        assert (tensor.id, tensor.element_type) == ("large", "float64")
        assert await operator.operations(session=shown.number) == ()
        assert await operator.log_level() == "info"
        assert await operator.log_level("info") == "info"
        assert isinstance(await operator.reload(), tuple)
        assert (await operator.trim()).devices
        assert {"threads", "listen"} <= {setting.key for setting in await operator.config()}
        with pytest.raises(tensord.NotFound) as failure:
            await operator.cancel("nothing")
        assert failure.value.reason == "REQUEST_NOT_FOUND"
        with pytest.raises(tensord.InvalidArgument):
            await operator.drain(seconds=1e6)
        evicted = await operator.evict(session=shown.number)
        assert evicted.session_numbers == (shown.number,)
    methods = {name for name in dir(tensord.Session.operator.fget(session)) if name[0] != "_"}
    assert methods == {name for name in dir(operator) if name[0] != "_"}


@pytest.mark.timing
@in_a_loop
async def test_waiting_can_be_cancelled(address):
    async with tensord.aio.connect(address) as session:
        large = await session.upload(np.zeros((LARGE, LARGE)))
        work = session.einsum("ij,jk,kl,lm->im", large, large, large, large)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(work, 0.001)
        assert await (await session.reduce(np.ones(3), "i", "")).item() == 3


@in_a_loop
async def test_programs_keep_what_is_constant(address, rng):
    a, x = rng.random((LARGE // 2, LARGE // 2)), rng.random((LARGE // 2, 3))
    async with tensord.aio.connect(address, job="tests") as session:
        program = await session.program(
            "ij,jk,kl->il", a, a, x, constants=[0, 1], optimize=False
        )
        assert program.constants == ("operand 0", "operand 1")
        await program(x)
        result = await program({"operand 0": a, "operand 2": 2 * x})
        assert result.report.operation_count == 2
        expected = a @ a @ (2 * x)
        assert_within_bound(await result.numpy(), expected, expected, 2 * LARGE)
        assert [(await program(x)).report.operation_count for _ in "ab"] == [2, 1]
        costly = session.program("ij,jk,kl->il", a, a, x, costs="zz")
        with pytest.raises(tensord.InvalidArgument, match="\n    zz\n    \\^"):
            await costly
