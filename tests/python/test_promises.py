"""What the server promises, a test each, under the promise's number; 9 is in test_contract.py.

Where a time is promised, tests allow for more: tests/benchmarks/promises.py measures it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import google_crc32c
import grpc
import numpy as np
import pytest

import dying_client
import tensord
from conftest import raw_stubs
from tensord.v1 import compute_pb2, compute_pb2_grpc, error_pb2, program_pb2, tensor_pb2
from waiting import eventually, listens

MEBIBYTE = 1 << 20
SLACK_SECONDS = 10  # of a machine that does much else

pytestmark = pytest.mark.timing


@dataclasses.dataclass
class Server:
    """A server's process and where it listens."""

    process: subprocess.Popen[bytes]
    address: str


@contextlib.contextmanager
def serve(folder: Path, *flags: str, **environment: str) -> Iterator[Server]:
    """Runs a server that a test may end."""
    path = folder / "socket"
    process = subprocess.Popen(
        [os.environ["TENSORD_SERVER"], f"--listen=unix:{path}", "--threads=1", *flags],
        stderr=subprocess.DEVNULL,
        env=os.environ | environment,
    )
    try:
        assert listens(path)
        yield Server(process, f"unix:{path}")
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def running(*functions: Callable[[], None]) -> Iterator[threading.Event]:
    """Calls functions again and again, each on a thread of its own."""
    stop = threading.Event()

    def run(function: Callable[[], None]) -> None:
        while not stop.is_set():
            function()

    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(run, function) for function in functions]
        try:
            yield stop
        finally:
            stop.set()
    for future in futures:
        future.result()


def begun(session: tensord.Session) -> int:
    """Operations that were launched."""
    return session.stats().devices[0].executed_operations


def received(session: tensord.Session) -> int:
    """Operations that were launched, or wait for that."""
    device = session.stats().devices[0]
    return device.executed_operations + device.queued_operations


def long_operand(session: tensord.Session) -> tensord.RemoteTensor:
    """The square of it takes some ten seconds."""
    return session.upload(np.ones((3000, 3000), np.int64))


def contraction(
    session: tensord.Session,
    a: tensord.RemoteTensor,
    d: tensord.RemoteTensor | None = None,
) -> compute_pb2.ContractRequest:
    """Asks for the square of a, added to d if that is given."""
    request = compute_pb2.ContractRequest(
        session=session.name,
        a=compute_pb2.Operand(tensor=a.full_name, modes=[1, 2]),
        b=compute_pb2.Operand(tensor=a.full_name, modes=[2, 3]),
        d=compute_pb2.Output(modes=[1, 3]),
    )
    if d is not None:
        request.c.CopyFrom(compute_pb2.Operand(tensor=d.full_name, modes=[1, 3]))
        request.beta.real = 1
        request.d.tensor = d.full_name
    return request


def reason_of(call: Callable[[], object]) -> str:
    """Why a call of a stub is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    detail = dict(caught.value.trailing_metadata())["tensord-error-bin"]
    return error_pb2.ErrorDetail.FromString(detail).reason


# Besides: test_chunks and test_streams of checksums, KeysMustBeEqualInFull of the
# plan cache's keys, test_model of what many clients see.
@pytest.mark.timing(high=True)
def test_promise_1_every_reply_is_right_or_an_error(address: str) -> None:
    with tensord.connect(address) as session:
        ones = session.upload(np.ones(MEBIBYTE))
        tensor = session.upload(np.ones(MEBIBYTE), name="rewritten")
        stubs = raw_stubs(session)
        request = tensor_pb2.DownloadTensorRequest(tensor=tensor.full_name)
        a = np.arange(90_000.0).reshape(300, 300) % 7
        outcomes = set()

        def rewrite() -> None:
            session.permute(ones, "i", "i", alpha=time.monotonic(), out=tensor)

        def download() -> None:
            """Of no two states of the tensor."""
            values = set()
            try:
                for message in stubs.tensor.DownloadTensor(request):
                    assert google_crc32c.value(message.data) == message.crc32c
                    values |= set(np.frombuffer(message.data))
            except grpc.RpcError as error:
                outcomes.add(error.code())
            else:
                assert len(values) == 1
                outcomes.add(grpc.StatusCode.OK)

        def compute() -> None:
            try:
                with tensord.connect(address, timeout=0.02) as hurried:
                    assert np.array_equal(hurried.einsum("ij,jk", a, a).numpy(), a @ a)
            except (tensord.DeadlineExceeded, tensord.Cancelled, tensord.ResourceExhausted):
                pass  # the last: it would wait for longer than it has time

        with running(rewrite, download, download, compute):
            time.sleep(1.5)
        download()  # which nothing hinders now
        assert grpc.StatusCode.OK in outcomes
        assert np.array_equal(session.einsum("ij,jk", a, a).numpy(), a @ a)
        assert outcomes <= {
            grpc.StatusCode.OK,
            grpc.StatusCode.ABORTED,
            grpc.StatusCode.FAILED_PRECONDITION,
        }


# That owners cannot name each other's tensors, test_errors has.
def test_promise_2_no_owner_takes_more_than_its_share(tmp_path: Path) -> None:
    with (
        serve(tmp_path, "--devices=cpu", "--job-weights=a=3,b=1") as server,
        contextlib.ExitStack() as stack,
    ):
        counts = {"a": 0, "b": 0}

        def client(job: str) -> Callable[[], None]:
            session = stack.enter_context(tensord.connect(server.address, job=job))
            a = session.upload(np.ones((500, 500)))
            d = session.create((500, 500), "float64")

            def multiply() -> None:
                session.contract(a, "ij", a, "jk", "ik", out=d)
                counts[job] += 1

            return multiply

        with running(*map(client, "ab" * 4)):
            assert eventually(lambda: min(counts.values()) > 0)
            before = dict(counts)
            assert eventually(lambda: sum(counts.values()) > sum(before.values()) + 200, 120)
            a, b = (counts[job] - before[job] for job in "ab")
        # A quarter, and a half without weights. How near, tests/benchmarks measure.
        assert 0.1 < b / (a + b) < 0.4


@pytest.mark.timing(high=True)
@pytest.mark.parametrize("state", dying_client.STATES)
def test_promise_3_all_of_a_dead_client_is_back_a_second_after_its_lease(
    private_address: str, state: str
) -> None:
    with tensord.connect(private_address) as observer:

        def memory() -> tuple[int, int]:
            device = observer.stats().devices[0]
            return device.memory_used_bytes, device.staging_used_bytes

        def check_that_it_answers() -> None:
            product = observer.einsum("ij,ij->", np.ones((3, 3)), np.ones((3, 3)))
            assert float(product) == 9
            del product
            observer.link.keeper.flush()

        check_that_it_answers()
        before = memory()
        client = subprocess.Popen(
            [sys.executable, Path(dying_client.__file__), private_address, state],
            stdout=subprocess.PIPE,
        )
        assert client.stdout.readline() == b"there\n"
        check_that_it_answers()
        assert observer.stats().session_count == 2
        if state != "planning":
            assert memory() > before
        client.kill()
        client.communicate()
        died = time.monotonic()
        check_that_it_answers()
        assert eventually(lambda: observer.stats().session_count == 1, 60)
        assert eventually(lambda: memory() == before, 60)
        # How soon, tests/benchmarks measure.
        assert time.monotonic() < died + 10 * (dying_client.LEASE_SECONDS + 1)
        stats = observer.stats()
        assert stats.tensor_count == 0
        assert stats.devices[0].queued_operations == 0
        check_that_it_answers()


def test_promise_4_memory_is_bounded_at_any_load(tmp_path: Path) -> None:
    device_bytes, host_bytes = 64 * MEBIBYTE, 32 * MEBIBYTE
    with (
        serve(
            tmp_path,
            "--devices=cpu",
            f"--memory-limit-bytes={device_bytes}",
            f"--host-limit-bytes={host_bytes}",
        ) as server,
        tensord.connect(server.address, transport="grpc") as observer,
    ):

        def resident_bytes() -> int:
            status = Path(f"/proc/{server.process.pid}/statm").read_text()
            return int(status.split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def upload() -> None:
            with (
                contextlib.suppress(tensord.ResourceExhausted),
                tensord.connect(server.address, transport="grpc") as session,
            ):
                for _ in range(20):
                    session.upload(np.ones(MEBIBYTE // 2), name=f"{time.monotonic_ns()}")

        def compute() -> None:
            with (
                contextlib.suppress(tensord.ResourceExhausted),
                tensord.connect(server.address, transport="grpc") as session,
            ):
                a = np.ones((300, 300))
                for _ in range(20):
                    session.einsum("ij,jk,kl", a, a, a).numpy()

        at_start = resident_bytes()
        most = device_bytes + host_bytes + 64 * MEBIBYTE
        with running(*[upload] * 4, *[compute] * 4):
            deadline = time.monotonic() + 2.5
            while time.monotonic() < deadline:
                stats = observer.stats()
                device = stats.devices[0]
                assert device.memory_used_bytes <= device_bytes
                assert device.memory_reserved_bytes <= device_bytes
                assert sum(use.used_bytes for use in stats.host_memory) <= host_bytes
                assert resident_bytes() <= at_start + most
        assert observer.stats().devices[0].memory_peak_bytes > device_bytes // 2


# Kinds of operations that stop midway, rpc_stop_test has.
def test_promise_5_a_queued_operation_never_starts_after_its_cancel(
    private_address: str,
) -> None:
    with tensord.connect(private_address) as session:
        a = long_operand(session)
        small = session.upload(np.ones((2, 2)))
        kept, late = session.upload(np.zeros((2, 2))), session.upload(np.zeros((2, 2)))
        contract = raw_stubs(session).compute.Contract
        before = begun(session)
        blocking = contract.future(contraction(session, a))
        assert eventually(lambda: begun(session) > before)
        cancelled = contract.future(contraction(session, small, kept))
        overdue = contract.future(contraction(session, small, late), timeout=0.1)
        assert overdue.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        cancelled.cancel()
        assert not blocking.done()
        blocking.cancel()
        assert not kept.numpy().any() and not late.numpy().any()


@pytest.mark.timing(high=True)
def test_promise_5_a_cancelled_program_stops_at_its_next_operation(
    private_address: str,
) -> None:
    with tensord.connect(private_address) as session:
        a = long_operand(session)
        d = session.upload(np.zeros((2, 2)))
        one = session.upload(np.ones((2, 2)))
        request = program_pb2.ExecuteProgramRequest(session=session.name)
        request.spec.source.statements = "T[i,j] := A[i,k]*A[k,j]; D[i,j] = B[i,j]"
        for name, tensor in {"A": a, "B": one, "D": d}.items():
            request.spec.operands.add(name=name, tensor=tensor.full_name)
        before = begun(session)
        call = raw_stubs(session).program.ExecuteProgram.future(request)
        assert eventually(lambda: begun(session) > before)
        call.cancel()
        cancelled = time.monotonic()
        assert eventually(lambda: session.stats().tensor_count == 3)
        assert float(session.einsum("ij->", one)) == 4  # it has its turn
        assert time.monotonic() < cancelled + 1 + SLACK_SECONDS
        assert d.state == "invalid" or not d.numpy().any()


@pytest.mark.timing(high=True)
def test_promise_6_sigterm_is_told_at_once_and_loses_no_reply(tmp_path: Path) -> None:
    with (
        serve(tmp_path, "--devices=cpu", "--drain-timeout-seconds=60") as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        states = watch_health(channel)
        assert next(states) == SERVING
        session = tensord.connect(server.address)
        a = session.upload(np.ones((900, 900), np.int64))
        contract = raw_stubs(session).compute.Contract
        before = begun(session)
        calls = [contract.future(contraction(session, a)) for _ in range(3)]
        # One that comes later is refused.
        assert eventually(lambda: received(session) == before + 3)
        assert not calls[-1].done()
        server.process.send_signal(signal.SIGTERM)
        sent = time.monotonic()
        assert NOT_SERVING in states
        assert time.monotonic() < sent + 0.1 + SLACK_SECONDS
        states.cancel()  # the server would wait for it
        for call in calls:
            assert call.result().result.tensor.name
        assert server.process.wait(61) == 0


@pytest.mark.timing(high=True)
def test_promise_7_a_lost_device_ends_the_server_within_a_second(
    tmp_path: Path,
) -> None:
    loss = tmp_path / "loss"
    module = Path(os.environ["TENSORD_SERVER"]).with_name("liblosable_device.so")
    with (
        serve(
            tmp_path,
            f"--cuda-module={module}",
            "--drain-timeout-seconds=0.1",
            TEST_DEVICE_LOSS=str(loss),
        ) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        states = watch_health(channel)
        assert next(states) == SERVING
        session = tensord.connect(server.address)
        assert session.upload(np.ones(3)).numpy().sum() == 3
        loss.touch()
        lost = time.monotonic()
        assert NOT_SERVING in states
        assert time.monotonic() < lost + 1 + SLACK_SECONDS
        assert server.process.wait(10) == 3
        assert time.monotonic() < lost + 2 + SLACK_SECONDS


SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"  # of grpc.health.v1


def watch_health(channel: grpc.Channel) -> grpc.Call:
    """Whether the server is ready, now and whenever that is said anew."""
    return channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")


def once(request_id: str) -> tuple[tuple[str, str], ...]:
    """Metadata of a call that is to be carried out at most once."""
    return (("x-request-id", request_id), ("x-request-once", "1"))


def test_promise_8_a_repeated_call_is_carried_out_once(address: str) -> None:
    with tensord.connect(address) as session, tensord.connect(address) as other:
        compute = raw_stubs(session).compute
        a = session.upload(np.full((2, 2), 2.0))
        d = session.upload(np.ones((2, 2)))
        adding = contraction(session, a, d)
        first = compute.Contract(adding, metadata=once("add"))
        assert compute.Contract(adding, metadata=once("add")) == first
        assert np.array_equal(d.numpy(), np.full((2, 2), 9.0))
        compute.Contract(adding, metadata=once("add-again"))
        assert np.array_equal(d.numpy(), np.full((2, 2), 17.0))

        making = contraction(session, a)
        made = compute.Contract(making, metadata=once("make"))
        assert compute.Contract(making, metadata=once("make")) == made
        without = compute.Contract(making, metadata=once("make")[:1])
        assert without.result.tensor.name != made.result.tensor.name

        def other_request() -> object:
            return compute.Contract(making, metadata=once("add"))

        assert reason_of(other_request) == "REQUEST_ID_REUSED"
        for bad in ("two words", "x" * 129):
            malformed = functools.partial(compute.Contract, making, metadata=once(bad))
            assert reason_of(malformed) == "REQUEST_ID_MALFORMED"
        theirs = contraction(other, other.upload(np.ones((2, 2))))
        assert compute.Contract(theirs, metadata=once("add"))


def test_promise_8_a_repeated_stream_is_carried_out_once(address: str) -> None:
    with tensord.connect(address) as session:
        compute = raw_stubs(session).compute
        a = session.upload(np.full((2, 2), 2.0))
        d = session.upload(np.ones((2, 2)))
        adding = compute_pb2.ExecuteStreamRequest(contract=contraction(session, a, d))
        making = compute_pb2.ExecuteStreamRequest(contract=contraction(session, a))

        def run(
            *requests: compute_pb2.ExecuteStreamRequest,
        ) -> list[compute_pb2.ExecuteStreamResponse]:
            return list(compute.ExecuteStream(iter(requests), metadata=once("stream")))

        first = run(adding, making)
        # An attempt whose connection broke goes on behind what it had done.
        again = run(adding, making, adding)
        assert again[:2] == first
        assert run(adding, making, adding) == again
        assert np.array_equal(d.numpy(), np.full((2, 2), 17.0))
        other = run(making)[0]
        assert other.error.detail.reason == "REQUEST_ID_REUSED"
        without = list(
            compute.ExecuteStream(iter([making]), metadata=once("stream")[:1])
        )
        assert without[0].result.tensor.name != first[1].result.tensor.name


def test_promise_8_a_call_that_failed_is_tried_again(address: str) -> None:
    with tensord.connect(address) as session:
        compute = raw_stubs(session).compute
        a = session.create((2, 2), "float64")
        request = contraction(session, a)

        def call() -> object:
            return compute.Contract(request, metadata=once("try"))

        assert reason_of(call) == "TENSOR_NOT_READY"
        a.write(np.ones((2, 2)))
        assert call() == call()


def test_promise_8_a_reply_that_was_lost_is_given_again(
    address: str, tmp_path: Path
) -> None:
    with tensord.connect(address) as session, Wire(address, tmp_path) as wire:
        a = session.upload(np.full((2, 2), 2.0))
        d = session.upload(np.ones((2, 2)))
        adding = contraction(session, a, d)
        with grpc.insecure_channel(wire.address) as channel:
            grpc.channel_ready_future(channel).result(20)
            compute = compute_pb2_grpc.ComputeServiceStub(channel)
            wire.is_mute = True
            before = begun(session)
            lost = compute.Contract.future(adding, metadata=once("add"))
            assert eventually(lambda: begun(session) > before)
            assert d.numpy().sum() == 36  # comes after it
            wire.cut()
            assert lost.code() == grpc.StatusCode.UNAVAILABLE
        compute = raw_stubs(session).compute
        answer = compute.Contract(adding, metadata=once("add"))
        assert answer.result.tensor.name == d.full_name
        assert d.numpy().sum() == 36


class Wire:
    """A connection on the way to a server; it may lose what the server says.

    Attributes:
        address: Where clients find the server at its other end.
        is_mute: Whether it loses that.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self.address = f"unix:{folder}/wire"
        self.is_mute = False
        self._ends: list[socket.socket] = []
        self._target = address.removeprefix("unix:")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/wire")
        self._listener.listen()

    def __enter__(self) -> Wire:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends.clear()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._target)
        self._ends += [client, server]
        threading.Thread(
            target=self._carry, args=(client, server, False), daemon=True
        ).start()
        self._carry(server, client, True)

    def _carry(self, source: socket.socket, sink: socket.socket, loses: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if not (loses and self.is_mute):
                    sink.sendall(data)
