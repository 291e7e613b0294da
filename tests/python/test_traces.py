"""Traces that callers begin go on in the server; operators see what it does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.duration_pb2 import Duration
from opentelemetry import trace

import tensord
import tensord.aio
from collector import Collector, Span
from conftest import raw_stubs
from observed_server import ObservedServer
from ports import free_port
from secure_server import new_token
from tensord.v1 import admin_pb2, compute_pb2, trace_pb2, trace_pb2_grpc
from waiting import eventually

CONTROL = Path(os.environ["TENSORD_SERVER"]).with_name("tensorctl")

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
SAMPLED = (("traceparent", f"00-{TRACE}-{CALLER}-01"), ("tracestate", "a=1,b=2"))
UNSAMPLED = (("traceparent", f"00-{TRACE}-{CALLER}-00"),)
MALFORMED = (("traceparent", f"00-{TRACE}-{CALLER}"), ("tracestate", "a=1"))
PHASES = ["plan", "queue", "kernel", "transfer"]

pytestmark = pytest.mark.timing


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as started:
        yield started


@contextlib.contextmanager
def traced(
    folder: Path, collector: Collector | str, *, sample: float = 0
) -> Iterator[ObservedServer]:
    """A server that sends traces."""
    address = collector if isinstance(collector, str) else collector.address
    with ObservedServer(
        folder, f"--otlp={address}", f"--trace-sample={sample}"
    ) as server:
        yield server


def contraction(
    session: tensord.Session, a: tensord.RemoteTensor
) -> compute_pb2.ContractRequest:
    """Of `a` with itself."""
    request = compute_pb2.ContractRequest(session=session.name)
    request.a.tensor, request.b.tensor = a.full_name, a.full_name
    request.a.modes[:], request.b.modes[:], request.d.modes[:] = [0, 1], [1, 2], [0, 2]
    return request


def get_info(session: tensord.Session, *metadata: tuple[str, str]) -> None:
    admin = raw_stubs(session).admin
    admin.GetServerInfo(admin_pb2.GetServerInfoRequest(), metadata=metadata)


def children(spans: list[Span], of: Span) -> list[Span]:
    return [each for each in spans if each.message.parent_span_id == of.message.span_id]


@pytest.mark.timing(high=True)
def test_a_callers_trace_goes_on_in_the_server(tmp_path: Path, collector: Collector) -> None:
    with traced(tmp_path, collector) as server, tensord.connect(server.address) as session:
        a = session.upload(np.ones((200, 200)))
        began = time.time_ns()
        raw_stubs(session).compute.Contract(
            contraction(session, a), metadata=(*SAMPLED, ("x-request-id", "job-7"))
        )
        ended = time.time_ns()
        spans = collector.await_spans("Contract")
        call = spans[0]
    assert call.message.trace_id.hex() == TRACE
    assert call.message.parent_span_id.hex() == CALLER
    assert call.message.trace_state == "a=1,b=2"
    assert call.message.kind == call.message.SPAN_KIND_SERVER
    assert call.message.flags == 0x301
    attributes = call.attributes
    assert attributes.pop("tensord.session") > 0
    assert attributes.pop("tensord.kernel").startswith("cpu.contract.")
    assert attributes == {
        "rpc.system": "grpc",
        "rpc.method": "Contract",
        "rpc.grpc.status_code": 0,
        "tensord.operation": "contract",
        "tensord.device": "cpu:0",
        "tensord.tenant": "default",
        "tensord.request_id": "job-7",
    }
    assert call.resource["service.name"] == "tensord"
    assert call.resource["host.name"] == socket.gethostname()
    assert call.resource["service.version"] and call.resource["service.instance.id"]
    phases = children(spans, call)
    assert [each.name for each in phases] == PHASES
    assert len(spans) == 5
    # time: the phases are what the call took, but for rounding
    together = sum(each.nanoseconds for each in phases)
    assert together == pytest.approx(call.nanoseconds, abs=10)
    ends = [each.message.end_time_unix_nano for each in phases]
    starts = [each.message.start_time_unix_nano for each in phases]
    assert starts[1:] == ends[:-1]
    assert began <= starts[0] == call.message.start_time_unix_nano
    assert call.message.end_time_unix_nano <= ended
    assert phases[2].nanoseconds > 10_000


def test_who_calls_decides_and_else_the_ratio(tmp_path: Path, collector: Collector) -> None:
    with traced(tmp_path, collector) as server, tensord.connect(server.address) as session:
        for metadata in (UNSAMPLED, MALFORMED, (), SAMPLED):
            get_info(session, *metadata)
        spans = collector.await_spans("GetServerInfo")
        assert [span.message.trace_id.hex() for span in spans] == [TRACE]
        assert children(spans, spans[0]) == []
    other = tmp_path / "other"
    other.mkdir()
    with (
        traced(other, collector, sample=1) as server,
        tensord.connect(server.address) as session,
    ):
        get_info(session, *UNSAMPLED)
        get_info(session, *MALFORMED)
        session.upload(np.ones(10))
        assert eventually(lambda: bool(collector.spans("UploadTensor")))
        first = collector.spans("OpenSession")[0]
        upload = collector.spans("UploadTensor")
    assert first.message.trace_id.hex() != TRACE
    assert first.message.parent_span_id == b"" and first.message.flags == 0x101
    assert [span.name for span in upload] == ["UploadTensor", "transfer"]
    assert upload[0].attributes["tensord.operation"] == "upload"
    traces = [span.message.trace_id.hex() for span in collector.spans("GetServerInfo")]
    assert traces.count(TRACE) == 1


def test_operations_of_a_stream_are_spans_of_its_own(tmp_path: Path, collector: Collector) -> None:
    with traced(tmp_path, collector) as server, tensord.connect(server.address) as session:
        a = session.upload(np.ones((4, 4)))
        request = compute_pb2.ExecuteStreamRequest(contract=contraction(session, a))
        failing = compute_pb2.ExecuteStreamRequest(contract=contraction(session, a))
        failing.contract.a.tensor += "none"
        stream = raw_stubs(session).compute.ExecuteStream(
            iter([request, request, failing, *[request] * 200]), metadata=SAMPLED
        )
        assert len(list(stream)) == 203
        spans = collector.await_spans("ExecuteStream")
    call = next(span for span in spans if span.name == "ExecuteStream")
    operations = children(spans, call)
    assert [span.name for span in operations] == ["contract"] * 128
    [failed] = [span for span in operations if span.attributes["rpc.grpc.status_code"] != 0]
    assert [each.name for each in children(spans, failed)] == ["plan"]
    assert failed.attributes["error.type"] == "TENSOR_NOT_FOUND"
    assert failed.attributes["rpc.grpc.status_code"] == 5
    assert failed.message.status.code == 0  # it is the caller's mistake
    for operation in operations:
        if operation is not failed:
            assert [each.name for each in children(spans, operation)] == PHASES
    assert session.name.removeprefix("sessions/") not in str(spans)


def test_a_collector_that_comes_back_hears_what_it_missed(tmp_path: Path) -> None:
    port = free_port()
    with (
        traced(tmp_path, f"localhost:{port}") as server,
        tensord.connect(server.address) as session,
    ):
        get_info(session, *SAMPLED)
        assert eventually(lambda: "trace_export_failed" in server.log())
        with Collector(port) as collector:
            collector.await_spans("GetServerInfo")
            assert eventually(lambda: "trace_export_works" in server.log())
            collector.status = grpc.StatusCode.UNAVAILABLE
            before = collector.call_count
            get_info(session, *SAMPLED)
            assert eventually(lambda: collector.call_count >= before + 2)
            collector.status = grpc.StatusCode.OK
            assert eventually(lambda: len(collector.spans("GetServerInfo")) == 2)
            collector.status = grpc.StatusCode.INVALID_ARGUMENT
            get_info(session, *SAMPLED)

            def refused() -> bool:
                metrics = server.metrics()
                return metrics.sum("tensord_trace_spans_total", result="refused") == 1

            assert eventually(refused)
        assert server.metrics().sum("tensord_trace_spans_total", result="sent") == 2


@pytest.mark.timing(high=True)
def test_a_collector_that_sleeps_holds_nobody_up(tmp_path: Path, collector: Collector) -> None:
    collector.is_awake.clear()
    with traced(tmp_path, collector) as server, tensord.connect(server.address) as session:
        call = raw_stubs(session).admin.GetServerInfo.future
        request = admin_pb2.GetServerInfoRequest()

        def spans(result: str) -> float:
            return server.metrics().sum("tensord_trace_spans_total", result=result)

        for _ in range(50):
            calls = [call(request, metadata=SAMPLED) for _ in range(100)]
            assert all(each.result() for each in calls)
        # It has heard of nothing yet: so many wait, and at most a batch is on its way.
        assert collector.spans() == [] and spans("sent") == 0
        assert 5000 - 4096 - 512 <= spans("dropped") <= 5000 - 4096
        collector.is_awake.set()
        assert eventually(lambda: spans("sent") + spans("dropped") == 5000, 60)
        assert spans("refused") == 0
        # What it was slow to answer comes again.
        heard = {span.message.span_id for span in collector.spans()}
        assert len(heard) == spans("sent")
        collector.is_awake.clear()
        get_info(session, *SAMPLED)
        server.terminate()
        assert server.process.wait(60) == 0
    assert {span.message.span_id for span in collector.spans()} == heard


def test_what_waits_is_sent_before_the_server_ends(tmp_path: Path, collector: Collector) -> None:
    with traced(tmp_path, collector) as server:
        with tensord.connect(server.address) as session:
            get_info(session, *SAMPLED)
            collector.await_spans("GetServerInfo")  # they have found each other
            for _ in range(20):
                get_info(session, *SAMPLED)
        server.terminate()
        assert server.process.wait(10) == 0
    assert len(collector.spans("GetServerInfo")) == 21


@contextlib.contextmanager
def recording(address: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`tensorctl trace`, from when it misses nothing any more."""
    with subprocess.Popen(
        [CONTROL, f"--address={address}", "trace", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "recording\n"
        yield process


def slices(file: Path) -> dict[str, list[dict[str, Any]]]:
    """What a timeline shows, by process; nothing of a row overlaps but what is inside."""
    trace = json.loads(file.read_text())
    names: dict[int, str] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    for event in trace["traceEvents"]:
        if event["name"] == "process_name":
            names[event["pid"]] = event["args"]["name"]
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            found.setdefault(names[event["pid"]], []).append(event)
    for events in found.values():
        for row in {event["tid"] for event in events}:
            free_from = 0.0
            for event in (each for each in events if each["tid"] == row):
                if event["name"] not in PHASES:
                    assert event["ts"] >= free_from - 0.01
                    free_from = event["ts"] + event["dur"]
                assert event["ts"] + event["dur"] <= free_from + 500
    return found


@pytest.mark.timing(high=True)
def test_a_timeline_shows_what_ran_on_each_device(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    with (
        ObservedServer(tmp_path) as server,
        tensord.connect(server.address) as session,
        tensord.connect(server.address) as other,
    ):
        a = session.upload(np.ones((300, 300)))
        b = other.upload(np.ones((300, 300)))
        with recording(server.address, "--seconds=5", f"-o{file}") as process:
            futures = [
                raw_stubs(each).compute.Contract.future(
                    contraction(each, tensor), metadata=(("x-request-id", f"{name}-{i}"),)
                )
                for i in range(10)
                for name, each, tensor in (("one", session, a), ("two", other, b))
            ]
            assert all(future.result() for future in futures)
            session.upload(np.ones(10))
            session.einsum("ij,jk,kl->il", a, a, a)
            output, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
        assert re.fullmatch(r"\d+ calls and operations in \S+, 0 lost\n", output)
    shown = slices(file)
    device = [event["args"] for event in shown["cpu:0"]]
    assert {f"{name}-{i}" for i in range(10) for name in ("one", "two")} <= {
        each["request_id"] for each in device
    }
    assert {each["tenant"] for each in device} == {"default"}
    assert len({each["session"] for each in device}) == 2
    assert {event["name"] for event in shown["cpu:0"]} == {"contract", "execute_program"}
    assert sum(event["name"] == "queue" for event in shown["cpu:0 calls"]) == len(device)
    assert "upload" in {event["name"] for event in shown["cpu:0 calls"]}
    assert session.name.removeprefix("sessions/") not in file.read_text()


def test_one_request_is_recorded_until_it_ends(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    with ObservedServer(tmp_path) as server, tensord.connect(server.address) as session:
        a = session.upload(np.ones((4, 4)))
        request = contraction(session, a)
        contract = raw_stubs(session).compute.Contract
        words = ("--request=it", "--seconds=60", f"-o{file}")
        with recording(server.address, *words) as process:
            for name in ("other", "it", "behind"):
                contract(request, metadata=(("x-request-id", name), *SAMPLED))
            output, _ = process.communicate(timeout=20)
        assert (process.returncode, output[:2]) == (0, "1 ")
        (event,) = slices(file)["cpu:0"]
        assert event["args"]["request_id"] == "it"
        assert event["args"]["trace_id"] == TRACE
        words = ("--request=no", "--seconds=.1", f"-o{file}")
        with recording(server.address, *words) as process:
            _, errors = process.communicate(timeout=20)
        assert process.returncode == 1
        assert "no call with the id no ended in 100.0 ms" in errors


def test_what_strangers_do_and_other_tenants_is_not_recorded(tmp_path: Path) -> None:
    tokens, file = tmp_path / "tokens", tmp_path / "trace.json"
    one, two = new_token(tokens, "one"), new_token(tokens, "two")
    boss = tmp_path / "boss"
    boss.write_text(new_token(tokens, "ops", "operator"))
    with ObservedServer(tmp_path, f"--tokens={tokens}") as server:
        words = ["--request=it", "--tenant=one", "--seconds=60"]
        words += [f"-o{file}", f"--token-file={boss}"]
        with (
            tensord.connect(server.address, token=one) as first,
            tensord.connect(server.address, token=two) as second,
            recording(server.address, *words) as process,
        ):
            for session, token in ((None, None), (second, two), (first, one)):
                metadata = [("x-request-id", "it")]
                if token is not None:
                    metadata.append(("authorization", f"Bearer {token}"))
                try:
                    get_info(session or first, *metadata)
                except grpc.RpcError as error:
                    assert token is None and error.code() is grpc.StatusCode.UNAUTHENTICATED
            output, errors = process.communicate(timeout=20)
        assert (process.returncode, output[:2]) == (0, "1 "), errors
        (event,) = [each for each in slices(file)["server calls"] if each["name"] == "GetServerInfo"]
        assert event["args"]["tenant"] == "one"


def test_recordings_are_bounded_and_end_with_the_server(tmp_path: Path) -> None:
    with (
        ObservedServer(tmp_path) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        record = trace_pb2_grpc.TraceServiceStub(channel).RecordTimeline

        def request(seconds: int) -> trace_pb2.RecordTimelineRequest:
            return trace_pb2.RecordTimelineRequest(duration=Duration(seconds=seconds))

        for seconds in (0, -1, 601):
            with pytest.raises(grpc.RpcError) as failure:
                list(record(request(seconds)))
            assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "wanted more than 0s and at most 10m" in failure.value.details()
        under_way = [record(request(60)) for _ in range(4)]
        assert all(next(each).activities == [] for each in under_way)
        with pytest.raises(grpc.RpcError) as failure:
            list(record(request(60)))
        assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        under_way.pop().cancel()

        def has_room() -> bool:
            under_way.append(record(request(60)))
            try:
                return bool(next(under_way[-1]).activities == [])
            except grpc.RpcError:
                return False

        assert eventually(has_room)
        assert eventually(lambda: server.metrics().sum("tensord_requests_in_flight") == 4)
        kept = server.metrics().sum("tensord_host_memory_bytes", use="requests")
        assert kept >= 4 * 16384 * 100  # what clients do not take is counted
        server.terminate()
        assert server.process.wait(5) == 0
        assert sum(response.dropped_count for response in under_way[0]) == 0
        assert under_way[0].code() is grpc.StatusCode.OK


def test_the_current_span_is_passed_on(tmp_path: Path, collector: Collector) -> None:
    state = trace.TraceState([("a", "1")])
    context = trace.SpanContext(
        int(TRACE, 16), int(CALLER, 16), True, trace.TraceFlags(1), state
    )
    with traced(tmp_path, collector) as server, tensord.connect(server.address) as session:
        with trace.use_span(trace.NonRecordingSpan(context)):
            session.einsum("ij,jk", np.ones((2, 2)), np.ones((2, 2)))

            async def compute() -> None:
                async with tensord.aio.connect(server.address) as other:
                    await other.einsum("ij->i", np.ones((2, 2)))

            asyncio.run(compute())
        session.einsum("ij->", np.ones((2, 2)))
        collector.await_spans("Contract")
        calls = [span for span in collector.spans() if span.message.kind == 2]
    names = [span.name for span in calls]
    assert names.count("Contract") == names.count("OpenSession") == 1
    assert names.count("Reduce") == 1
    assert {span.message.trace_id.hex() for span in calls} == {TRACE}
    assert {span.message.parent_span_id.hex() for span in calls} == {CALLER}
    assert {span.message.trace_state for span in calls} == {"a=1"}
