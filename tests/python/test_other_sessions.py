"""Tensors of another session are refused before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensord
import tensord.aio
import tensord.array as xp
from tensord import TensorSpec

A = np.eye(3)
SPEC = TensorSpec((3, 3), "float64")

# Of a session, a tensor of it, and one of another.
USES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "contraction": lambda s, t, o: s.contract(t, "ij", o, "jk", "ik"),
    "Einstein sum": lambda s, t, o: s.einsum("ij,jk->ik", t, o),
    "Einstein sum of many": lambda s, t, o: s.einsum("ij,jk,kl->il", t, t, o),
    "arithmetic": lambda s, t, o: t + o,
    "elements": lambda s, t, o: s.elementwise(t, "ij", o, "ij", "ij"),
    "choice": lambda s, t, o: xp.where(t > 0, t, o),
    "permutation": lambda s, t, o: s.permute(o, "ij", "ji"),
    "a view": lambda s, t, o: s.reduce(o[0], "i", ""),
    "result": lambda s, t, o: s.permute(t, "ij", "ji", out=o),
    "factors": lambda s, t, o: s.factorize("ij->ik,kj", o, method="qr"),
    "equations": lambda s, t, o: s.solve("ij,jk->ik", t, o),
    "statements": lambda s, t, o: s.run("D[i,j] := A[i,j] + B[j,i]", A=t, B=o),
    "program": lambda s, t, o: s.program("D[i] := A[i,i]", A=SPEC)(A=o),
    "plan": lambda s, t, o: s.plan.permute(SPEC, "ij", "ji").execute(o),
    "plan of the session": lambda s, t, o: s.execute(
        s.plan.permute(SPEC, "ij", "ji"), o
    ),
    "result of a plan": lambda s, t, o: s.execute(
        s.plan.permute(SPEC, "ij", "ji"), t, out=o
    ),
    "factors of a plan": lambda s, t, o: s.execute_factorization(
        s.plan.factorize("ij->ik,kj", SPEC, method="qr"), t, out=(s.create((3, 3), "f8"), o)
    ),
    "indices": lambda s, t, o: xp.take(t, o.astype("i8"), axis=0),
}


@pytest.fixture(params=[False, True], ids=["awaited", "deferred"])
def two(address: str, request: Any) -> Iterator[tuple[Any, Any]]:
    with (
        tensord.connect(address, deferred=request.param) as first,
        tensord.connect(address, deferred=request.param) as second,
    ):
        yield first, second


@pytest.mark.parametrize("use", USES)
def test_tensors_of_another_session_are_refused(two: Any, use: str) -> None:
    first, second = two
    t, other = first.upload(A), second.upload(A)
    USES[use](first, t, first.upload(A))  # It is known, and so its request.
    with pytest.raises(tensord.InvalidArgument, match="is of another session") as told:
        USES[use](first, t, other)
    assert told.value.reason == "SESSION_DIFFERS"
    assert "shape=(3," in told.value.message
    np.testing.assert_array_equal((t + t).numpy(), 2 * A)


def test_asyncio_clients_say_the_same(address: str) -> None:
    async def run() -> None:
        async with (
            await tensord.aio.connect(address) as first,
            await tensord.aio.connect(address) as second,
        ):
            t, other = await first.upload(A), await second.upload(A)
            with pytest.raises(tensord.InvalidArgument, match="operand b of contract,"):
                await first.contract(t, "ij", other, "jk", "ik")
            with pytest.raises(tensord.InvalidArgument, match="out, .* another session"):
                await first.permute(t, "ij", "ji", out=other)

    asyncio.run(run())
