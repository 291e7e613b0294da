"""The client for asyncio: the same calls, to be awaited.

    async with tensord.aio.connect("localhost:8470") as session:
        a = await session.upload(np.random.rand(500, 40))
        c = await session.einsum("ij,jk->ik", a, np.random.rand(40, 60))
        print((await c.numpy()).sum())

Arguments, results and errors are those of `tensord.Session`. What is wrong with
arguments is raised by the call, everything else by `await`. Calls wait on gRPC's
asyncio; uploads and downloads run on threads of the event loop's default executor.
"""

from tensord.aio._program import Program
from tensord.aio._session import Session, connect
from tensord.aio._tensor import RemoteTensor

__all__ = ["Program", "RemoteTensor", "Session", "connect"]
