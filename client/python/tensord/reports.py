"""What a server tells about itself, its sessions and its plans."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping

from tensord import _trees as trees
from tensord._messages import explained, known_here, name_in, nested, seconds
from tensord._operators import SELECTIONS
from tensord._products import Explained, ProgramProduct
from tensord.v1 import plan_cache_pb2, tensor_pb2

_ELEMENT_TYPES = {
    name.removeprefix("ELEMENT_TYPE_").lower(): value
    for name, value in tensor_pb2.ElementType.items()
}
_TENSOR_STATES = {
    name.removeprefix("TENSOR_STATE_"): value for name, value in tensor_pb2.TensorState.items()
}


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
    max_program_bytes: int
    max_program_statements: int
    max_program_labels: int
    max_program_depth: int
    max_program_factors: int
    max_search_seconds: int
    max_optimal_operands: int
    max_symbolic_operands: int
    max_programs: int
    max_tensors: int
    max_sessions_per_peer: int
    transfer_idle_seconds: float
    max_view_stages: int


@dataclasses.dataclass(frozen=True)
class ServerInfo:
    """Version, devices and limits of a server."""

    version: str
    devices: tuple[Device, ...] = nested(Device)
    limits: Limits = nested(Limits)


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
    model: str
    is_up: bool


@dataclasses.dataclass(frozen=True)
class OperationStats:
    """How many operations of a kind ended with a status code."""

    operation: str
    code: str
    count: int


@dataclasses.dataclass(frozen=True)
class PlanCacheCounts:
    """How the plan cache fares; `Session.plan_cache` says more."""

    entry_count: int
    hit_count: int
    miss_count: int
    eviction_count: int


@dataclasses.dataclass(frozen=True)
class HostMemoryStats:
    """What is kept in host memory; see `HostMemoryStats` in admin.proto."""

    use: str
    count: int
    count_limit: int
    used_bytes: int


@dataclasses.dataclass(frozen=True)
class TenantStats:
    """What a tenant has and did; see `TenantStats` in admin.proto."""

    tenant: str
    session_count: int
    tensor_count: int
    memory_used_bytes: int
    request_count: int
    device_seconds: float


@dataclasses.dataclass(frozen=True)
class ServerStats:
    """Counters of a server since its start, and its memory and queues as of now."""

    uptime_seconds: int
    session_count: int
    tensor_count: int
    uploaded_bytes: int
    downloaded_bytes: int
    host_memory_limit_bytes: int
    version: str
    state: str
    tenants: tuple[TenantStats, ...] = nested(TenantStats)
    host_memory: tuple[HostMemoryStats, ...] = nested(HostMemoryStats)
    devices: tuple[DeviceStats, ...] = nested(DeviceStats)
    operations: tuple[OperationStats, ...] = nested(OperationStats)
    plan_cache: PlanCacheCounts = nested(PlanCacheCounts)


@dataclasses.dataclass(frozen=True)
class SessionState:
    """A session as operators know it; see `SessionState` in admin.proto."""

    number: int
    tenant: str
    job: str
    peer: str
    device: str
    priority: int
    tensor_count: int
    memory_used_bytes: int
    memory_quota_bytes: int
    queued_operations: int
    running_operations: int
    age_seconds: float = seconds("age")
    idle_seconds: float = seconds("idle")
    lease_seconds: float = seconds("lease")
    lease_left_seconds: float = seconds("lease_left")


@dataclasses.dataclass(frozen=True)
class RunningCall:
    """A call of a session that has not ended."""

    request_id: str
    rpc: str
    session_number: int
    tenant: str
    elapsed_seconds: float = seconds("elapsed")


@dataclasses.dataclass(frozen=True)
class LargeTensor:
    """A tensor of any session; `bytes` is the memory that it has or will have."""

    id: str
    session_number: int
    tenant: str
    device: str
    extents: tuple[int, ...]
    bytes: int
    is_view: bool
    element_type: str = name_in(_ELEMENT_TYPES)
    state: str = name_in(_TENSOR_STATES)


@dataclasses.dataclass(frozen=True)
class Evicted:
    """The sessions that were ended, and what memory their tensors held."""

    session_numbers: tuple[int, ...]
    memory_bytes: int


@dataclasses.dataclass(frozen=True)
class TrimmedDevice:
    """What a device got back, in bytes."""

    device: str
    memory_bytes: int
    staging_bytes: int


@dataclasses.dataclass(frozen=True)
class Trimmed:
    """What the system got back, in bytes: of devices and of the process's heap."""

    heap_bytes: int
    devices: tuple[TrimmedDevice, ...] = nested(TrimmedDevice)


@dataclasses.dataclass(frozen=True)
class ServerSetting:
    """An option of a server: its value in TOML, "" if it is not set, and by itself."""

    key: str
    value: str
    origin: str
    values: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ReloadedFiles:
    """Files that were read again; `error` says why what was there before is kept."""

    what: str
    paths: tuple[str, ...]
    error: str


@dataclasses.dataclass(frozen=True)
class SessionInfo:
    """What a session is and uses; see `Session` in session.proto."""

    name: str
    job: str
    device: str
    memory_quota_bytes: int
    priority: int
    memory_used_bytes: int
    tensor_count: int
    staging_used_bytes: int
    lease_seconds: float = seconds("lease")


@dataclasses.dataclass(frozen=True)
class ExecutionReport:
    """What the operation that wrote a tensor did.

    Attributes:
        gathered_bytes: Scratch memory for views that had to be gathered before, and
            for a result that had to be scattered into a view.
        kept_extent: Of an SVD, how many values were kept, the most of any matrix.
    """

    kernel: str
    plan_cache_hit: bool
    workspace_bytes: int
    gathered_bytes: int
    kept_extent: int
    queued_seconds: float = seconds("queued")
    executed_seconds: float = seconds("executed")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel of a device; see `Kernel` in plan.proto."""

    name: str
    version: int
    operation: str


@dataclasses.dataclass(frozen=True)
class KernelCandidate:
    """A kernel that was asked.

    Attributes:
        refusal: Why it declines; empty when it could run.
        predicted_nanoseconds: By its cost model; 0 when it declines.
        measured_nanoseconds: The least that it took; 0 where it was not timed.
        decision: What it would do, in one line; empty when it declines the problem.
    """

    kernel: str
    refusal: str
    predicted_nanoseconds: float
    workspace_bytes: int
    measured_nanoseconds: float
    decision: str


@dataclasses.dataclass(frozen=True)
class Explanation(Explained):
    """How an operation would be computed; see `ExplainPlanResponse` in plan.proto.

    `print` shows `text`. Notebooks draw the tree of `products`, which is the operation
    with what it reads.
    """

    kernel: str
    workspace_bytes: int
    flops: float
    moved_bytes: int
    problem: str
    plan_cache_hit: bool
    candidates: tuple[KernelCandidate, ...] = nested(KernelCandidate)
    products: tuple[ProgramProduct, ...] = known_here(())

    @property
    def text(self) -> str:  # type: ignore[override]
        """All of this for people."""
        lines = [
            f"{self.problem}: {self.kernel or 'nothing to compute'}, "
            f"{self.flops:.4g} flops, {self.moved_bytes} bytes moved, "
            f"{self.workspace_bytes} bytes of scratch memory"
        ]
        for each in self.candidates:
            verdict = f"{each.predicted_nanoseconds / 1e6:.4g} ms predicted"
            if each.measured_nanoseconds:
                verdict += f", {each.measured_nanoseconds / 1e6:.4g} ms measured"
            if each.decision:
                verdict += f": {each.decision}"
            lines.append(f"  {each.kernel}: {each.refusal or verdict}")
        return "\n".join(lines + [trees.text(product) for product in self.products])


@dataclasses.dataclass(frozen=True)
class PlanInfo:
    """What a plan is, and how it is computed now; see `Plan` in plan.proto.

    Attributes:
        sample_count: Executions that "incremental" selection has timed so far.
        wanted_sample_count: How many it times in all. Both are 0 before the first one.
        execution_count: Times that it was executed, failures not counted.
    """

    name: str
    operation: str
    device: str
    min_workspace_bytes: int
    max_workspace_bytes: int
    sample_count: int
    wanted_sample_count: int
    execution_count: int
    selection: str = name_in(SELECTIONS)
    kernel: str = explained("kernel")
    workspace_bytes: int = explained("workspace_bytes")
    flops: float = explained("flops")
    moved_bytes: int = explained("moved_bytes")
    problem: str = explained("problem")
    candidates: tuple[KernelCandidate, ...] = explained("candidates", KernelCandidate)


@dataclasses.dataclass(frozen=True)
class PlanCacheJobStats:
    """What a job had of a plan cache; see `PlanCacheJobStats` in plan_cache.proto."""

    job: str
    hit_count: int
    miss_count: int
    planning_seconds: float = seconds("planning")
    saved_seconds: float = seconds("saved")


@dataclasses.dataclass(frozen=True)
class PlanStoreStats:
    """The file that keeps the plan cache between two runs of the server.

    Attributes:
        path: Empty when there is none.
        loaded_count: Entries that it had when the server started.
        saved_count: Entries of the last save.
        saved_at: When that was; None when there was none yet.
        error: Why it was refused at the start, or the last save failed; else empty.
    """

    path: str
    loaded_count: int
    saved_count: int
    saved_at: datetime.datetime | None
    error: str


@dataclasses.dataclass(frozen=True)
class PlanExchangeStats:
    """The Redis through which servers share what they learn.

    Attributes:
        address: Empty when there is none.
        sent_count: Entries sent since the server's start.
        received_count: Entries of other servers that were taken in since then.
        refused_count: Values that were no entries.
        error_count: Exchanges that failed.
        exchanged_at: When one worked last; None when none did yet.
        error: Why the last one failed; else empty.
    """

    address: str
    is_connected: bool
    sent_count: int
    received_count: int
    refused_count: int
    error_count: int
    exchanged_at: datetime.datetime | None
    error: str


@dataclasses.dataclass(frozen=True)
class PlanCacheStats:
    """How a plan cache fares; see `GetPlanCacheStatsResponse` in plan_cache.proto.

    Attributes:
        record_count: Entries of snapshots that nobody has asked for yet.
        bytes: Memory, with all that keeping the entries takes.
        load_count: Hits that made a plan of a snapshot's entry.
        load_errors: Entries of snapshots that did not hold, by reason.
        planning_seconds: Spent on planning, measurements included.
        saved_seconds: Planning that hits have saved.
        jobs: The same by job, as `tensord.connect(job=)` names them; `(warm-up)` is
            `PlanCache.load(problems_only=True)`.
    """

    entry_count: int
    entry_limit: int
    record_count: int
    pinned_count: int
    bytes: int
    byte_limit: int
    hit_count: int
    miss_count: int
    eviction_count: int
    load_count: int
    load_errors: Mapping[str, int]
    planning_seconds: float = seconds("planning")
    saved_seconds: float = seconds("saved")
    jobs: tuple[PlanCacheJobStats, ...] = nested(PlanCacheJobStats)
    store: PlanStoreStats = nested(PlanStoreStats)
    exchange: PlanExchangeStats = nested(PlanExchangeStats)


@dataclasses.dataclass(frozen=True)
class PlanCacheEntry:
    """What was decided for one problem; see `PlanCacheEntry` in plan_cache.proto.

    Attributes:
        id: 16 hexadecimal digits; the same on every server.
        problem: The problem as kernels see it, for people.
        device: What it was planned for.
        last_used: When it was asked for last.
        measured_nanoseconds: 0 when it was not measured.
        selection: "heuristic", "measure" or "incremental".
        source: "planned", "measured" or "loaded", from a snapshot.
    """

    id: str
    problem: str
    device: str
    kernel: str
    workspace_bytes: int
    is_pinned: bool
    hit_count: int
    last_used: datetime.datetime
    bytes: int
    predicted_nanoseconds: float
    measured_nanoseconds: float
    sample_count: int
    wanted_sample_count: int
    selection: str = name_in(SELECTIONS)
    source: str = name_in(
        {
            name.removeprefix("PLAN_SOURCE_").lower(): value
            for name, value in plan_cache_pb2.PlanSource.items()
        }
    )
    planning_seconds: float = seconds("planning")
    saved_seconds: float = seconds("saved")


@dataclasses.dataclass(frozen=True)
class LoadedPlans:
    """What became of a snapshot; see `LoadPlanCacheResponse` in plan_cache.proto.

    Attributes:
        writer: Who wrote it, with its version.
        entry_count: Entries in it.
        taken_count: Of those, taken in, or planned.
    """

    writer: str
    entry_count: int
    taken_count: int
