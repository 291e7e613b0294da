"""Metrics, probes and the page say what the server is and does."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest

import tensord
from files import rewrite
from observed_server import ObservedServer
from secure_server import make_certificates, new_token
from tensord.v1 import tensor_pb2, tensor_pb2_grpc
from waiting import eventually

SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ObservedServer]:
    with ObservedServer(tmp_path, "--drain-timeout-seconds=60") as started:
        yield started


def health_request(service: str) -> bytes:
    return b"\x0a" + bytes([len(service)]) + service.encode()


def check(channel: grpc.Channel, service: str) -> bytes:
    """What grpc.health.v1 says of a service."""
    return channel.unary_unary("/grpc.health.v1.Health/Check")(health_request(service))


def test_metrics_are_described_and_count_what_is_done(server: ObservedServer):
    before = server.metrics()
    a = np.ones((20, 30))
    with tensord.connect(server.address, job="counted", transport="grpc") as session:
        b = session.upload(np.ones((30, 400)))
        # Kept, as what goes is deleted by a call of its own.
        results = [session.contract(a, "ik", b, "kj", "ij") for _ in range(3)]
        with pytest.raises(tensord.InvalidArgument):
            session.contract(a, "ik", b, "ij", "kj")
        during = server.metrics()
        del results
    contract = {"operation": "contract"}
    assert during.sum("tensord_operations_total", **contract, code="OK") == 3
    assert (
        during.sum("tensord_operation_seconds_count", **contract, phase="kernel") == 3
    )
    assert during.sum("tensord_rejected_total", reason="MODE_EXTENT_MISMATCH") == 1
    assert during.sum("tensord_requests_total", rpc="UploadTensor", code="OK") == 1
    assert during.sum("tensord_upload_bytes_total") == 30 * 400 * 8
    assert during.sum("tensord_sessions") == 1
    assert during.sum("tensord_tensors") >= 1
    assert during.sum("tensord_device_memory_bytes", kind="used") >= 30 * 400 * 8
    assert during.sum("tensord_tenant_requests_total", tenant="default") >= 5
    assert during.sum("tensord_tenant_sessions", tenant="default") == 1
    assert during.sum("tensord_tenant_memory_bytes") >= 30 * 400 * 8
    assert during.sum("tensord_plan_cache_entries") == 1
    assert during.sum("tensord_requests_in_flight") == 0
    assert during.sum("process_resident_memory_bytes") > 1 << 20
    assert during.sum("process_start_time_seconds") > 1.6e9
    assert 0 < during.sum("process_open_fds") < during.sum("process_max_fds")
    assert before.sum("tensord_device_up") == during.sum("tensord_device_up") == 1
    assert before.sum("tensord_sessions") == 0
    text = server.get("/metrics").text
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        assert f"# HELP {name} " in text
        assert name.startswith(("tensord_", "process_"))
        assert kind != "counter" or name.endswith("_total")


def test_labels_come_from_nothing_that_clients_say(server: ObservedServer):
    before = server.metrics().keys()
    for i in range(20):
        with tensord.connect(server.address, job=f"job {i}") as session:
            session.upload(np.ones(3), name=f"tensor-{i}")
            with pytest.raises(tensord.NotFound):
                session.tensor(f"missing-{i}")
    grown = server.metrics().keys() - before
    assert not [name for name in grown if re.search(r"job|tensor-|missing", name)]


@pytest.mark.timing
def test_phases_tell_where_all_the_time_goes(server: ObservedServer):
    rng = np.random.default_rng(1)
    small, large = rng.random((8, 8)), rng.random((400, 400))
    with tensord.connect(server.address) as session:
        resident = session.upload(large)

        def load() -> None:
            with tensord.connect(server.address) as other:
                for _ in range(50):
                    other.einsum("ij,jk", small, small)
                other.upload(large).numpy()

        threads = [threading.Thread(target=load) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            session.einsum("ij,jk", resident, resident)
            session.einsum("ij,jk,kl", resident, resident, resident)
        for thread in threads:
            thread.join()
    metrics = server.metrics()
    whole = sum(
        metrics.sum("tensord_request_seconds_sum", rpc=rpc)
        for rpc in ("Contract", "ExecuteProgram", "UploadTensor", "DownloadTensor")
    )
    parts = {
        phase: metrics.sum("tensord_operation_seconds_sum", phase=phase)
        for phase in ("plan", "queue", "kernel", "transfer")
    }
    assert all(seconds > 0 for seconds in parts.values())
    assert sum(parts.values()) == pytest.approx(whole, rel=0.05)
    assert parts["kernel"] > 0.1 * whole


def without_gpu() -> str:
    """The flag for a CUDA backend that finds no GPU where $TEST_NO_DEVICE is set."""
    server = Path(os.environ["TENSORD_SERVER"])
    return f"--cuda-module={server.with_name('liblosable_device.so')}"


def test_without_its_gpu_the_server_computes_on_the_cpu_and_says_so(tmp_path: Path):
    with ObservedServer(tmp_path, without_gpu(), TEST_NO_DEVICE="1") as server:
        said = "computing on the CPU, there is no driver"
        assert server.get("/readyz", "probes") == (200, f"ready: {said}\n")
        (line,) = [line for line in server.log().splitlines() if "no_gpu" in line]
        assert said in line
        with tensord.connect(server.address) as session:
            assert (session.upload(np.ones(3)) + 1).numpy().sum() == 6


def test_a_memory_limit_beyond_the_machines_is_warned_of(tmp_path: Path):
    with ObservedServer(tmp_path, "--memory-limit-bytes=1000TiB") as server:
        log = server.log()
    assert re.search(r"memory_limit_too_large.*--memory-limit-bytes is 1099511627776000,", log)


def test_a_server_that_requires_its_gpu_does_not_start_without(tmp_path: Path):
    command = [os.environ["TENSORD_SERVER"], f"--listen=unix:{tmp_path}/socket"]
    done = subprocess.run(
        [*command, without_gpu(), "--require-gpu"],
        env=os.environ | {"TEST_NO_DEVICE": "1"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode != 0
    assert "a GPU is required" in done.stderr and "there is no driver" in done.stderr
    assert not (tmp_path / "socket").exists()


def test_probes_follow_the_servers_life(server: ObservedServer, tmp_path: Path):
    for purpose in ("metrics", "probes"):
        ready = server.get("/readyz", purpose)
        # Where the CUDA backend finds no GPU, that is said, too.
        assert ready.status == 200 and re.fullmatch(
            r"ready(: computing.*)?\n", ready.text
        )
        assert server.get("/livez", purpose) == (200, "live\n")
    for path in ("/metrics", "/status.json", "/"):
        assert server.get(path, "probes").status == 404
    with (
        tensord.connect(server.address) as session,
        grpc.insecure_channel(server.address) as channel,
    ):
        for service in ("", "readiness", "liveness"):
            assert check(channel, service) == SERVING
        with pytest.raises(grpc.RpcError) as unknown:
            check(channel, "nonsense")
        assert unknown.value.code() == grpc.StatusCode.NOT_FOUND
        watched = channel.unary_stream("/grpc.health.v1.Health/Watch")(
            health_request("readiness"), timeout=60
        )
        assert next(watched) == SERVING
        # A call that runs keeps the server from ending.
        tensor = session.create(3, np.float64)
        lets_go = threading.Event()

        def chunks() -> Iterator[tensor_pb2.UploadTensorRequest]:
            yield tensor_pb2.UploadTensorRequest(tensor=tensor.full_name)
            lets_go.wait(60)

        stub = tensor_pb2_grpc.TensorServiceStub(channel)
        upload = stub.UploadTensor.future(chunks(), timeout=60)
        assert eventually(
            lambda: server.metrics().sum("tensord_requests_in_flight") == 1
        )
        server.terminate()
        assert next(watched) == NOT_SERVING
        for purpose in ("metrics", "probes"):
            assert server.get("/readyz", purpose) == (503, "draining\n")
            assert server.get("/livez", purpose) == (200, "live\n")
        lets_go.set()
        upload.exception()
        # Who watches does not.
        assert server.process.wait(20) == 0
        assert "stopped_with_work_left" not in server.log()


@pytest.mark.timing
def test_a_server_that_saves_plans_at_its_end_is_not_ready(tmp_path: Path):
    flag = f"--plan-store={tmp_path}/plans"
    with ObservedServer(tmp_path, flag) as server:
        saving = tmp_path / "plans.saving"
        os.mkfifo(saving)  # holds up who writes it until somebody reads
        with grpc.insecure_channel(server.address) as channel:
            watched = channel.unary_stream("/grpc.health.v1.Health/Watch")(
                health_request("readiness"), timeout=60
            )
            assert next(watched) == SERVING
            server.terminate()
            assert next(watched) == NOT_SERVING
            assert server.get("/readyz", "probes") == (503, "draining\n")
        assert "plan_store_saved" not in server.log()
        saving.read_bytes()
        assert server.process.wait(20) == 0


@pytest.mark.timing
def test_service_managers_hear_of_the_beginning_and_the_end(tmp_path: Path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{tmp_path}/notify")
        manager.settimeout(20)
        with ObservedServer(tmp_path, NOTIFY_SOCKET=f"{tmp_path}/notify") as server:
            assert manager.recv(100) == b"READY=1"
            server.terminate()
            assert manager.recv(100) == b"STOPPING=1"
            assert server.process.wait(60) == 0


def test_numbers_want_the_token_and_probes_do_not(tmp_path: Path):
    (tmp_path / "token").write_text("open sesame\n")
    with ObservedServer(tmp_path, f"--metrics-token-file={tmp_path}/token") as server:
        for path in ("/metrics", "/status.json"):
            assert server.get(path).status == 401
            assert server.get(path, token="open sesam").status == 401
            assert server.get(path, token="open sesame").status == 200
        for path in ("/livez", "/readyz", "/"):
            assert server.get(path).status == 200
        assert "sesame" not in server.log()


def test_metrics_speak_tls_and_tell_when_it_ends(tmp_path: Path):
    make_certificates(tmp_path)
    flags = [
        f"--metrics-tls-certificate={tmp_path}/server.pem",
        f"--metrics-tls-key={tmp_path}/server-key.pem",
    ]
    with ObservedServer(tmp_path, *flags, ca=tmp_path / "ca.pem") as server:
        expiry = "tensord_tls_certificate_expiry_timestamp_seconds"
        first = server.metrics().sum(expiry, listener="http")
        assert 300 * 86400 < first - time.time() < 400 * 86400
        assert server.get("/readyz", "probes").status == 200  # never with TLS
        with pytest.raises(OSError):
            plain = server.url("metrics").replace("https", "http")
            urllib.request.urlopen(f"{plain}/metrics", timeout=20)
        make_certificates(tmp_path, "--renew")
        taken = {"what": "certificates", "result": "taken"}
        assert eventually(
            lambda: server.metrics().sum("tensord_reloads_total", **taken) >= 1
        )
        (tmp_path / "server.pem").write_text("none\n")
        kept = {"what": "certificates", "result": "kept"}
        assert eventually(
            lambda: server.metrics().sum("tensord_reloads_total", **kept) == 1
        )
        assert server.metrics().sum(expiry, listener="http") >= first


def test_tenants_that_are_configured_are_counted_by_themselves(tmp_path: Path):
    tokens, tenants = tmp_path / "tokens", tmp_path / "tenants.toml"
    secrets = {name: new_token(tokens, name) for name in ("chemistry", "physics")}
    tenants.write_text("[tenant.chemistry]\nweight = 2\n")
    flags = [f"--tokens={tokens}", f"--tenants={tenants}"]
    with ObservedServer(tmp_path, *flags) as server:
        for secret in secrets.values():
            with tensord.connect(server.address, token=secret) as session:
                kept = session.upload(np.ones(1000))
                assert float(session.einsum("i->", kept)) == 1000
                metrics = server.metrics()
        assert metrics.sum("tensord_tenant_sessions", tenant="other") == 1
        for tenant in ("chemistry", "other"):
            assert metrics.sum("tensord_tenant_requests_total", tenant=tenant) >= 3
            assert metrics.sum("tensord_tenant_device_seconds_total", tenant=tenant) > 0
        assert "physics" not in "".join(metrics)
        rewrite(tenants, "[tenant.chemistry]\n[tenant.physics]\n")
        assert eventually(
            lambda: 'tensord_tenant_sessions{tenant="physics"}' in server.metrics()
        )


def test_the_page_shows_sessions_and_never_their_names(server: ObservedServer):
    with tensord.connect(
        server.address, job="<i>shown</i>", transport="grpc"
    ) as session:
        tensor = session.upload(np.ones((100, 100)))
        kept = session.einsum("i->", np.ones(3))
        text = server.get("/status.json").text
        status = server.status()
        assert session.name.removeprefix("sessions/") not in text
        assert kept.shape == () and tensor.shape == (100, 100)
    assert status["state"] == "ready"
    assert status["sessions"] == [
        {
            "number": 1,
            "tenant": "default",
            "job": "<i>shown</i>",
            "priority": 0,
            "device": "cpu:0",
            "tensors": 2,
            "used_bytes": pytest.approx(80_000, abs=1024),
            "quota_bytes": status["devices"][0]["limit_bytes"],
        }
    ]
    assert status["devices"][0]["up"]
    assert status["operations"] == 1
    tenant = status["tenants"][0]
    assert (tenant["name"], tenant["sessions"]) == ("default", 1)
    page = server.get("/")
    assert page.status == 200
    assert "<title>tensord</title>" in page.text
    assert not re.search(r"https?://|src=|href=", page.text)


def test_a_listener_that_cannot_be_ends_the_server(server: ObservedServer, tmp_path):
    taken = server.url("metrics").removeprefix("http://")
    flags = [f"--listen=unix:{tmp_path}/other", f"--probe-listen={taken}"]
    other = subprocess.run(
        [os.environ["TENSORD_SERVER"], *flags],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert other.returncode == 1
    assert f"cannot listen on {taken}" in other.stderr
