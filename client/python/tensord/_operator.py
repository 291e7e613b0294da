"""A server in an operator's hands."""

from __future__ import annotations

from typing import Any

from google.protobuf.duration_pb2 import Duration

from tensord._arguments import check_timeout, check_type
from tensord._blocking_link import BlockingLink
from tensord._messages import from_message
from tensord.reports import (
    Evicted,
    LargeTensor,
    ReloadedFiles,
    RunningCall,
    ServerSetting,
    SessionState,
    Trimmed,
)
from tensord.v1 import admin_pb2

_MOST_OF_A_PAGE = 1000


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
        self._connection = link.connection

    def sessions(
        self, tenant: str = "", timeout: float | None = None
    ) -> tuple[SessionState, ...]:
        """Returns all sessions by number, or those of a tenant."""
        check_timeout(timeout)
        pages = self._connection.pages(
            self._connection.admin.ListSessions,
            admin_pb2.ListSessionsRequest(tenant=tenant),
            timeout,
        )
        return tuple(
            from_message(SessionState, session) for page in pages for session in page.sessions
        )

    def operations(
        self, session: int = 0, timeout: float | None = None
    ) -> tuple[RunningCall, ...]:
        """Returns the calls that run, a thousand at most, the oldest first.

        Args:
            session: Number of the only one to look at.
            timeout: Deadline of the call.
        """
        response = self._call("ListOperations", timeout, session_number=session)
        return tuple(from_message(RunningCall, call) for call in response.operations)

    def tensors(
        self, count: int = 20, session: int = 0, timeout: float | None = None
    ) -> tuple[LargeTensor, ...]:
        """Returns the largest tensors, the largest first.

        Args:
            count: How many at most.
            session: Number of the only one to look at.
            timeout: Deadline of each call.
        """
        check_type("count", count, int, "a number of tensors")
        tensors: list[LargeTensor] = []
        token = ""
        while len(tensors) < count:
            page = self._call(
                "ListLargestTensors",
                timeout,
                session_number=session,
                page_size=min(_MOST_OF_A_PAGE, count - len(tensors)),
                page_token=token,
            )
            tensors += [from_message(LargeTensor, tensor) for tensor in page.tensors]
            token = page.next_page_token
            if not token:
                break
        return tuple(tensors)

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
        response = self._call(
            "CancelOperations", timeout, request_id=request_id, session_number=session
        )
        return int(response.cancelled_count)

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
        wanted = _duration(idle) if tenant else None
        response = self._call(
            "EvictSessions", timeout, session_number=session, tenant=tenant, idle=wanted
        )
        return from_message(Evicted, response)

    def trim(self, timeout: float | None = None) -> Trimmed:
        """Has memory given back that is kept for reuse; returns how much was."""
        return from_message(Trimmed, self._call("TrimMemory", timeout))

    def drain(self, seconds: float | None = None, timeout: float | None = None) -> None:
        """Has the server end as SIGTERM does.

        Args:
            seconds: How long running calls may take; None for what the server's options
                say.
            timeout: Deadline of the call.
        """
        wanted = None if seconds is None else _duration(seconds)
        self._call("DrainServer", timeout, timeout=wanted)

    def config(self, timeout: float | None = None) -> tuple[ServerSetting, ...]:
        """Returns the options of the server, each with its origin."""
        response = self._call("GetServerConfig", timeout)
        return tuple(from_message(ServerSetting, setting) for setting in response.settings)

    def reload(self, timeout: float | None = None) -> tuple[ReloadedFiles, ...]:
        """Has certificates, tokens, keys and tenants read again; says what came of it."""
        response = self._call("ReloadServerConfig", timeout)
        return tuple(from_message(ReloadedFiles, files) for files in response.files)

    def log_level(self, level: str = "", timeout: float | None = None) -> str:
        """Returns the least level that is logged; sets it then if one is given.

        Raises:
            InvalidArgument: There is no such level (`LOG_LEVEL_UNKNOWN`).
        """
        if not level:
            return str(self._call("GetLogLevel", timeout).level)
        return str(self._call("SetLogLevel", timeout, level=level).previous_level)

    def _call(self, method: str, deadline: float | None, **fields: Any) -> Any:
        check_timeout(deadline)
        request = getattr(admin_pb2, f"{method}Request")(**fields)
        return self._connection.call(
            getattr(self._connection.admin, method), request, deadline
        )


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
