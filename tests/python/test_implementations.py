"""What carries calls, the native core or grpcio, and what both promise."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_einsum_programs import count_calls

import tensord
from tensord._connection import name_of
from tensord.v1 import compute_pb2, session_pb2

FORCED = os.environ.get("TENSORD_IMPLEMENTATION")


def ran(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """What a program prints, and how it ends."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.skipif(FORCED is None, reason="no implementation is asked for")
def test_the_implementation_is_the_one_asked_for():
    assert tensord.implementation == FORCED


def test_grpcio_can_be_asked_for():
    code = "import tensord; print(tensord.implementation)"
    assert ran(code, TENSORD_IMPLEMENTATION="grpcio").stdout == "grpcio\n"


def test_other_implementations_are_refused():
    refused = ran("import tensord", TENSORD_IMPLEMENTATION="rust")
    assert "ValueError: $TENSORD_IMPLEMENTATION is 'rust'" in refused.stderr
    assert "'native' or 'grpcio'" in refused.stderr


def test_a_core_that_is_missing_is_told_of():
    code = """
        import importlib.util
        found = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: (
            None if name == "tensord_native" else found(name, *rest)
        )
        import tensord
        print(tensord.implementation)
    """
    assert ran(code, TENSORD_IMPLEMENTATION="").stdout == "grpcio\n"
    refused = ran(code, TENSORD_IMPLEMENTATION="native")
    assert "ImportError" in refused.stderr
    assert "pip install ./client/python/native" in refused.stderr


def test_a_core_of_another_version_is_refused(tmp_path: Path):
    (tmp_path / "tensord_native.py").write_text('__version__ = "0.0.1"\n')
    for asked in "", "native":
        refused = ran(
            "import tensord", PYTHONPATH=str(tmp_path), TENSORD_IMPLEMENTATION=asked
        )
        wanted = f"tensord-native is of version 0.0.1, wanted {tensord.__version__}"
        assert f"ImportError: {wanted}" in refused.stderr


FORKING = """
    import os, sys
    import numpy as np
    import tensord

    def refused(act):
        try:
            act()
        except tensord.FailedPrecondition as error:
            return error.reason == "FORKED"
        return False

    with (
        tensord.connect(sys.argv[1]) as session,
        tensord.connect(sys.argv[1], deferred=True) as deferred,
        tensord.connect(sys.argv[1], recorded=True) as recorded,
    ):
        a = session.upload(np.ones((2, 2)))
        piped = session.pipeline()
        entered = session.pipeline().__enter__()
        pending = entered.einsum("ij,jk", a, a)
        b = deferred.upload(np.ones((2, 2)))
        c = b @ b
        d = recorded.upload(np.ones((2, 2)))
        e = d @ d
        child = os.fork()
        if child == 0:
            acts = [
                lambda: session.einsum("ij,jk", a, a),
                lambda: session.upload(np.ones(2)),
                lambda: a.numpy(),
                piped.__enter__,
                lambda: entered.einsum("ij,jk", a, a),
                entered.finish,
                entered.cancel,
                lambda: b @ b,
                deferred.wait,
                c.numpy,
                lambda: d @ d,
                lambda: d.__iadd__(1),
                recorded.wait,
                e.numpy,
            ]
            # It may have come before the fork.
            assert pending.done() or refused(pending.result)
            if tensord.implementation == "native":
                acts.append(lambda: tensord.connect(sys.argv[1]))
            answers = [refused(act) for act in acts]
            print(answers, flush=True)
            sys.exit(0 if all(answers) else 1)  # As programs end, not os._exit().
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        entered.finish()
        assert pending.result().numpy()[0, 0] == c.numpy()[0, 0] == 2
        assert e.numpy()[0, 0] == 2
        print(session.einsum("ij,jk", a, a).numpy()[0, 0])
"""


@pytest.mark.timing
def test_forks_are_refused_and_leave_the_parent_alone(address: str):
    forked = ran(FORKING, address)
    assert forked.returncode == 0, forked.stderr
    assert forked.stdout.endswith("2.0\n")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Has Ctrl-C interrupt, which what runs in the background of a shell ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.timing
def test_an_interrupt_ends_a_call_soon(private_address: str, interruptible: None):
    with tensord.connect(private_address) as session:
        large = session.upload(np.ones((2000, 2000), np.int64))
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            for _ in range(100):
                session.einsum("ij,jk->ik", large, large)
        assert time.monotonic() - begun < 5
        timer.join()
        small = session.upload(np.ones(2))
        np.testing.assert_array_equal(small.numpy(), [1, 1])


def describing(session: tensord.Session, name: str) -> Callable[[], Any]:
    """Begins a call about the session of a name."""
    connection = session.link.connection
    request = session_pb2.DescribeSessionRequest(session=name)
    return connection.begin(connection.session.DescribeSession, request)


def test_many_calls_can_have_begun(session: tensord.Session):
    calls = [describing(session, session.name) for _ in range(20)]
    assert {call().session.name for call in calls} == {session.name}


def test_calls_that_have_begun_fail_as_others_do(address: str):
    with tensord.connect(address) as session:
        with pytest.raises(tensord.NotFound) as missing:
            describing(session, "sessions/none")()
        assert missing.value.reason == "SESSION_NOT_FOUND"
        call = describing(session, session.name)
    assert call is not None
    with pytest.raises(tensord.FailedPrecondition) as closed:
        describing(session, session.name)
    assert closed.value.reason == "SESSION_CLOSED"


@pytest.mark.timing
@pytest.mark.skipif(
    tensord.implementation == "grpcio",
    reason="it makes calls that are to begin at once",
)
def test_a_call_that_nobody_waits_for_is_cancelled(private_address: str):
    with tensord.connect(private_address) as session:
        part = session.upload(np.ones((1500, 1500), np.int64))
        begun = time.monotonic()
        session.einsum("ij,jk->ik", part, part)
        seconds = time.monotonic() - begun  # an eighth of what the next takes
        large = session.upload(np.ones((3000, 3000), np.int64))
        request = compute_pb2.ContractRequest(session=session.name)
        for operand, modes in (request.a, (0, 1)), (request.b, (1, 2)):
            operand.tensor = large.full_name
            operand.modes.extend(modes)
        request.d.modes.extend((0, 2))
        connection = session.link.connection
        begun = time.monotonic()
        call = connection.begin(connection.compute.Contract, request)
        del call
        assert time.monotonic() - begun < max(5, 4 * seconds)
        assert session.upload(np.ones(2)).numpy().sum() == 2


def test_small_sums_of_arrays_are_one_call(session: tensord.Session, rng):
    a, b = rng.random((3, 4)), rng.random((4, 5))
    np.testing.assert_allclose(session.einsum("ij,jk->ik", a, b).numpy(), a @ b)
    calls = count_calls(session)
    transfers = session.link.transfers
    session.link.transfers = None  # There are none.
    try:
        product = session.einsum("ij,jk->ik", b.T, a.T).numpy()
    finally:
        session.link.transfers = transfers
    assert calls() == ["Contract"]
    np.testing.assert_allclose(product, (a @ b).T)


def test_what_came_along_is_the_contents_until_another_call(session, rng):
    a = rng.random((3, 3))
    for _ in range(2):
        result = session.einsum("ij,jk->ik", a, a)
        first = result.numpy()
        first[...] = 0  # It is the caller's own.
        np.testing.assert_allclose(result.numpy(), a @ a)
        session.permute(a, "ij", out=result)
        np.testing.assert_array_equal(result.numpy(), a)
        result = session.einsum("ij,jk->ik", a, a)
        result.write(a)
        np.testing.assert_array_equal(result.numpy(), a)
        result = session.einsum("ij,jk->ik", a, a)
        with session.pipeline() as pipeline:
            pipeline.permute(a, "ij", out=result)
        np.testing.assert_array_equal(result.numpy(), a)
        result = session.einsum("ij,jk->ik", a, a)
        result.delete()
        with pytest.raises(tensord.NotFound):
            result.numpy()


def test_what_came_along_is_gone_with_the_session(address: str):
    with tensord.connect(address) as session:
        result = session.einsum("ij,jk->ik", np.eye(2), np.eye(2))
    with pytest.raises(tensord.FailedPrecondition) as failure:
        result.numpy()
    assert failure.value.reason == "SESSION_CLOSED"


def test_sums_asked_for_again_follow_their_operands(session, rng):
    for dtype in np.float32, np.float64, np.complex64, ">f8":
        for shape in (2, 3), (3, 2), (0, 4):
            a = rng.random(shape).astype(dtype)
            b = np.asfortranarray(a.T)
            for left in a, session.upload(a):
                for right in b, session.upload(b):
                    result = session.einsum("ij,jk->ik", left, right)
                    assert result.dtype == np.dtype(dtype).newbyteorder("<")
                    assert result.report is not None
                    np.testing.assert_allclose(result.numpy(), a @ b, rtol=1e-5)
    with pytest.raises(tensord.InvalidArgument):
        session.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((2, 3)))


def test_a_loop_deletes_many_results_at_a_time(private_address: str):
    with tensord.connect(private_address) as session:
        a = session.upload(np.eye(4))
        connection, deletions = session.link.connection, []
        original = connection.call

        def call(method, request, timeout=None):
            if name_of(method, request).startswith("Delete"):
                deletions.append(request)
            return original(method, request, timeout)

        connection.call = call
        begun = time.monotonic()
        for _ in range(500):
            session.einsum("ij,jk->ik", a, a)
        gc.collect()
        session.link.keeper.flush()
        seconds = time.monotonic() - begun
        assert session.describe().tensor_count == 1
        assert (
            1 <= len(deletions) <= 2 + seconds / 0.01
        )  # As long as they wait for more.


def test_pipelines_end_whatever_is_under_way(session, rng):
    a = session.upload(np.eye(4))
    for count in 0, 1, 2, 127, 128, 129, 500:
        with session.pipeline() as pipeline:
            results = [pipeline.einsum("ij,jk->ik", a, a) for _ in range(count)]
        assert all(result.done() for result in results)
    for count in 1, 300:
        with session.pipeline() as pipeline:
            results = [pipeline.einsum("ij,jk->ik", a, a) for _ in range(count)]
            np.testing.assert_array_equal(results[0].result(20).numpy(), np.eye(4))
    with pytest.raises(RuntimeError), session.pipeline() as pipeline:
        pipeline.einsum("ij,jk->ik", a, a)
        raise RuntimeError
