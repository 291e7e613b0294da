"""What tests of who asks need: servers, and callers with a token or without."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest

import tensord
from tensord.v1 import (
    admin_pb2_grpc,
    error_pb2,
    plan_cache_pb2,
    plan_cache_pb2_grpc,
    session_pb2,
    session_pb2_grpc,
)
from waiting import eventually


class Running(NamedTuple):
    """A server: its Unix socket, its TCP addresses, and what it has logged."""

    unix: str
    log: Path

    def address(self, event: str = "listening") -> str:
        pattern = re.compile(rf"{event} address=(localhost:\d+)")
        assert eventually(lambda: pattern.search(self.log.read_text()) is not None)
        return pattern.findall(self.log.read_text())[0]


@contextlib.contextmanager
def running(**flags: Any) -> Iterator[Running]:
    with tensord.serve(threads=1, **flags) as unix:
        yield Running(unix, Path(unix.removeprefix("unix:")).with_name("log"))


class Caller:
    """Calls with a token, or without one, by a connection of its own."""

    def __init__(self, address: str, token: str = "") -> None:
        own = [("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.insecure_channel(address, options=own)
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.sessions = session_pb2_grpc.SessionServiceStub(self.channel)
        self.plan_cache = plan_cache_pb2_grpc.PlanCacheServiceStub(self.channel)
        self.admin = admin_pb2_grpc.AdminServiceStub(self.channel)

    def open(self) -> str:
        return self(
            self.sessions.OpenSession, session_pb2.OpenSessionRequest()
        ).session.name

    def describe(self, session: str) -> Any:
        return self(
            self.sessions.DescribeSession,
            session_pb2.DescribeSessionRequest(session=session),
        )

    def clear(self) -> Any:
        return self(
            self.plan_cache.ClearPlanCache, plan_cache_pb2.ClearPlanCacheRequest()
        )

    def __call__(self, method: Any, request: Any) -> Any:
        return method(request, metadata=self.metadata, timeout=30, wait_for_ready=True)


def refused(call: Callable[[], Any]) -> tuple[str, str]:
    """Status code and reason of what a call fails with."""
    with pytest.raises(grpc.RpcError) as failure:
        call()
    trailers = dict(failure.value.trailing_metadata())
    detail = error_pb2.ErrorDetail.FromString(trailers["tensord-error-bin"])
    return failure.value.code().name, detail.reason
