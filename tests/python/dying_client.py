"""A client that comes to a state of the protocol, says so, and waits for its end.

    dying_client.py <address> <state>
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import numpy as np

import tensord
from tensord import _chunks as chunks
from tensord.v1 import compute_pb2, program_pb2, tensor_pb2
from waiting import eventually

MEBIBYTE = 1 << 20
LEASE_SECONDS = 3


def opened(session: tensord.Session) -> None:
    """Holds a session, a tensor, a view, a plan and a program."""
    tensor = session.upload(np.ones((1000, 1000)), name="held")
    tensor.view(name="view")
    session.plan.permute(tensor, "ij", "ji", name="plan")
    program = "D[a,b] := A[a,c]*A[c,b]"
    session.program(program, A=tensor, constants=["A"], name="program")(A=tensor)
    say_so()


def uploading(session: tensord.Session) -> None:
    finished = session.upload(np.ones(1 << 20), name="finished")
    assert finished.state == "ready"
    tensor = session.create(MEBIBYTE, np.float64, name="unfinished")

    def messages() -> Iterator[bytes]:
        yield chunks.encode(tensor.full_name, 0, np.zeros(MEBIBYTE, np.uint8))
        for offset in range(MEBIBYTE, 4 * MEBIBYTE, MEBIBYTE):
            yield chunks.encode("", offset, np.zeros(MEBIBYTE, np.uint8))
        assert eventually(lambda: tensor.state == "partial")
        say_so()

    session.link.connection.upload(messages(), 60)


def downloading(session: tensord.Session) -> None:
    """Reads one chunk, and no others."""
    tensor = session.upload(np.ones(8 * MEBIBYTE), name="large")
    request = tensor_pb2.DownloadTensorRequest(tensor=tensor.full_name)
    received = session.link.connection.download(request, 60)
    next(received)
    say_so()


def streaming(session: tensord.Session) -> None:
    """Has results that it read and some that it did not; more are under way."""
    small = session.upload(np.ones((2, 2)), name="small")
    large = long_operand(session)

    before = begun(session)
    exchange = session.link.connection.execute_stream(600)
    for tensor in [*[small] * 5, large, small]:
        request = compute_pb2.ExecuteStreamRequest()
        request.contract.CopyFrom(square(session, tensor))
        exchange.send(request)
    next(exchange.batches())
    assert eventually(lambda: begun(session) == before + 6)
    say_so()


def computing(session: tensord.Session) -> None:
    """One operation runs long, and one is behind it."""
    tensor = long_operand(session)
    before = begun(session)
    contract = session.link.connection.compute.Contract
    calls = [
        threading.Thread(
            target=session.link.call,
            args=(contract, square(session, tensor)),
            daemon=True,
        )
        for _ in range(2)
    ]
    for call in calls:
        call.start()
    assert eventually(lambda: begun(session) > before)
    say_so()
    calls[0].join()


def planning(session: tensord.Session) -> None:
    """Asks for a program whose paths are searched for long."""
    ends = np.random.default_rng(1).permutation(np.arange(1600) // 2)
    labels = ["".join(chr(0x3B1 + end) for end in four) for four in ends.reshape(-1, 4)]
    like = tensord.TensorSpec((2, 2, 2, 2), "float64").inline_message()
    request = program_pb2.CreateProgramRequest(
        session=session.name,
        spec=program_pb2.ProgramSpec(
            source=program_pb2.ProgramSource(einsum=",".join(labels) + "->"),
            operands=[program_pb2.ProgramOperand(inline=like)] * len(labels),
            path=program_pb2.PathOptions(
                method=program_pb2.PATH_METHOD_RANDOM_GREEDY,
                time_budget={"seconds": 50},
            ),
        ),
    )
    create = session.link.connection.program.CreateProgram
    call = threading.Thread(
        target=session.link.call, args=(create, request), daemon=True
    )
    call.start()
    time.sleep(0.2)  # time: a search takes fifty seconds
    session.describe()  # comes after it
    assert call.is_alive()
    say_so()


def long_operand(session: tensord.Session) -> tensord.RemoteTensor:
    """The square of it takes some ten seconds."""
    return session.upload(np.ones((3000, 3000), np.int64), name="long")


def square(
    session: tensord.Session, tensor: tensord.RemoteTensor
) -> compute_pb2.ContractRequest:
    return compute_pb2.ContractRequest(
        session=session.name,
        a=compute_pb2.Operand(tensor=tensor.full_name, modes=[1, 2]),
        b=compute_pb2.Operand(tensor=tensor.full_name, modes=[2, 3]),
        d=compute_pb2.Output(modes=[1, 3]),
    )


def begun(session: tensord.Session) -> int:
    return session.stats().devices[0].executed_operations


def say_so() -> None:
    print("there", flush=True)
    threading.Event().wait()


STATES = {
    state.__name__: state
    for state in (opened, uploading, downloading, streaming, computing, planning)
}

if __name__ == "__main__":
    # time: the lease is to end
    STATES[sys.argv[2]](tensord.connect(sys.argv[1], lease=LEASE_SECONDS, transport="grpc"))
