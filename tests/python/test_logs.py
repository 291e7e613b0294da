"""The log is for programs, too, and keeps secrets."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensord
from conftest import raw_stubs
from observed_server import ObservedServer
from tensord.v1 import tensor_pb2
from waiting import eventually

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def run(address: str) -> str:
    """Has calls and an operation of a stream go wrong and well; the session's name."""
    with tensord.connect(address, job='a "job" of two') as session:
        a = session.upload(np.ones((2, 2)))
        with session.pipeline() as pipeline:
            pipeline.einsum("ij,jk", a, a)
        raw_stubs(session).tensor.DescribeTensor(
            tensor_pb2.DescribeTensorRequest(tensor=a.full_name),
            metadata=(
                ("x-request-id", "mine"),
                ("traceparent", f"00-{TRACE}-00f067aa0ba902b7-00"),
            ),
        )
        with pytest.raises(tensord.NotFound):
            session.tensor("none")
        return session.name.removeprefix("sessions/")


def answers(address: str) -> bool:
    try:
        with tensord.connect(address):
            return True
    except tensord.Unavailable:
        return False


def test_json_has_the_ids_of_calls_and_no_secret(tmp_path: Path) -> None:
    flags = ("--log-format=json", "--log-level=debug")
    with ObservedServer(tmp_path, *flags) as server:
        secret = run(server.address)
        assert eventually(lambda: '"CloseSession"' in server.log())
        text = server.log()
    assert secret not in text
    lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        assert list(line)[:3] == ["time", "level", "event"]
    calls = [line for line in lines if line["event"] in ("call", "operation")]
    assert {"DescribeTensor", "UploadTensor"} <= {line.get("rpc") for line in calls}
    assert any(line["event"] == "operation" for line in calls)
    for line in calls:
        assert line["request_id"] and line["tenant"] == "default"
        assert isinstance(line["session"], int)
    (mine,) = [line for line in calls if line["request_id"] == "mine"]
    assert mine["trace_id"] == TRACE and mine["session"] > 0
    assert mine["level"] == "debug" and mine["code"] == "OK"
    assert isinstance(mine["microseconds"], int)
    failed = [line for line in calls if line["code"] == "NOT_FOUND"]
    assert len(failed) == 1 and "***" in failed[0]["message"]


@pytest.mark.timing
def test_a_log_that_nobody_reads_holds_nobody_up(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/socket"
    command = [os.environ["TENSORD_SERVER"], f"--listen={address}", "--threads=1"]
    with subprocess.Popen([*command, "--log-level=debug"], stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        try:
            assert eventually(lambda: answers(address))
            with tensord.connect(address, timeout=20) as session:
                for _ in range(1000):  # calls of which each has a line
                    session.describe()
                server.terminate()
                assert server.wait(20) == 0
        finally:
            server.kill()
        # A pipe's worth, in lines that are whole.
        assert 100 < server.stderr.read().count(b" rpc=DescribeSession ") < 1000


def test_text_says_the_same_in_a_line_each(tmp_path: Path) -> None:
    with ObservedServer(tmp_path, "--log-level=debug") as server:
        secret = run(server.address)
        assert eventually(lambda: " rpc=CloseSession " in server.log())
        text = server.log()
    assert secret not in text
    (mine,) = [line for line in text.splitlines() if " request_id=mine " in line]
    assert f" trace_id={TRACE} " in mine and " tenant=default " in mine
