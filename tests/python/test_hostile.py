"""What a stranger can make a server hold is counted before it is held."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.duration_pb2 import Duration

import tensord
from callers import Caller, refused, running
from files import rewrite
from http2 import deaf_call, ends_of_streams
from observed_server import ObservedServer
from secure_server import new_token
from tensord.v1 import admin_pb2, compute_pb2, session_pb2, tensor_pb2, trace_pb2, trace_pb2_grpc, view_pb2
from waiting import eventually

pytestmark = pytest.mark.timing

STREAM = "/tensord.v1.ComputeService/ExecuteStream"
CONTRACT = "/tensord.v1.ComputeService/Contract"
# Field 15, empty: what a message does not know, and a batch of streams.
EMPTY_FIELD = b"\x7a\x00"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ObservedServer]:
    with ObservedServer(tmp_path) as server:
        yield server


def resident_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def thread_count(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/task"))


def raw(channel: grpc.Channel, path: str, kind: str = "unary_unary") -> Any:
    return getattr(channel, kind)(path)


def kept_open(first: bytes, ends: threading.Event) -> Iterator[bytes]:
    """One message, and then nothing."""
    yield first
    ends.wait(60)


def test_dense_requests_are_refused_unparsed(server: ObservedServer) -> None:
    caller = Caller(server.address)
    caller.open()
    before = resident_bytes(server.process.pid)
    request = EMPTY_FIELD * 1_900_000
    for _ in range(4):
        assert refused(lambda: raw(caller.channel, CONTRACT)(request, timeout=30)) == (
            "INVALID_ARGUMENT",
            "REQUEST_TOO_DENSE",
        )
    streams = raw(caller.channel, STREAM, "stream_stream")
    ends = threading.Event()
    for _ in range(8):
        call = streams(kept_open(request, ends), timeout=30)
        assert refused(lambda call=call: next(call)) == (
            "INVALID_ARGUMENT",
            "REQUEST_TOO_DENSE",
        )
    ends.set()
    assert resident_bytes(server.process.pid) - before < 100 << 20


def test_bodies_of_strangers_are_not_parsed(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    known = new_token(tokens, "chemistry")
    with running(tokens=str(tokens)) as server:
        for path in (CONTRACT, "/tensord.v1.SessionService/OpenSession"):
            no_message = b"\xff" * 1000
            stranger, user = Caller(server.unix), Caller(server.unix, known)
            assert refused(
                lambda path=path: raw(stranger.channel, path)(no_message, timeout=30)
            ) == ("UNAUTHENTICATED", "CREDENTIALS_MISSING")
            assert refused(
                lambda path=path: user(raw(user.channel, path), no_message)
            ) == ("INVALID_ARGUMENT", "REQUEST_MALFORMED")


def long_contraction(session: tensord.Session, modes: int) -> compute_pb2.ContractRequest:
    """One that is refused only by who looks at all of it."""
    request = compute_pb2.ContractRequest(session=session.name)
    request.a.modes.extend([1] * modes)
    return request


def test_streams_keep_no_requests(server: ObservedServer) -> None:
    with tensord.connect(server.address) as session:
        channel = Caller(server.address).channel
        request = compute_pb2.ExecuteStreamRequest(contract=long_contraction(session, 3_000_000))
        ends = threading.Event()
        before = resident_bytes(server.process.pid)
        calls = []
        for _ in range(20):
            call = raw(channel, STREAM, "stream_stream")(
                kept_open(request.SerializeToString(), ends), timeout=60
            )
            next(call)
            calls.append(call)
        assert resident_bytes(server.process.pid) - before < 150 << 20
        ends.set()
        assert all(call.code() == grpc.StatusCode.OK for call in calls)


def test_a_stream_names_its_session_soon(server: ObservedServer) -> None:
    ends = threading.Event()
    call = raw(Caller(server.address).channel, STREAM, "stream_stream")(
        kept_open(b"", ends), timeout=60
    )
    next(call)  # An error of its own.
    assert refused(lambda: next(call)) == ("ABORTED", "STREAM_WITHOUT_SESSION")
    ends.set()


def inline_permutation(session: tensord.Session, count: int) -> compute_pb2.PermuteRequest:
    """Its result, in the response, has `count` elements."""
    request = compute_pb2.PermuteRequest(session=session.name)
    request.a.modes.append(1)
    request.a.inline.element_type = tensor_pb2.ELEMENT_TYPE_FLOAT32
    request.a.inline.layout.extents.append(count)
    request.a.inline.data = bytes(4 * count)
    request.d.modes.append(1)
    request.d.inline = True
    return request


def unread(channel: grpc.Channel, session: tensord.Session, ends: threading.Event) -> Any:
    """A stream whose answers nobody takes."""
    request = compute_pb2.ExecuteStreamRequest(
        permute=inline_permutation(session, 225_000)
    ).SerializeToString()

    def requests() -> Iterator[bytes]:
        for _ in range(16):
            yield request
        ends.wait(60)

    return raw(channel, STREAM, "stream_stream")(requests(), timeout=60)


def end_of(call: Any) -> grpc.StatusCode:
    """What a stream ends with whose responses are taken at last."""
    with pytest.raises(grpc.RpcError):
        for _ in call:
            pass
    return call.code()


def test_answers_that_nobody_takes_do_not_stay(tmp_path: Path) -> None:
    with ObservedServer(tmp_path, "--transfer-idle-seconds=1") as server:
        with tensord.connect(server.address) as session:
            ends = threading.Event()
            # By itself a client takes as much as the connection carries.
            narrow = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1 << 16)]
            channel = grpc.insecure_channel(server.address, options=narrow)
            calls = [unread(channel, session, ends) for _ in range(4)]
            used: Callable[[], float]
            used = lambda: server.metrics().sum("tensord_host_memory_bytes", use="requests")  # noqa: E731
            assert eventually(lambda: used() > 4 << 20)
            assert eventually(lambda: used() == 0)
            assert [end_of(call) for call in calls] == [grpc.StatusCode.ABORTED] * 4
            ends.set()
            assert session.describe().memory_used_bytes == 0


def test_streams_end_with_their_session(server: ObservedServer) -> None:
    session = tensord.connect(server.address)
    ends = threading.Event()
    channel = Caller(server.address).channel
    call = unread(channel, session, ends)
    next(call)
    session.close()
    assert end_of(call) == grpc.StatusCode.NOT_FOUND
    ends.set()


def test_reflection_takes_no_threads(server: ObservedServer) -> None:
    caller = Caller(server.address)
    caller.open()
    path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    before = thread_count(server.process.pid)
    ends = threading.Event()
    calls = []
    for _ in range(50):
        call = raw(caller.channel, path, "stream_stream")(
            kept_open(b"\x3a\x00", ends), timeout=60
        )
        assert b"tensord.v1.ComputeService" in next(call)
        calls.append(call)
    # gRPC's own, which come and go, included.
    assert thread_count(server.process.pid) < before + 10
    ends.set()


@pytest.mark.parametrize("kind", ["tensor", "view", "session"])
def test_what_nobody_hears_of_goes(server: ObservedServer, kind: str) -> None:
    with tensord.connect(server.address) as session:
        tensor = session.upload(np.ones((2, 3), np.float32), name="a")
        path, request = {
            "tensor": (
                "/tensord.v1.TensorService/CopyTensor",
                tensor_pb2.CopyTensorRequest(source=tensor.full_name),
            ),
            "view": (
                "/tensord.v1.ViewService/CreateView",
                view_pb2.CreateViewRequest(tensor=tensor.full_name),
            ),
            "session": (
                "/tensord.v1.SessionService/OpenSession",
                session_pb2.OpenSessionRequest(),
            ),
        }[kind]

        def count() -> int:
            if kind == "session":
                return session.stats().session_count
            return session.describe().tensor_count

        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(server.address.removeprefix("unix:"))
            deaf.sendall(deaf_call(path, request.SerializeToString()))
            assert eventually(lambda: count() == 2)
        assert eventually(lambda: count() == 1)


def test_short_answers_that_nobody_takes_do_not_stay(tmp_path: Path) -> None:
    with (
        ObservedServer(tmp_path, "--transfer-idle-seconds=1") as server,
        socket.socket(socket.AF_UNIX) as deaf,
    ):
        deaf.settimeout(20)
        deaf.connect(server.address.removeprefix("unix:"))
        deaf.sendall(deaf_call("/tensord.v1.AdminService/GetServerInfo", b""))
        received = b""
        while 1 not in ends_of_streams(received):
            more = deaf.recv(1 << 16)
            assert more
            received += more


def test_a_revoked_token_ends_streams_that_name_no_session(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    token = new_token(tokens, "chemistry", "operator")
    silent = (
        STREAM,
        "/tensord.v1.TensorService/UploadTensor",
        "/tensord.v1.PlanCacheService/LoadPlanCache",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    )
    ends = threading.Event()

    def nothing() -> Iterator[bytes]:
        ends.wait(60)
        yield from ()

    with ObservedServer(tmp_path, f"--tokens={tokens}") as server:
        caller = Caller(server.address, token)
        given = {"metadata": caller.metadata, "timeout": 25}
        streams = [
            raw(caller.channel, path, "stream_stream")(nothing(), **given) for path in silent
        ]
        record = trace_pb2.RecordTimelineRequest(duration=Duration(seconds=60))
        timelines = trace_pb2_grpc.TraceServiceStub(caller.channel)
        streams.append(timelines.RecordTimeline(record, **given))
        assert eventually(
            lambda: server.metrics().sum("tensord_requests_in_flight") == len(streams)
        )
        rewrite(tokens, "")
        for stream in streams:
            with pytest.raises(grpc.RpcError) as failure:
                list(stream)
            assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
        ends.set()


def set_level(caller: Caller, level: str) -> None:
    caller(caller.admin.SetLogLevel, admin_pb2.SetLogLevelRequest(level=level))


def level_of(caller: Caller) -> str:
    return caller(caller.admin.GetLogLevel, admin_pb2.GetLogLevelRequest()).level


def fill(pipe: int) -> None:
    """Until it takes no more."""
    os.set_blocking(pipe, False)
    try:
        while True:
            os.write(pipe, bytes(4096))
    except BlockingIOError:
        os.set_blocking(pipe, True)


def test_what_cannot_be_audited_is_not_carried_out(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/socket"
    command = [os.environ["TENSORD_SERVER"], "--devices=cpu", "--threads=1"]
    reading, writing = os.pipe()
    with subprocess.Popen([*command, f"--listen={address}"], stderr=writing) as server:
        try:
            caller = Caller(address)
            assert level_of(caller) == "info"
            fill(writing)
            load = "/tensord.v1.PlanCacheService/LoadPlanCache"
            for change in (
                lambda: set_level(caller, "debug"),
                caller.clear,
                lambda: raw(caller.channel, load, "stream_unary")(iter([b""]), timeout=30),
            ):
                assert refused(change) == ("UNAVAILABLE", "AUDIT_FAILED")
            with pytest.raises(grpc.RpcError, match="nobody reads.*start the server with --audit"):
                set_level(caller, "debug")
            assert level_of(caller) == "info"
            os.read(reading, 1 << 20)
            set_level(caller, "debug")
            assert level_of(caller) == "debug"
            text = os.read(reading, 1 << 20).decode()
            asked = re.search(r" audit_begin .*rpc=SetLogLevel request=.*debug", text)
            done = re.search(r" audit .*rpc=SetLogLevel subject=debug code=OK", text)
            assert asked and done and asked.start() < done.start()
            fill(writing)
            caller(caller.admin.DrainServer, admin_pb2.DrainServerRequest())
            assert server.wait(20) == 0
        finally:
            server.kill()
            os.close(reading)
            os.close(writing)


def test_a_log_whose_reader_has_gone_does_not_end_the_server(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/socket"
    command = [os.environ["TENSORD_SERVER"], "--devices=cpu", "--threads=1"]
    reading, writing = os.pipe()
    with subprocess.Popen([*command, f"--listen={address}"], stderr=writing) as server:
        try:
            caller = Caller(address)
            assert level_of(caller) == "info"
            os.close(reading)
            assert refused(caller.clear) == ("UNAVAILABLE", "AUDIT_FAILED")
            caller(caller.admin.DrainServer, admin_pb2.DrainServerRequest())
            assert server.wait(20) == 0
        finally:
            server.kill()
            os.close(writing)


def test_the_audit_log_is_whole_when_its_file_may_not_grow(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    with ObservedServer(tmp_path, f"--audit-log={audit}") as server:
        caller = Caller(server.address)
        for _ in range(20):  # more than the log has
            set_level(caller, "warning")
        whole = audit.read_text()
        assert [line.split()[2] for line in whole.splitlines()] == ["audit_begin", "audit"] * 20
        unlimited = resource.RLIM_INFINITY
        most = (len(whole) + 10, unlimited)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, most)
        assert refused(lambda: set_level(caller, "debug")) == ("UNAVAILABLE", "AUDIT_FAILED")
        assert level_of(caller) == "warning" and "audit_failed" in server.log()
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        set_level(caller, "info")
        torn, *lines = audit.read_text().removeprefix(whole).splitlines()
        assert len(torn) == 10
        assert [line.split()[2] for line in lines] == ["audit_begin", "audit"]
        assert "rpc=SetLogLevel" not in server.log()


def test_the_audit_log_goes_on_in_a_new_file(tmp_path: Path) -> None:
    audit, old = tmp_path / "audit", tmp_path / "audit.1"
    with ObservedServer(tmp_path, f"--audit-log={audit}", "--log-format=json") as server:
        assert audit.stat().st_mode & 0o777 == 0o600
        caller = Caller(server.address)
        set_level(caller, "debug")
        audit.rename(old)
        set_level(caller, "info")
        assert old.read_text().count("SetLogLevel") == 4 and not audit.exists()
        server.process.send_signal(signal.SIGHUP)
        assert eventually(audit.exists) and eventually(lambda: "audit_log" in server.log())
        set_level(caller, "debug")
        assert old.read_text().count("SetLogLevel") == 4
        assert audit.read_text().count("SetLogLevel") == 2
        audit.unlink()
        audit.mkdir()
        [kept] = caller(
            caller.admin.ReloadServerConfig, admin_pb2.ReloadServerConfigRequest()
        ).files
        assert kept.what == "audit_log" and "Is a directory" in kept.error
        set_level(caller, "info")  # in the file that has no name any more


@pytest.mark.parametrize("kind", ["folder", "pipe", "missing"])
def test_a_server_does_not_start_without_its_audit_log(tmp_path: Path, kind: str) -> None:
    audit = tmp_path / "audit"
    if kind == "folder":
        audit.mkdir()
    elif kind == "pipe":
        os.mkfifo(audit)
    else:
        audit /= "audit"
    command = [os.environ["TENSORD_SERVER"], f"--listen=unix:{tmp_path}/socket"]
    done = subprocess.run(
        [*command, f"--audit-log={audit}"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert f"bad_audit_log reason=AUDIT_FAILED message=\"cannot open {audit}: " in done.stderr


def test_who_watches_the_health_is_bounded(server: ObservedServer) -> None:
    path = "/grpc.health.v1.Health/Watch"
    watches = []
    for _ in range(4):  # connections, of 256 calls each
        channel = Caller(server.address).channel
        for _ in range(256):
            watches.append(raw(channel, path, "unary_stream")(b"", timeout=60))
            next(watches[-1])
    with pytest.raises(grpc.RpcError) as failure:
        next(raw(channel, path, "unary_stream")(b"", timeout=60))
    assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    watches.pop().cancel()

    def watches_again() -> bool:
        try:
            next(raw(channel, path, "unary_stream")(b"", timeout=60))
        except grpc.RpcError:
            return False
        return True

    assert eventually(watches_again)


def test_a_pipeline_opens_no_stream_before_it_is_used(server: ObservedServer) -> None:
    def streams() -> float:
        return server.metrics().sum("tensord_requests_in_flight")

    with tensord.connect(server.address) as session, session.pipeline() as pipeline:
        assert streams() == 0
        assert float(pipeline.reduce(np.ones(3), "i", "").result().numpy()) == 3
        assert streams() == 1
