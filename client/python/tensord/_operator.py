"""A server in an operator's hands."""

from __future__ import annotations

from typing import Any

from tensord import _operator_calls as calls
from tensord._blocking_link import BlockingLink
from tensord._operator_calls import Answer, Questions
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
    """What whoever runs a server sees of all sessions, and has it do.

    >>> session.operator.sessions()
    >>> session.operator.cancel("5f1c6c8f-3")

    Sessions are known by number, as their names are the keys to them. Everything takes
    `timeout`, a deadline in seconds; None for the default. Safe for use by many threads.

    Raises:
        PermissionDenied: The client is no operator (`OPERATORS_ONLY`).
        Unimplemented: Operators' calls have another address (`ADMIN_ELSEWHERE`).
    """

    def __init__(self, session: object, link: BlockingLink) -> None:
        """Use `Session.operator`.

        Args:
            session: What must live as long as this does.
            link: What ties it to the server.
        """
        self._session = session
        self._link = link

    def sessions(
        self, tenant: str = "", timeout: float | None = None
    ) -> tuple[SessionState, ...]:
        """Returns all sessions by number, or those of a tenant."""
        return self._run(calls.sessions(tenant, timeout))

    def operations(
        self, session: int = 0, timeout: float | None = None
    ) -> tuple[RunningCall, ...]:
        """Returns the calls that run, a thousand at most, the oldest first.

        Args:
            session: Number of the only one to look at.
            timeout: Deadline of the call.
        """
        return self._link.ask(calls.operations(session, timeout))

    def tensors(
        self, count: int = 20, session: int = 0, timeout: float | None = None
    ) -> tuple[LargeTensor, ...]:
        """Returns the largest tensors, the largest first.

        Args:
            count: How many at most.
            session: Number of the only one to look at.
            timeout: Deadline of each call.
        """
        return self._run(calls.tensors(count, session, timeout))

    def cancel(
        self, request_id: str = "", session: int = 0, timeout: float | None = None
    ) -> int:
        """Ends calls, whether they wait or run; returns how many.

        Args:
            request_id: As errors, the server's log and `operations` have it.
            session: Or the number of a session, all of whose calls are meant.
            timeout: Deadline of the call.

        Raises:
            NotFound: No such call runs, or there is no such session.
        """
        return self._link.ask(calls.cancel(request_id, session, timeout))

    def evict(
        self,
        session: int = 0,
        tenant: str = "",
        idle: float = 60.0,
        timeout: float | None = None,
    ) -> Evicted:
        """Ends sessions with all that they have.

        Args:
            session: Number of the session.
            tenant: Or a tenant, whose idle sessions are meant.
            idle: For how many seconds nobody has used those but to keep them alive.
            timeout: Deadline of the call.

        Raises:
            NotFound: There is no such session.
        """
        return self._link.ask(calls.evict(session, tenant, idle, timeout))

    def trim(self, timeout: float | None = None) -> Trimmed:
        """Has memory given back that is kept for reuse; returns how much was."""
        return self._link.ask(calls.trim(timeout))

    def drain(self, seconds: float | None = None, timeout: float | None = None) -> None:
        """Has the server end as SIGTERM does.

        Args:
            seconds: How long running calls may take; None for what the server's options
                say.
            timeout: Deadline of the call.
        """
        self._link.ask(calls.drain(seconds, timeout))

    def config(self, timeout: float | None = None) -> tuple[ServerSetting, ...]:
        """Returns the options of the server, each with its origin."""
        return self._link.ask(calls.config(timeout))

    def reload(self, timeout: float | None = None) -> tuple[ReloadedFiles, ...]:
        """Has certificates, tokens, keys and tenants read again; says what came of it."""
        return self._link.ask(calls.reload(timeout))

    def log_level(self, level: str = "", timeout: float | None = None) -> str:
        """Returns the least level that is logged; sets it then if one is given.

        Raises:
            InvalidArgument: There is no such level (`LOG_LEVEL_UNKNOWN`).
        """
        return self._link.ask(calls.log_level(level, timeout))

    def _run(self, questions: Questions[Answer]) -> Answer:
        answer: Any = None
        while True:
            try:
                question = questions.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = self._link.ask(question)
