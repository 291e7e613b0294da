"""A server in an operator's hands, for asyncio."""

from __future__ import annotations

from typing import Any

from tensord import _operator_calls as calls
from tensord._operator_calls import Answer, Questions
from tensord.aio._session_link import AwaitedLink
from tensord.reports import (
    Evicted,
    LargeTensor,
    ReloadedFiles,
    RunningCall,
    ServerSetting,
    SessionState,
    Trimmed,
)


class Operator:
    """What `tensord.Session.operator` has, to be awaited.

    >>> await session.operator.sessions()
    >>> await session.operator.cancel("5f1c6c8f-3")
    """

    def __init__(self, session: object, link: AwaitedLink) -> None:
        """Use `Session.operator`.

        Args:
            session: What must live as long as this does.
            link: What ties it to the server.
        """
        self._session = session
        self._link = link

    async def sessions(
        self, tenant: str = "", timeout: float | None = None
    ) -> tuple[SessionState, ...]:
        """Returns all sessions by number, or those of a tenant."""
        return await self._run(calls.sessions(tenant, timeout))

    async def operations(
        self, session: int = 0, timeout: float | None = None
    ) -> tuple[RunningCall, ...]:
        """Returns the calls that run, or those of the session of a number."""
        return await self._link.ask(calls.operations(session, timeout))

    async def tensors(
        self, count: int = 20, session: int = 0, timeout: float | None = None
    ) -> tuple[LargeTensor, ...]:
        """Returns the largest tensors, or those of the session of a number."""
        return await self._run(calls.tensors(count, session, timeout))

    async def cancel(
        self, request_id: str = "", session: int = 0, timeout: float | None = None
    ) -> int:
        """Ends calls of a request id, or of the session of a number."""
        return await self._link.ask(calls.cancel(request_id, session, timeout))

    async def evict(
        self,
        session: int = 0,
        tenant: str = "",
        idle: float = 60.0,
        timeout: float | None = None,
    ) -> Evicted:
        """Ends the session of a number, or a tenant's that nobody has used for long."""
        return await self._link.ask(calls.evict(session, tenant, idle, timeout))

    async def trim(self, timeout: float | None = None) -> Trimmed:
        """Has memory given back that is kept for reuse."""
        return await self._link.ask(calls.trim(timeout))

    async def drain(
        self, seconds: float | None = None, timeout: float | None = None
    ) -> None:
        """Has the server end as SIGTERM does."""
        await self._link.ask(calls.drain(seconds, timeout))

    async def config(self, timeout: float | None = None) -> tuple[ServerSetting, ...]:
        """Returns the options of the server, each with its origin."""
        return await self._link.ask(calls.config(timeout))

    async def reload(self, timeout: float | None = None) -> tuple[ReloadedFiles, ...]:
        """Has certificates, tokens, keys and tenants read again."""
        return await self._link.ask(calls.reload(timeout))

    async def log_level(self, level: str = "", timeout: float | None = None) -> str:
        """Returns the least level that is logged; sets it then if one is given."""
        return await self._link.ask(calls.log_level(level, timeout))

    async def _run(self, questions: Questions[Answer]) -> Answer:
        answer: Any = None
        while True:
            try:
                question = questions.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = await self._link.ask(question)
