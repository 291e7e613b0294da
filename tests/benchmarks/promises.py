"""How long that takes for which a time is promised, each beside its promise.

    build/venv/bin/python tests/benchmarks/promises.py [--rounds 20] [--only WORD]

Tests ask for the same facts with time to spare, as their machines do much else. Here each
is timed against a server of its own, build/dev/bin/tensord or $TENSORD_SERVER. Prints a
Markdown table: what is promised and where, median and worst of the rounds, and how many
kept it. Where no number is promised, "at once" is within 100 ms. A promise that is not
kept is no error; a wrong answer is one.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import re
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import grpc
import numpy as np

import tensord
from tensord.v1 import (
    admin_pb2,
    compute_pb2,
    compute_pb2_grpc,
    program_pb2,
    session_pb2,
    session_pb2_grpc,
)

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "python"))

import dying_client  # noqa: E402
from callers import Caller, running  # noqa: E402
from collector import Collector  # noqa: E402
from conftest import raw_stubs  # noqa: E402
from secure_server import make_certificates, new_token  # noqa: E402
from test_promises import (  # noqa: E402
    NOT_SERVING,
    SERVING,
    begun,
    contraction,
    long_operand,
    received,
    serve,
    watch_health,
)
from test_shared_device import long_square, processor_seconds  # noqa: E402
from test_shared_memory_ways import DYING, mapped_files, server_of  # noqa: E402
from test_traces import SAMPLED, traced  # noqa: E402

SERVER = Path(os.environ["TENSORD_SERVER"])  # conftest sets it
LEASE_SECONDS = dying_client.LEASE_SECONDS
AT_ONCE = 0.1
MOMENTS = random.Random(1)


class Promise(NamedTuple):
    """What is timed.

    Attributes:
        what: It, in words.
        where: Who promises it.
        limit: Seconds that are promised.
        time: Times it in a folder of its own, so many times.
        share: Of the rounds, the part that it is timed in.
    """

    what: str
    where: str
    limit: float
    time: Callable[[Path, int], Iterator[float]]
    share: float = 1


def wait_for(fact: Callable[[], bool]) -> None:
    """Returns as soon as the fact is true."""
    deadline = time.monotonic() + 60
    while not fact():
        if time.monotonic() > deadline:
            raise SystemExit("a fact has not come true in 60 s")
        time.sleep(0.001)


def check(fact: bool, what: object) -> None:
    if not fact:
        raise SystemExit(f"wrong: {what}")


def at_any_moment() -> None:
    """Waits: else a round begins where what the server does now and then has just ended."""
    time.sleep(MOMENTS.random())


def folders(folder: Path, rounds: int) -> Iterator[Path]:
    """A new folder a round."""
    for number in range(rounds):
        path = folder / str(number)
        path.mkdir()
        yield path


@contextlib.contextmanager
def at_work(session: tensord.Session) -> Iterator[grpc.Future]:
    """While an operation runs for seconds, unless it is stopped."""
    before = begun(session)
    call = raw_stubs(session).compute.Contract.future(contraction(session, long_operand(session)))
    wait_for(lambda: begun(session) > before)
    yield call
    call.cancel()


def lease(_: Path, rounds: int) -> Iterator[float]:
    """From the end of a lease of a second until the session is gone."""
    with tensord.serve(threads=1) as address, tensord.connect(address) as observer:
        with grpc.insecure_channel(address) as channel:
            service = session_pb2_grpc.SessionServiceStub(channel)
            for _ in range(rounds):
                at_any_moment()
                service.OpenSession(session_pb2.OpenSessionRequest(lease={"seconds": 1}))
                opened = time.monotonic()
                wait_for(lambda: observer.stats().session_count == 1)
                yield time.monotonic() - opened - 1


def killed(state: str) -> Callable[[Path, int], Iterator[float]]:
    """From a client's death in that state until all that it had is back."""

    def timed(_: Path, rounds: int) -> Iterator[float]:
        with tensord.serve(threads=1) as address, tensord.connect(address) as observer:

            def memory() -> tuple[int, int]:
                device = observer.stats().devices[0]
                return device.memory_used_bytes, device.staging_used_bytes

            before = memory()
            for _ in range(rounds):
                client = subprocess.Popen(
                    [sys.executable, dying_client.__file__, address, state],
                    stdout=subprocess.PIPE,
                )
                check(client.stdout.readline() == b"there\n", state)
                at_any_moment()
                client.kill()
                client.communicate()
                died = time.monotonic()
                wait_for(lambda: observer.stats().session_count == 1 and memory() == before)
                yield time.monotonic() - died

    return timed


def unmapped(_: Path, rounds: int) -> Iterator[float]:
    """From the death of a client that computes in shared memory until none is mapped."""
    with tensord.serve() as address:
        server = server_of(address)
        for _ in range(rounds):
            client = subprocess.Popen(
                [sys.executable, "-c", DYING, address], stdout=subprocess.PIPE
            )
            check(client.stdout.readline() == b"ready\n", "the client does not start")
            check(mapped_files(server) > 0, "nothing is mapped")
            at_any_moment()
            client.kill()
            client.communicate()
            died = time.monotonic()
            wait_for(lambda: mapped_files(server) == 0)
            yield time.monotonic() - died


def cancelled(_: Path, rounds: int) -> Iterator[float]:
    """From a cancel until the device has done what another asks for."""
    with tensord.serve(threads=1) as address:
        with tensord.connect(address) as session, tensord.connect(address) as other:
            one = other.upload(np.ones((2, 2)))
            check(float(other.einsum("ij->", one)) == 4, "a sum")
            for _ in range(rounds):
                with at_work(session) as call:
                    call.cancel()
                    sent = time.monotonic()
                    check(float(other.einsum("ij->", one)) == 4, "a sum")
                    yield time.monotonic() - sent


def program_stopped(_: Path, rounds: int) -> Iterator[float]:
    """From a program's cancel until its temporaries are gone, and others have their turn."""
    with tensord.serve(threads=1) as address, tensord.connect(address) as session:
        one = session.upload(np.ones((2, 2)))
        d = session.upload(np.zeros((2, 2)))
        a = long_operand(session)
        request = program_pb2.ExecuteProgramRequest(session=session.name)
        request.spec.source.statements = "T[i,j] := A[i,k]*A[k,j]; D[i,j] = B[i,j]"
        for name, tensor in {"A": a, "B": one, "D": d}.items():
            request.spec.operands.add(name=name, tensor=tensor.full_name)
        for _ in range(rounds):
            before = begun(session)
            call = raw_stubs(session).program.ExecuteProgram.future(request)
            wait_for(lambda: begun(session) > before)
            call.cancel()
            sent = time.monotonic()
            wait_for(lambda: session.stats().tensor_count == 3)
            check(float(session.einsum("ij->", one)) == 4, "a sum")
            yield time.monotonic() - sent
            d.write(np.zeros((2, 2)))


def refusal(_: Path, rounds: int) -> Iterator[float]:
    """Until it is said that an operation would take longer than it has time."""
    with tensord.serve(threads=1) as address, tensord.connect(address) as session:
        a = long_operand(session)
        for _ in range(rounds):
            asked = time.monotonic()
            try:
                session.contract(a, "ij", a, "jk", "ik", timeout=0.5)
            except tensord.DeadlineExceeded as error:
                check(error.reason == "DEADLINE_TOO_SHORT", error)
            else:
                raise SystemExit("an operation of seconds ended in half a second")
            yield time.monotonic() - asked


def queue_refusal(_: Path, rounds: int) -> Iterator[float]:
    """Until it is said that an operation would wait for longer than it has time."""
    with tensord.serve(threads=1) as address, tensord.connect(address) as session:
        one = session.upload(np.eye(2))
        with at_work(session) as running, at_work_behind(session, running):
            # Without the client, which tries again while there is time.
            contract = raw_stubs(session).compute.Contract
            for _ in range(rounds):
                asked = time.monotonic()
                refused = contract.future(contraction(session, one), timeout=0.5).exception()
                yield time.monotonic() - asked
                check("predicted to end in" in refused.details(), refused)


@contextlib.contextmanager
def at_work_behind(session: tensord.Session, running: grpc.Future) -> Iterator[None]:
    """While another long operation waits for the one that runs."""
    request = contraction(session, long_operand(session))
    call = raw_stubs(session).compute.Contract.future(request)
    wait_for(lambda: session.stats().devices[0].queued_operations == 1)
    yield
    check(not running.done(), "it has ended meanwhile")
    call.cancel()


def deferred(_: Path, rounds: int) -> Iterator[float]:
    """Until an operation of a deferred session returns, beside a busy device."""
    with tensord.serve(threads=1) as address, tensord.connect(address) as session:
        with tensord.connect(address, deferred=True) as later, at_work(session):
            one = later.upload(np.eye(2))
            for _ in range(rounds):
                asked = time.monotonic()
                one = later.contract(one, "ij", one, "jk", "ik")
                yield time.monotonic() - asked


def told(folder: Path, rounds: int) -> Iterator[float]:
    """From SIGTERM until those who watch hear of it, and no reply is lost."""
    for each in folders(folder, rounds):
        with (
            serve(each, "--devices=cpu", "--drain-timeout-seconds=60") as server,
            grpc.insecure_channel(server.address) as channel,
        ):
            states = watch_health(channel)
            check(next(states) == SERVING, "not serving")
            session = tensord.connect(server.address)
            a = session.upload(np.ones((900, 900), np.int64))
            before = begun(session)
            contract = raw_stubs(session).compute.Contract
            calls = [contract.future(contraction(session, a)) for _ in range(3)]
            wait_for(lambda: received(session) == before + 3)
            server.process.send_signal(signal.SIGTERM)
            sent = time.monotonic()
            check(NOT_SERVING in states, "nothing was told")
            yield time.monotonic() - sent
            states.cancel()
            check(all(call.result().result.tensor.name for call in calls), "a reply")
            check(server.process.wait(60) == 0, "its status")


def ended(work: Callable[[tensord.Session], object], status: int, seconds: int):
    """From SIGTERM until a server has ended, `seconds` of processor time after `work` began."""

    def timed(folder: Path, rounds: int) -> Iterator[float]:
        for each in folders(folder, rounds):
            flag = "--drain-timeout-seconds=0.5"
            with serve(each, "--devices=cpu", flag) as server:
                session = tensord.connect(server.address)

                def run() -> None:
                    with contextlib.suppress(tensord.Error):
                        work(session)

                call = threading.Thread(target=run)
                call.start()
                wait_for(lambda: begun(session) > 0)
                busy = processor_seconds(server.process)
                wait_for(lambda: processor_seconds(server.process) >= busy + seconds)
                server.process.send_signal(signal.SIGTERM)
                sent = time.monotonic()
                check(server.process.wait(60) == status, "its status")
                yield time.monotonic() - sent
                call.join()

    return timed


def decompose(session: tensord.Session) -> None:
    """What a library does that cannot be stopped."""
    matrix = np.random.default_rng(1).random((3000, 3000))
    session.factorize("ij->ik,k,kj", matrix, method="svd", timeout=600)


def second_signal(folder: Path, rounds: int) -> Iterator[float]:
    """From the second SIGTERM, in a drain without end, to the end."""
    for each in folders(folder, rounds):
        with serve(each, "--devices=cpu", "--drain-timeout-seconds=600") as server:
            session = tensord.connect(server.address)
            with at_work(session), grpc.insecure_channel(server.address) as channel:
                states = watch_health(channel)
                check(next(states) == SERVING, "not serving")
                server.process.send_signal(signal.SIGTERM)
                check(NOT_SERVING in states, "nothing was told")
                server.process.send_signal(signal.SIGTERM)
                sent = time.monotonic()
                check(server.process.wait(60) == -signal.SIGTERM, "its status")
                yield time.monotonic() - sent


def lost_device(until: str) -> Callable[[Path, int], Iterator[float]]:
    """From the loss of the only device until that is told, or the server has ended."""

    def timed(folder: Path, rounds: int) -> Iterator[float]:
        module = SERVER.with_name("liblosable_device.so")
        for each in folders(folder, rounds):
            loss = each / "loss"
            flags = (f"--cuda-module={module}", "--drain-timeout-seconds=0.1")
            with (
                serve(each, *flags, TEST_DEVICE_LOSS=str(loss)) as server,
                grpc.insecure_channel(server.address) as channel,
            ):
                states = watch_health(channel)
                check(next(states) == SERVING, "not serving")
                at_any_moment()
                loss.touch()
                lost = time.monotonic()
                if until == "told":
                    check(NOT_SERVING in states, "nothing was told")
                    yield time.monotonic() - lost
                else:
                    check(server.process.wait(60) == 3, "its status")
                    yield time.monotonic() - lost

    return timed


def is_known(caller: Caller, session: str = "") -> bool:
    """Whether who calls is let in, to a session or to a new one."""
    try:
        caller.describe(session) if session else caller.open()
    except grpc.RpcError as error:
        check(error.code() is grpc.StatusCode.UNAUTHENTICATED, error)
        return False
    return True


def new_one(folder: Path, rounds: int) -> Iterator[float]:
    """From a token's line in the file until who brings it is let in."""
    tokens = folder / "tokens"
    new_token(tokens, "chemistry")
    with running(tokens=str(tokens), max_sessions=4 * rounds) as server:
        for _ in range(rounds):
            at_any_moment()
            token = new_token(tokens, "chemistry")
            written = time.monotonic()
            caller = Caller(server.unix, token)
            wait_for(lambda: is_known(caller))
            yield time.monotonic() - written


def without_last_line(tokens: Path) -> None:
    """Replaces the file, as tensorctl does."""
    new = tokens.with_name("new")
    new.write_text("".join(tokens.read_text().splitlines(keepends=True)[:-1]))
    new.replace(tokens)


def revoked(until: str) -> Callable[[Path, int], Iterator[float]]:
    """From a token's end in the file until its calls are refused, or an idle stream ends."""

    def timed(folder: Path, rounds: int) -> Iterator[float]:
        tokens = folder / "tokens"
        new_token(tokens, "chemistry")
        with running(tokens=str(tokens)) as server:
            for _ in range(rounds):
                caller = Caller(server.unix, new_token(tokens, "chemistry"))
                wait_for(lambda: is_known(caller))
                session = caller.open()
                request = compute_pb2.ExecuteStreamRequest()
                request.reduce.session = session
                hold = threading.Event()

                def requests() -> Iterator[compute_pb2.ExecuteStreamRequest]:
                    yield request
                    hold.wait(60)

                stub = compute_pb2_grpc.ComputeServiceStub(caller.channel)
                stream = stub.ExecuteStream(requests(), metadata=caller.metadata, timeout=60)
                check(next(stream).error.code == 3, "the stream")
                at_any_moment()
                without_last_line(tokens)
                written = time.monotonic()
                if until == "refused":
                    wait_for(lambda: not is_known(caller, session))
                else:
                    with contextlib.suppress(grpc.RpcError):
                        next(stream)
                    check(stream.code() is grpc.StatusCode.UNAUTHENTICATED, stream.code())
                yield time.monotonic() - written
                hold.set()
                caller.channel.close()

    return timed


def certificate(folder: Path, rounds: int) -> Iterator[float]:
    """From a certificate in the place of another until new connections are shown it."""
    make_certificates(folder / "0")
    for number in range(rounds):
        shutil.copytree(folder / "0", folder / str(number + 1))
        make_certificates(folder / str(number + 1), "--renew")
    link = folder / "current"
    link.symlink_to("0")
    flags = {"tls_certificate": f"{link}/server.pem", "tls_key": f"{link}/server-key.pem"}
    context = ssl.create_default_context(cafile=folder / "0/ca.pem")

    with running(listen="localhost:0", **flags) as server:
        port = int(server.address().partition(":")[2])

        def is_served(version: str) -> bool:
            with socket.create_connection(("localhost", port)) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as secure:
                    shown = secure.getpeercert(binary_form=True) or b""
            return ssl.DER_cert_to_PEM_cert(shown) in (folder / version / "server.pem").read_text()

        check(is_served("0"), "the first certificate")
        for number in range(rounds):
            new = folder / "new"
            new.symlink_to(str(number + 1))
            at_any_moment()
            new.replace(link)
            written = time.monotonic()
            wait_for(lambda: is_served(str(number + 1)))
            yield time.monotonic() - written


def turned_away(_: Path, rounds: int) -> Iterator[float]:
    """Until a connection beyond the limit is closed."""
    with running(listen="localhost:0", max_connections_per_peer=2) as server:
        place = ("localhost", int(server.address().partition(":")[2]))
        with socket.create_connection(place), socket.create_connection(place):
            for _ in range(rounds):
                asked = time.monotonic()
                with socket.create_connection(place, timeout=60) as refused:
                    check(refused.recv(1) == b"", "it has a connection too many")
                yield time.monotonic() - asked


def asleep(folder: Path, rounds: int) -> Iterator[float]:
    """6000 calls whose traces nobody takes."""
    for each in folders(folder, rounds):
        with Collector() as collector:
            collector.is_awake.clear()
            with traced(each, collector) as server, tensord.connect(server.address) as session:
                call = raw_stubs(session).admin.GetServerInfo.future
                request = admin_pb2.GetServerInfoRequest()
                asked = time.monotonic()
                for _ in range(60):
                    calls = [call(request, metadata=SAMPLED) for _ in range(100)]
                    check(all(each.result() for each in calls), "an answer")
                yield time.monotonic() - asked


def interrupted(_: Path, rounds: int) -> Iterator[float]:
    """From the second ctrl-C until tensord-load has ended."""
    mix = TESTS / "benchmarks/mixes/heavy.toml"
    load = [SERVER.with_name("tensord-load"), "--quiet", f"--mix={mix}"]
    with tensord.serve(threads=1) as address, tensord.connect(address) as observer:
        for _ in range(rounds):
            before = begun(observer)
            process = subprocess.Popen(
                [*load, f"--address={address}", "--closed=4", "--seconds=60"],
                stdout=subprocess.DEVNULL,
            )
            wait_for(lambda: begun(observer) > before + 8)
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)  # one that comes before the first is seen is lost
            process.send_signal(signal.SIGINT)
            sent = time.monotonic()
            process.wait(120)
            yield time.monotonic() - sent


OPERATING = "operating.md"
SECURITY = "security.md"
RUNBOOK = "runbook.md"
PYTHON = "client/python/README.md"
DEAD = "test_promise_3"
LOST = "test_promise_7"
TIMED = [
    Promise("a lease ran out: its session is gone", "session.proto", 1, lease),
    *(
        Promise(f"a client dies {state}: all is back", DEAD, LEASE_SECONDS + 1, killed(state), 0.2)
        for state in dying_client.STATES
    ),
    Promise("a client with shared memory dies: unmapped", "shared-memory.md", 1, unmapped),
    Promise("a call that runs is cancelled: another runs", "rpc_stop_test", 0.05, cancelled),
    Promise("a program is cancelled: another runs", "test_promise_5", 1, program_stopped),
    Promise("longer than its deadline: refused", RUNBOOK, 0.05, refusal),
    Promise("behind what is longer than its deadline: refused", RUNBOOK, 0.05, queue_refusal),
    Promise("an operation of a deferred session: returns", PYTHON, AT_ONCE, deferred),
    Promise("a connection is one too many: closed", OPERATING, AT_ONCE, turned_away),
    Promise("SIGTERM: told to who watches", "test_promise_6", 0.1, told),
    Promise("SIGTERM, drain 0.5 s, one runs: ended", OPERATING, 1.5, ended(long_square, 0, 0)),
    Promise("the same, in a library: left", OPERATING, 5.5 + AT_ONCE, ended(decompose, 4, 1), 0.25),
    Promise("a second SIGTERM: ended", OPERATING, AT_ONCE, second_signal),
    Promise("the only device is lost: told to who watches", LOST, 1, lost_device("told")),
    Promise("the same, drain 0.1 s: ended", LOST, 2, lost_device("ended")),
    Promise("a token is new in the file: let in", OPERATING, 1, new_one),
    Promise("a token is out of the file: refused", SECURITY, 1, revoked("refused")),
    Promise("the same: its idle stream ends", SECURITY, 1, revoked("ended")),
    Promise("a certificate is another: shown", RUNBOOK, 1, certificate),
    Promise("6000 calls, nobody takes their traces: done", "test_traces", 10, asleep, 0.25),
    Promise("tensord-load, a second ctrl-C: ended", "client/load/README.md", AT_ONCE, interrupted),
]


def shown(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def processor() -> str:
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else "unknown processor"


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", metavar="WORD", default="", help="what has it in its words")
    options = parser.parse_args()
    print(f"{processor()}, {os.cpu_count()} processors, {load()} at the beginning\n")
    print("| what | promised in | within | median | worst | kept |")
    print("| --- | --- | --- | --- | --- | --- |")
    begun_at = time.monotonic()
    for promise in TIMED:
        if options.only not in promise.what:
            continue
        rounds = math.ceil(promise.share * options.rounds)
        with tempfile.TemporaryDirectory(prefix="tensord-") as folder:
            times = list(promise.time(Path(folder), rounds))
        kept = sum(each <= promise.limit for each in times)
        print(
            f"| {promise.what} | {promise.where} | {shown(promise.limit)} "
            f"| {shown(statistics.median(times))} | {shown(max(times))} | {kept} of {rounds} |",
            flush=True,
        )
    print(f"\n{time.monotonic() - begun_at:.0f} s in all, {load()} at the end")


if __name__ == "__main__":
    main()
