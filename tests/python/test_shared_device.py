"""What one client asks of the device does not take it from others."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import tensord
from waiting import eventually


def long_product(session: tensord.Session) -> tensord.RemoteTensor:
    """An operand whose square takes some ten seconds."""
    return session.upload(np.ones((3000, 3000), "int64"))


def square(session: tensord.Session, a: tensord.RemoteTensor, **options: object) -> None:
    session.contract(a, "ij", a, "jk", "ik", **options)


def begun(session: tensord.Session) -> int:
    """Operations that were launched."""
    return session.stats().devices[0].executed_operations


def test_sigterm_ends_the_server_whatever_runs(tmp_path: Path) -> None:
    store = tmp_path / "plans"
    server = subprocess.Popen(
        [
            os.environ["TENSORD_SERVER"],
            f"--listen=unix:{tmp_path}/socket",
            "--devices=cpu",
            "--threads=1",
            "--drain-timeout-seconds=0.5",
            f"--plan-store={store}",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        assert eventually(lambda: (tmp_path / "socket").exists())
        session = tensord.connect(f"unix:{tmp_path}/socket")
        a = long_product(session)
        before = begun(session)
        failed = threading.Event()

        def run() -> None:
            with pytest.raises(tensord.Error):
                square(session, a, timeout=600)
            failed.set()

        call = threading.Thread(target=run)
        call.start()
        assert eventually(lambda: begun(session) > before)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        call.join()
        assert failed.is_set()
        assert store.stat().st_size > 0
    finally:
        server.kill()


def test_says_how_long_an_operation_would_take(session: tensord.Session) -> None:
    a = session.upload(np.ones((3000, 3000), "int64"))
    with pytest.raises(tensord.DeadlineExceeded, match="s are predicted") as caught:
        square(session, a, timeout=0.05)
    assert caught.value.reason == "DEADLINE_TOO_SHORT"


def test_says_how_long_an_operation_would_wait() -> None:
    with tensord.serve(threads=1) as address, tensord.connect(address) as session:
        a = long_product(session)
        small = session.upload(np.eye(2))

        def run() -> None:
            with pytest.raises(tensord.Error):
                square(session, a, timeout=600)

        # What runs does not count, as it may be stopped; what waits does.
        calls = [threading.Thread(target=run) for _ in range(2)]
        for call in calls:
            call.start()
        assert eventually(lambda: session.stats().devices[0].queued_operations == 1)
        with pytest.raises(tensord.ResourceExhausted, match="predicted to end in") as caught:
            square(session, small, timeout=0.5)
        assert caught.value.reason == "QUEUE_TOO_LONG"
        session.close()
        for call in calls:
            call.join()


def test_operators_bound_how_long_operations_take() -> None:
    with (
        tensord.serve(threads=1, max_operation_seconds=0.1) as address,
        tensord.connect(address) as session,
    ):
        a = long_product(session)
        with pytest.raises(tensord.ResourceExhausted, match=r"limit is 0\.1 s") as caught:
            square(session, a)
        assert caught.value.reason == "OPERATION_TOO_LONG"


def test_sessions_have_priorities(address: str) -> None:
    with tensord.connect(address, priority=9) as session:
        assert session.describe().priority == 9
    with pytest.raises(tensord.InvalidArgument, match="priority is 10, wanted 0 to 9"):
        tensord.connect(address, priority=10)


@pytest.mark.parametrize(
    "weights",
    ["a", "a=", "=1", "a=0", "a=-1", "a=nan", "a=1,a=2", "a=1,,b=2", "a=1e9"],
)
def test_weights_that_are_none_are_refused(weights: str) -> None:
    ended = subprocess.run(
        [os.environ["TENSORD_SERVER"], f"--job-weights={weights}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert "weight" in ended.stderr
