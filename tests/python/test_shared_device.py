"""What one client asks of the device does not take it from others."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tensord
from waiting import eventually, listens

pytestmark = pytest.mark.timing


def long_product(session: tensord.Session) -> tensord.RemoteTensor:
    """An operand whose square takes some ten seconds."""
    return session.upload(np.ones((3000, 3000), "int64"))


def square(session: tensord.Session, a: tensord.RemoteTensor, **options: object) -> None:
    session.contract(a, "ij", a, "jk", "ik", **options)


def begun(session: tensord.Session) -> int:
    """Operations that were launched."""
    return session.stats().devices[0].executed_operations


@contextlib.contextmanager
def server_at_work(
    folder: Path, work: Callable[[tensord.Session], object], *flags: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A server on which `work` has begun. Afterwards, whoever asked for it has heard of its end."""
    address = f"unix:{folder}/socket"
    command = [os.environ["TENSORD_SERVER"], f"--listen={address}", "--devices=cpu", "--threads=1"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, *flags], stderr=log)
    try:
        assert listens(folder / "socket")
        session = tensord.connect(address)
        failed = threading.Event()

        def run() -> None:
            with pytest.raises(tensord.Error):
                work(session)
            failed.set()

        call = threading.Thread(target=run)
        call.start()
        assert eventually(lambda: begun(session) > 0)
        yield server
        call.join()
        assert failed.is_set()
    finally:
        server.kill()
        server.wait()


def processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """What it has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


SLACK_SECONDS = 15  # of a machine that does much else


def ends_within(server: subprocess.Popen[bytes], seconds: float) -> int:
    """Sends SIGTERM. Returns the exit status."""
    server.send_signal(signal.SIGTERM)
    sent = time.monotonic()
    status = server.wait(60)
    assert time.monotonic() - sent < seconds + SLACK_SECONDS
    return status


def long_square(session: tensord.Session) -> None:
    square(session, long_product(session), timeout=600)


def test_sigterm_ends_the_server_whatever_runs(tmp_path: Path) -> None:
    store = tmp_path / "plans"
    flags = ("--drain-timeout-seconds=0.5", f"--plan-store={store}")
    with server_at_work(tmp_path, long_square, *flags) as server:
        assert ends_within(server, 0.5 + 1) == 0
        assert store.stat().st_size > 0


def test_work_that_cannot_be_stopped_is_left_with_status_4(tmp_path: Path) -> None:
    def decompose(session: tensord.Session) -> None:
        matrix = np.random.default_rng(1).random((3000, 3000))
        session.factorize("ij->ik,k,kj", matrix, method="svd", timeout=600)

    with server_at_work(tmp_path, decompose, "--drain-timeout-seconds=0.5") as server:
        # Until it is in the library: what is made ready for that can be stopped.
        begun = processor_seconds(server)
        assert eventually(lambda: processor_seconds(server) > begun + 1)
        assert ends_within(server, 60) == 4
        assert "stopped_with_work_left" in (tmp_path / "log").read_text()


def test_a_second_sigterm_ends_the_server_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with server_at_work(tmp_path, long_square, "--drain-timeout-seconds=600") as server:
        server.send_signal(signal.SIGTERM)
        assert eventually(lambda: "draining" in log.read_text())
        assert server.poll() is None
        assert ends_within(server, 0) == -signal.SIGTERM


def test_signals_come_to_the_thread_that_waits_for_them(tmp_path: Path) -> None:
    ends = sum(1 << (number - 1) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    with server_at_work(tmp_path, long_square) as server:
        blocked = {}
        for thread in Path(f"/proc/{server.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # It has ended.
                found = re.search(r"SigBlk:\s*(\w+)", (thread / "status").read_text())
                blocked[int(thread.name)] = int(found[1], 16) & ends if found else 0
        # The main thread, which waits for them, has them in no mask meanwhile.
        del blocked[server.pid]
        assert len(blocked) > 5 and set(blocked.values()) == {ends}
        server.kill()


@pytest.mark.timing(high=True)
def test_says_how_long_an_operation_would_take() -> None:
    with tensord.serve(threads=1) as address, tensord.connect(address) as session:
        a = long_product(session)
        with pytest.raises(tensord.DeadlineExceeded, match="s are predicted") as caught:
            square(session, a, timeout=0.5)
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
