"""What operators see of a server under load, and have it do, with tensorctl."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest
from google.protobuf.duration_pb2 import Duration

import tensord
from conftest import raw_stubs
from tensord.v1 import compute_pb2, trace_pb2, trace_pb2_grpc
from waiting import eventually

SERVER = os.environ["TENSORD_SERVER"]
CONTROL = Path(SERVER).with_name("tensorctl")

pytestmark = pytest.mark.timing


class Running(NamedTuple):
    """A server of its own, that is asked with tensorctl."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path

    def ran(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [str(CONTROL), f"--address={self.address}", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **variables}, timeout=60
        )

    def control(self, *arguments: str) -> str:
        ran = self.ran(*arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.control(*arguments, "--json"))

    def refused(self, *arguments: str, status: int = 1, **variables: str) -> str:
        ran = self.ran(*arguments, **variables)
        assert ran.returncode == status, ran.stdout
        return ran.stderr

    def audit(self, rpc: str) -> list[str]:
        return [
            line
            for line in self.log.read_text().splitlines()
            if " audit " in line and f"rpc={rpc} " in line
        ]


@contextlib.contextmanager
def serving(folder: Path, *flags: str) -> Iterator[Running]:
    path, log = folder / "socket", folder / "log"
    command = [SERVER, "--devices=cpu", "--threads=1", f"--listen=unix:{path}", *flags]
    with log.open("w") as sink:
        process = subprocess.Popen(command, stderr=sink)
    try:
        assert eventually(lambda: "listening" in log.read_text() or process.poll() is not None)
        yield Running(process, f"unix:{path}", log)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def session(server: Running) -> Iterator[tensord.Session]:
    with tensord.connect(server.address, job="verbs", transport="grpc") as opened:
        yield opened


def number_of(server: Running, session: tensord.Session) -> int:
    """Of the session that has a tensor which no other has."""
    with session.upload(np.zeros(1), name="mine"):
        numbers = [
            tensor["session_number"]
            for tensor in server.json("tensors", "--count=1000")
            if tensor["id"] == "mine"
        ]
    assert len(numbers) == 1
    return int(numbers[0])


@contextlib.contextmanager
def long_call(session: tensord.Session) -> Iterator[Future[tensord.RemoteTensor]]:
    """An operation of some ten seconds, while it runs."""
    a = session.upload(np.ones((3000, 3000), np.int64))
    before = session.stats().devices[0].executed_operations
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(session.einsum, "ij,jk->ik", a, a)
        assert eventually(lambda: session.stats().devices[0].executed_operations > before)
        yield future


def test_sessions_are_shown_by_number_and_never_by_name(
    server: Running, session: tensord.Session
) -> None:
    tensor = session.upload(np.ones(1000))
    [shown] = server.json("sessions")
    assert shown["job"] == "verbs" and shown["tenant"] == "default" and shown["peer"] == f"user {os.getuid()}"
    assert shown["tensor_count"] == 1 and shown["memory_used_bytes"] >= 8000
    # time: of a lease no more is left than all
    assert 0 < shown["lease_left_seconds"] <= shown["lease_seconds"]
    assert tensor.shape == (1000,)
    secret = session.name.removeprefix("sessions/")
    assert len(secret) == 32
    for command in (["sessions"], ["operations"], ["tensors"], ["top", "--once", "--interval=0.1"]):
        assert secret[:8] not in server.control(*command)
        assert secret[:8] not in server.control(*command, "--json")
    assert secret not in server.log.read_text()


def test_the_largest_tensors_come_first(server: Running, session: tensord.Session) -> None:
    for name, count in {"small": 10, "large": 1000, "middle": 100}.items():
        session.upload(np.ones(count), name=name)
    shown = server.json("tensors", "--count=2")
    assert [tensor["id"] for tensor in shown] == ["large", "middle"]
    assert shown[0]["bytes"] == 8000 and shown[0]["element_type"] == "float64"
    number = shown[0]["session_number"]
    assert len(server.json("tensors", f"--session={number}")) == 3
    assert "SESSION_NOT_FOUND" in server.refused("tensors", "--session=999999")


def test_a_running_operation_is_found_and_cancelled(
    server: Running, session: tensord.Session
) -> None:
    with long_call(session) as future:
        [call] = server.json("operations")
        assert server.json("sessions")[0]["running_operations"] == 1
        begun = time.monotonic()
        assert server.json("cancel", call["request_id"]) == {"cancelled_count": 1}
        with pytest.raises(tensord.Cancelled, match="an operator has cancelled") as failure:
            future.result(timeout=30)
        assert failure.value.reason == "CANCELLED_BY_OPERATOR"
        assert time.monotonic() < begun + 5  # the operation takes ten
    assert float(session.einsum("i->", np.ones(3))) == 3  # the device is free
    lines = server.audit("CancelOperations")
    [line] = [line for line in lines if call["request_id"] in line]
    assert "code=OK" in line
    message = server.refused("cancel", call["request_id"])
    assert "NOT_FOUND" in message and "[REQUEST_NOT_FOUND]" in message
    server.refused("cancel", status=2)


def test_an_id_that_two_sessions_use_is_ambiguous(
    server: Running, session: tensord.Session
) -> None:
    with tensord.connect(server.address) as other:
        ends, streams = threading.Event(), []
        for each in (session, other):

            def requests(name: str = each.name) -> Iterator[compute_pb2.ExecuteStreamRequest]:
                yield compute_pb2.ExecuteStreamRequest(
                    reduce=compute_pb2.ReduceRequest(session=name)
                )
                ends.wait(30)

            stub = raw_stubs(each).compute
            streams.append(stub.ExecuteStream(requests(), metadata=(("x-request-id", "same"),)))
            assert next(streams[-1]).error.message
        numbers = sorted(call["session_number"] for call in server.json("operations"))
        message = server.refused("cancel", "same")
        assert "[REQUEST_ID_AMBIGUOUS]" in message
        assert f"sessions {numbers[0]}, {numbers[1]} have calls" in message
        assert server.json("cancel", f"--session={numbers[0]}") == {"cancelled_count": 1}
        assert eventually(lambda: len(server.json("operations")) == 1)
        assert server.json("cancel", "same") == {"cancelled_count": 1}
        for stream in streams:
            with pytest.raises(grpc.RpcError) as failure:
                next(stream)
            assert failure.value.code() is grpc.StatusCode.CANCELLED
        ends.set()


def test_all_calls_of_a_session_are_cancelled(server: Running, session: tensord.Session) -> None:
    number = number_of(server, session)
    with long_call(session) as future:
        assert server.json("cancel", f"--session={number}") == {"cancelled_count": 1}
        with pytest.raises(tensord.Cancelled):
            future.result(timeout=30)
    assert "SESSION_NOT_FOUND" in server.refused("cancel", "--session=999999")
    assert "session 999999" in server.audit("CancelOperations")[-1]
    assert "is no number" in server.refused("cancel", "--session=x", status=2)


def test_evicting_a_session_frees_its_memory(server: Running) -> None:
    with tensord.connect(server.address) as observer:
        before = observer.stats().devices[0].memory_used_bytes
        session = tensord.connect(server.address, job="evicted")
        number = number_of(server, session)
        with long_call(session) as future:
            evicted = server.json("evict", f"--session={number}")
            assert evicted["session_numbers"] == [number]
            assert evicted["memory_bytes"] >= 8 * 3000**2
            with pytest.raises(tensord.Cancelled) as failure:
                future.result(timeout=30)
            assert failure.value.reason == "SESSION_EVICTED"
        assert eventually(lambda: observer.stats().devices[0].memory_used_bytes == before)
        with pytest.raises(tensord.NotFound):
            session.upload(np.ones(3))
        assert f"session {number}" in server.audit("EvictSessions")[-1]
        assert "SESSION_NOT_FOUND" in server.refused("evict", f"--session={number}")


def test_idle_sessions_of_a_tenant_are_evicted_though_they_are_kept_alive(
    server: Running,
) -> None:
    idle = tensord.connect(server.address)
    with tensord.connect(server.address) as busy:
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                busy.einsum("i->", np.ones(3))

        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(work)
            time.sleep(2.1)
            evicted = server.json("evict", "--tenant=default", "--idle=2")
            stop.set()
            working.result()
        assert len(evicted["session_numbers"]) == 1
        assert "tenant default idle 2s: 1 sessions" in server.audit("EvictSessions")[-1]
        assert busy.stats().session_count == 1
    with pytest.raises(tensord.NotFound):
        idle.upload(np.ones(3))
    assert server.json("evict", "--tenant=nobody")["session_numbers"] == []
    server.refused("evict", "--idle=3", "--session=1", status=2)


def test_trim_gives_memory_back(server: Running, session: tensord.Session) -> None:
    def resident_bytes() -> int:
        pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    session.upload(np.ones(1 << 24)).delete()
    before = resident_bytes()
    reserved = session.stats().devices[0].memory_reserved_bytes
    assert reserved >= 1 << 27
    trimmed = server.json("trim")
    [device] = trimmed["devices"]
    assert device["memory_bytes"] >= 1 << 27
    assert session.stats().devices[0].memory_reserved_bytes == reserved - device["memory_bytes"]
    assert resident_bytes() < before - (1 << 26)
    assert "given back" in server.control("trim")


def test_config_shows_options_with_their_origin_and_no_secrets(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("do-not-show-this\n")
    file = tmp_path / "tensord.toml"
    file.write_text(
        f'max-sessions = 77\nplan-exchange-password-file = "{password}"\n'
    )
    with serving(tmp_path, f"--config={file}") as server:
        told = {setting["key"]: setting for setting in server.json("config")}
        assert told["max-sessions"]["values"] == ["77"]
        assert told["max-sessions"]["origin"] == f"{file}:1"
        assert told["threads"] == {"key": "threads", "values": ["1"], "origin": "flag"}
        assert told["listen"]["values"] == [server.address]
        assert told["tokens"]["values"] == []
        text = server.control("config")
        assert "do-not-show-this" not in text + json.dumps(told)
        command = [SERVER, "--devices=cpu", "--threads=1", f"--listen={server.address}"]
        printed = subprocess.run(
            [*command, f"--config={file}", "--print-config"], capture_output=True, text=True
        )
        assert text == printed.stdout


def test_reload_says_per_file_what_happened(tmp_path: Path) -> None:
    tokens, tenants = tmp_path / "tokens", tmp_path / "tenants.toml"
    tenants.write_text("[tenant.chemistry]\nsessions = 1\n")

    def new_token(role: str) -> str:
        command = [str(CONTROL), "token", "new", "--tenant=chemistry", f"--role={role}"]
        made = subprocess.run(
            [*command, f"--tokens={tokens}"], capture_output=True, text=True, check=True
        )
        secret: str = made.stdout.splitlines()[-1]
        return secret

    operator, user = new_token("operator"), new_token("user")
    with serving(tmp_path, f"--tokens={tokens}", f"--tenants={tenants}") as server:
        ran = server.ran("config", "reload", "--json", TENSORD_TOKEN=operator)
        assert ran.returncode == 0
        assert {files["what"]: files["is_taken"] for files in json.loads(ran.stdout)} == {
            "tokens": True,
            "tenants": True,
        }
        tenants.write_text("[tenant.chemistry]\nsession = 1\n")
        ran = server.ran("config", "reload", TENSORD_TOKEN=operator)
        assert ran.returncode == 1
        assert re.search(rf"tenants +kept +{tenants}: .*:2", ran.stdout)
        assert re.search(rf"tokens +taken +{tokens}\n", ran.stdout)
        assert "tenants (kept)" in server.audit("ReloadServerConfig")[-1]

        # A user hears that it is none of theirs, and that is written down.
        verbs = (
            ["sessions"],
            ["operations"],
            ["tensors"],
            ["cancel", "x"],
            ["evict", "--tenant=chemistry"],
            ["trim"],
            ["drain"],
            ["config"],
            ["config", "reload"],
            ["log-level"],
            ["log-level", "debug"],
            ["top", "--once"],
        )
        for verb in verbs:
            assert "[OPERATORS_ONLY]" in server.refused(*verb, TENSORD_TOKEN=user)
        assert "PERMISSION_DENIED" in server.audit("DrainServer")[-1]
        assert server.process.poll() is None


def test_operators_verbs_live_at_their_address_only(tmp_path: Path) -> None:
    admin = f"unix:{tmp_path}/admin"
    with serving(tmp_path, f"--admin-listen={admin}") as server:
        for verb in (["sessions"], ["trim"], ["drain"], ["log-level", "debug"]):
            assert "[ADMIN_ELSEWHERE]" in server.refused(*verb)
        assert server._replace(address=admin).json("sessions") == []
        server._replace(address=admin).control("drain")
        assert server.process.wait(10) == 0


def test_the_operators_address_drains_too(tmp_path: Path) -> None:
    admin = f"unix:{tmp_path}/admin"
    with serving(tmp_path, f"--admin-listen={admin}", "--drain-timeout-seconds=30") as server:
        with grpc.insecure_channel(admin) as channel:
            record = trace_pb2_grpc.TraceServiceStub(channel).RecordTimeline
            timeline = record(trace_pb2.RecordTimelineRequest(duration=Duration(seconds=60)))
            assert next(timeline).activities == []  # it has begun
            server.process.send_signal(signal.SIGTERM)
            assert [each.dropped_count for each in timeline] == [0]
            assert timeline.code() is grpc.StatusCode.OK
            assert server.process.wait(10) == 0


def test_the_logs_level_is_shown_and_set(server: Running, session: tensord.Session) -> None:
    assert server.control("log-level") == "info\n"
    assert server.control("log-level", "debug") == "info -> debug\n"
    session.upload(np.ones(3))
    assert " debug call rpc=CreateTensor " in server.log.read_text()
    assert server.json("log-level", "info") == {"level": "info", "previous_level": "debug"}
    message = server.refused("log-level", "warn")
    assert "did you mean 'warning'?" in message and "[LOG_LEVEL_UNKNOWN]" in message
    assert len(server.audit("SetLogLevel")) == 3 and not server.audit("GetLogLevel")


def test_drain_ends_the_process_with_its_plans_saved(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    with serving(tmp_path, f"--plan-store={plans}") as server:
        session = tensord.connect(server.address)
        a = session.upload(np.ones((900, 900), np.int64))
        before = session.stats().devices[0].executed_operations
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(session.einsum, "ij,jk->ik", a, a)
            assert eventually(lambda: session.stats().devices[0].executed_operations > before)
            assert "drains" in server.control("drain", "--seconds=20")
            assert result.result(timeout=30).shape == (900, 900)  # what runs may end
        assert server.process.wait(21) == 0
        assert plans.stat().st_size > 0
        log = server.log.read_text()
        assert "draining reason=operator timeout_seconds=20" in log
        assert "within 20s" in server.audit("DrainServer")[-1]
        assert "INVALID_ARGUMENT" not in log


def test_drain_wants_a_time_within_an_hour(server: Running) -> None:
    assert "[DRAIN_TIMEOUT_OUT_OF_RANGE]" in server.refused("drain", "--seconds=3601")
    assert "is not a time" in server.refused("drain", "--seconds=-1", status=2)
    assert server.process.poll() is None


def test_top_shows_devices_tenants_and_sessions(server: Running, session: tensord.Session) -> None:
    stop = threading.Event()
    a = session.upload(np.ones((64, 64)))

    def work() -> None:
        while not stop.is_set():
            session.einsum("ij,jk->ik", a, a)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        text = server.control("top", "--once", "--interval=0.5")
        shown = server.json("top", "--once", "--interval=0.5")
        stop.set()
        working.result()
    assert shown["operations_per_second"] > 0
    assert shown["sessions"][0]["job"] == "verbs"
    assert shown["stats"]["state"] == "ready"
    assert "\033" not in text
    assert re.search(r"^tensord \S+  ready  up ", text)
    assert re.search(r"^cpu:0 +\[", text, re.MULTILINE)
    assert re.search(r"^default +1 ", text, re.MULTILINE)
    assert re.search(r"^ +\d+ default +verbs ", text, re.MULTILINE)
    assert re.search(r"^plan cache \d+, ", text, re.MULTILINE)


@pytest.mark.parametrize("end", ["q", "interrupt"])
def test_top_draws_in_place_until_it_is_ended(server: Running, end: str) -> None:
    own, theirs = pty.openpty()
    command = [str(CONTROL), f"--address={server.address}", "top", "--interval=0.2"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, start_new_session=True)
    os.close(theirs)
    shown = b""

    def has_drawn(times: int) -> bool:
        nonlocal shown
        if select.select([own], [], [], 0.05)[0]:
            shown += os.read(own, 65536)
        return shown.count(b"\033[H") >= times

    assert eventually(lambda: has_drawn(3))
    if end == "q":
        os.write(own, b"q")
    else:
        process.send_signal(signal.SIGINT)
    # Read before it is waited for: it may have drawn more than the terminal holds.
    with contextlib.suppress(OSError):  # at the end
        while select.select([own], [], [], 20)[0] and (part := os.read(own, 65536)):
            shown += part
    os.close(own)
    assert process.wait(10) == 0
    # A screen of its own, and the one before is back.
    assert shown.startswith(b"\033[?1049h") and shown.endswith(b"\033[?1049l")
    assert b"DEVICE" in shown


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_top_fits_a_terminal_of_any_size(server: Running, tmp_path: Path) -> None:
    tmux = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    command = f"{CONTROL} --address={server.address} top --interval=0.2"
    subprocess.run([*tmux, "new-session", "-d", "-x", "60", "-y", "8", command], check=True)
    try:

        def screen() -> list[str]:
            shown = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True)
            return shown.stdout.splitlines()

        assert eventually(lambda: any("DEVICE" in line for line in screen()))
        assert screen()[0].startswith("tensord ")
        subprocess.run([*tmux, "send-keys", "q"], check=True)
        assert eventually(
            lambda: subprocess.run([*tmux, "has-session"], capture_output=True).returncode != 0
        )
    finally:
        subprocess.run([*tmux, "kill-server"], capture_output=True)


def test_python_has_an_operators_hands_too(server: Running, session: tensord.Session) -> None:
    session.upload(np.ones(1000), name="large")
    operator = session.operator
    [shown] = operator.sessions()
    assert shown.job == "verbs" and shown.idle_seconds < 60
    [tensor] = operator.tensors(count=1, session=shown.number)
    assert (tensor.id, tensor.element_type, tensor.state) == ("large", "float64", "READY")
    assert operator.operations() == ()
    assert operator.log_level() == "info"
    assert operator.reload() == ()
    assert operator.trim().devices[0].device == "cpu:0"
    assert {setting.key for setting in operator.config()} >= {"threads", "listen"}
    with pytest.raises(tensord.NotFound) as failure:
        operator.cancel("nothing")
    assert failure.value.reason == "REQUEST_NOT_FOUND"
    with pytest.raises(tensord.InvalidArgument):
        operator.drain(seconds=1e6)
    assert operator.evict(session=shown.number).session_numbers == (shown.number,)
