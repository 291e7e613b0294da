"""What a server tells about itself, its sessions and its plans."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

Report = TypeVar("Report")


def _nested(cls: type) -> Any:
    """A field that is a message, or a tuple of messages, of the class `cls`."""
    return dataclasses.field(metadata={"of": cls})


def _seconds(source: str) -> Any:
    """A field that is the Duration `source` in seconds."""
    return dataclasses.field(metadata={"source": source})


@dataclasses.dataclass(frozen=True)
class Device:
    """A device of a server; see `Device` in admin.proto."""

    name: str
    model: str
    architecture: str
    thread_count: int
    memory_bytes: int
    properties: Mapping[str, str]
    kernels: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a server takes; see `Limits` in admin.proto."""

    max_chunk_bytes: int
    max_inline_bytes: int
    max_message_bytes: int
    max_modes: int
    max_lease_seconds: int
    max_sessions: int
    session_quota_bytes: int
    max_queued_operations: int
    max_stream_operations: int


@dataclasses.dataclass(frozen=True)
class ServerInfo:
    """Version, devices and limits of a server."""

    version: str
    devices: tuple[Device, ...] = _nested(Device)
    limits: Limits = _nested(Limits)


@dataclasses.dataclass(frozen=True)
class DeviceStats:
    """Memory and work of a device; see `DeviceStats` in admin.proto."""

    device: str
    memory_used_bytes: int
    memory_peak_bytes: int
    memory_reserved_bytes: int
    memory_limit_bytes: int
    staging_used_bytes: int
    staging_peak_bytes: int
    staging_reserved_bytes: int
    staging_limit_bytes: int
    queued_operations: int
    executed_operations: int
    busy_seconds: float


@dataclasses.dataclass(frozen=True)
class OperationStats:
    """How many operations of a kind ended with a status code."""

    operation: str
    code: str
    count: int


@dataclasses.dataclass(frozen=True)
class PlanCacheStats:
    """How the plan cache fares."""

    entry_count: int
    hit_count: int
    miss_count: int
    eviction_count: int


@dataclasses.dataclass(frozen=True)
class ServerStats:
    """Counters of a server since its start, and its memory and queues as of now."""

    uptime_seconds: int
    session_count: int
    tensor_count: int
    uploaded_bytes: int
    downloaded_bytes: int
    devices: tuple[DeviceStats, ...] = _nested(DeviceStats)
    operations: tuple[OperationStats, ...] = _nested(OperationStats)
    plan_cache: PlanCacheStats = _nested(PlanCacheStats)


@dataclasses.dataclass(frozen=True)
class SessionInfo:
    """What a session is and uses; see `Session` in session.proto."""

    name: str
    job: str
    device: str
    memory_quota_bytes: int
    memory_used_bytes: int
    tensor_count: int
    staging_used_bytes: int
    lease_seconds: float = _seconds("lease")


@dataclasses.dataclass(frozen=True)
class ExecutionReport:
    """What the operation that wrote a tensor did."""

    kernel: str
    plan_cache_hit: bool
    workspace_bytes: int
    queued_seconds: float = _seconds("queued")
    executed_seconds: float = _seconds("executed")


@dataclasses.dataclass(frozen=True)
class KernelCandidate:
    """A kernel that was asked; `refusal` is empty when it could run."""

    kernel: str
    refusal: str
    predicted_nanoseconds: float
    workspace_bytes: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """How an operation would be computed; see `ExplainPlanResponse` in plan.proto."""

    kernel: str
    workspace_bytes: int
    flops: float
    moved_bytes: int
    problem: str
    plan_cache_hit: bool
    candidates: tuple[KernelCandidate, ...] = _nested(KernelCandidate)


def from_message(cls: type[Report], message: Message) -> Report:
    """Returns the message as a value of the dataclass `cls`."""
    values = {
        field.name: _plain(
            getattr(message, field.metadata.get("source", field.name)),
            field.metadata.get("of"),
        )
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
    }
    return cls(**values)


def _plain(value: Any, cls: type | None) -> Any:
    if isinstance(value, Duration):
        return value.seconds + value.nanos / 1e9
    if isinstance(value, Message):
        return from_message(cls, value) if cls else value
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    return tuple(from_message(cls, item) if cls else item for item in value)
