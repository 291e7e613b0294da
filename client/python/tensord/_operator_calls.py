"""What operators ask of a server, whether the answer is awaited or not."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration

from tensord._arguments import check_timeout, check_type
from tensord._messages import from_message
from tensord._session_link import Question
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

Answer = TypeVar("Answer")

# Questions one after the other, each sent back its answer, and what they come to.
Questions = Generator[Question[Any], Any, Answer]


def sessions(tenant: str, timeout: float | None) -> Questions[tuple[SessionState, ...]]:
    """Asks for all pages of `Operator.sessions`."""
    states: list[SessionState] = []
    token = ""
    while True:
        page = yield _question(
            "ListSessions", timeout, _same, tenant=tenant, page_token=token
        )
        states += [from_message(SessionState, session) for session in page.sessions]
        token = page.next_page_token
        if not token:
            return tuple(states)


def operations(session: int, timeout: float | None) -> Question[tuple[RunningCall, ...]]:
    """Asks for what `Operator.operations` returns."""

    def answer(response: admin_pb2.ListOperationsResponse) -> tuple[RunningCall, ...]:
        return tuple(from_message(RunningCall, call) for call in response.operations)

    return _question("ListOperations", timeout, answer, session_number=session)


def tensors(
    count: int, session: int, timeout: float | None
) -> Questions[tuple[LargeTensor, ...]]:
    """Asks for as many pages as `Operator.tensors` needs."""
    check_type("count", count, int, "a number of tensors")
    largest: list[LargeTensor] = []
    token = ""
    while len(largest) < count:
        page = yield _question(
            "ListLargestTensors",
            timeout,
            _same,
            session_number=session,
            page_size=min(_MOST_OF_A_PAGE, count - len(largest)),
            page_token=token,
        )
        largest += [from_message(LargeTensor, tensor) for tensor in page.tensors]
        token = page.next_page_token
        if not token:
            break
    return tuple(largest)


def cancel(request_id: str, session: int, timeout: float | None) -> Question[int]:
    """Asks for what `Operator.cancel` does."""
    return _question(
        "CancelOperations",
        timeout,
        lambda response: int(response.cancelled_count),
        request_id=request_id,
        session_number=session,
    )


def evict(
    session: int, tenant: str, idle: float, timeout: float | None
) -> Question[Evicted]:
    """Asks for what `Operator.evict` does."""
    return _question(
        "EvictSessions",
        timeout,
        lambda response: from_message(Evicted, response),
        session_number=session,
        tenant=tenant,
        idle=_duration(idle) if tenant else None,
    )


def trim(timeout: float | None) -> Question[Trimmed]:
    """Asks for what `Operator.trim` does."""
    return _question(
        "TrimMemory", timeout, lambda response: from_message(Trimmed, response)
    )


def drain(seconds: float | None, timeout: float | None) -> Question[None]:
    """Asks for what `Operator.drain` does."""
    wanted = None if seconds is None else _duration(seconds)
    return _question("DrainServer", timeout, lambda _: None, timeout=wanted)


def config(timeout: float | None) -> Question[tuple[ServerSetting, ...]]:
    """Asks for what `Operator.config` returns."""

    def answer(response: admin_pb2.GetServerConfigResponse) -> tuple[ServerSetting, ...]:
        return tuple(from_message(ServerSetting, each) for each in response.settings)

    return _question("GetServerConfig", timeout, answer)


def reload(timeout: float | None) -> Question[tuple[ReloadedFiles, ...]]:
    """Asks for what `Operator.reload` does."""

    def answer(response: admin_pb2.ReloadServerConfigResponse) -> tuple[ReloadedFiles, ...]:
        return tuple(from_message(ReloadedFiles, files) for files in response.files)

    return _question("ReloadServerConfig", timeout, answer)


def log_level(level: str, timeout: float | None) -> Question[str]:
    """Asks for what `Operator.log_level` returns, and does."""
    if not level:
        return _question("GetLogLevel", timeout, lambda response: str(response.level))
    return _question(
        "SetLogLevel", timeout, lambda response: str(response.previous_level), level=level
    )


def _same(response: Any) -> Any:
    return response


def _question(
    method: str, deadline: float | None, answer: Callable[[Any], Answer], **fields: Any
) -> Question[Answer]:
    check_timeout(deadline)
    request = getattr(admin_pb2, f"{method}Request")(**fields)
    return Question("admin", method, request, deadline, answer)


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
