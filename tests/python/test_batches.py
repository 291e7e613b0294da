"""What a stream of operations carries: requests and responses that travel together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import grpc
import numpy as np
import pytest
from faulty_server import FaultyServer

import tensord
from tensord._wire import batch_of, messages_of
from tensord.v1 import compute_pb2

Request = compute_pb2.ExecuteStreamRequest
Response = compute_pb2.ExecuteStreamResponse
MOST_BYTES = 64 << 10  # Of what goes together.


class StreamingServer(FaultyServer):
    """Answers streams of operations as told; computes nothing.

    Attributes:
        may_read: Nothing is read before.
        messages: What was read.
        respond: Makes the responses to a message; may be no messages at all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.may_read = threading.Event()
        self.messages: list[bytes] = []
        self.respond: Callable[[bytes], list[bytes]] = lambda message: []

    def __enter__(self) -> StreamingServer:
        handler = grpc.stream_stream_rpc_method_handler(self._execute)
        handlers = {"ExecuteStream": handler}
        name = "tensord.v1.ComputeService"
        generic = grpc.method_handlers_generic_handler(name, handlers)
        self._server.add_generic_rpc_handlers((generic,))
        super().__enter__()
        return self

    def _execute(self, messages: Iterator[bytes], _: object) -> Iterator[bytes]:
        assert self.may_read.wait(20)
        for message in messages:
            self.messages.append(message)
            yield from self.respond(message)


@pytest.fixture
def server() -> Iterator[StreamingServer]:
    with StreamingServer() as server:
        yield server


def request(number: int, nbytes: int = 0) -> bytes:
    """One that is told apart from others."""
    contract = compute_pb2.ContractRequest(session=f"{number} " + "x" * nbytes)
    return Request(contract=contract).SerializeToString()


def sent_together(server: StreamingServer, requests: list[bytes]) -> list[list[bytes]]:
    """Sends them, at a time when nothing is read; returns what came together."""
    with tensord.connect(server.address) as session:
        exchange = session.link.connection.execute_stream(20)
        reader = threading.Thread(target=lambda: list(exchange.batches()))
        reader.start()
        for each in requests:
            exchange.send(each)
        server.may_read.set()
        exchange.end()
        reader.join()
    return [
        [each.SerializeToString() for each in Request.FromString(message).batch]
        or [message]
        for message in server.messages
    ]


@pytest.mark.timing
def test_requests_that_wait_go_together_and_in_order(server):
    requests = [request(number) for number in range(1000)]
    together = sent_together(server, requests)
    assert [each for batch in together for each in batch] == requests
    assert len(together) < 500
    assert max(map(len, server.messages)) <= MOST_BYTES


@pytest.mark.timing
def test_large_requests_go_alone(server):
    requests = [request(number, MOST_BYTES - 1000) for number in range(10)]
    together = sent_together(server, requests)
    assert together == [[each] for each in requests]
    assert server.messages == requests


def test_a_request_waits_for_no_others(server):
    server.may_read.set()
    server.respond = lambda message: [message]
    with tensord.connect(server.address) as session:
        exchange = session.link.connection.execute_stream(20)
        responses = exchange.batches()
        for number in range(3):
            exchange.send(request(number))
            assert next(responses) == [request(number)]
        exchange.end()
        assert list(responses) == []
    assert server.messages == [request(number) for number in range(3)]


def test_responses_that_came_together_are_taken_apart(server):
    server.may_read.set()
    answered = [Response(index=index).SerializeToString() for index in range(300)]
    answered[0] = Response(error={"code": 3}).SerializeToString()
    server.respond = lambda message: [batch_of(answered)]
    with tensord.connect(server.address) as session:
        exchange = session.link.connection.execute_stream(20)
        exchange.send(request(0))
        exchange.end()
        assert [each for batch in exchange.batches() for each in batch] == answered


RESULT = Response(result={"report": {"kernel": "any"}}).SerializeToString()


@pytest.mark.parametrize(
    "message",
    [
        batch_of([RESULT, RESULT])[:-1],
        batch_of([RESULT, RESULT]) + RESULT,
        batch_of([RESULT, RESULT]) + b"\x7a",
        batch_of([batch_of([RESULT, RESULT]), RESULT]),
        batch_of([RESULT, RESULT, RESULT]),
        batch_of([RESULT, b""]),
        b"\x7a\xff\xff\xff\xff\x0f",
        b"\x7a" + b"\xff" * 12,
        b"",
    ],
    ids=[
        "cut short",
        "with a response behind",
        "with a tag behind",
        "of batches",
        "of one response too many",
        "with an empty response",
        "of more than there is",
        "without a length",
        "empty",
    ],
)
def test_batches_that_say_what_was_not_asked_are_refused(server, message):
    server.respond = lambda _: [message]
    with tensord.connect(server.address) as session:
        x = session.create(2, np.float64)
        pipeline = session.pipeline().__enter__()
        pending = [pipeline.permute(x, "i", "i", out=x) for _ in range(2)]
        server.may_read.set()
        pipeline.finish()
        with pytest.raises(tensord.Internal):
            pending[1].result()


@pytest.mark.parametrize("count", [1, 2, 100])
def test_batches_are_messages_of_the_protocol(count):
    requests = [request(number, nbytes=number * 7) for number in range(count)]
    batch = batch_of(requests)
    if count == 1:
        assert batch == requests[0]
    else:
        parsed = [each.SerializeToString() for each in Request.FromString(batch).batch]
        assert parsed == requests
    assert messages_of(batch) == requests


def test_failures_among_many_are_those_of_their_operations(session, rng):
    x = session.upload(rng.random(3))
    values = x.numpy()
    with pytest.raises(tensord.NotFound) as first:
        with session.pipeline() as pipeline:
            pending = [
                pipeline.elementwise(
                    x,
                    "i",
                    x,
                    "i",
                    gamma=number,
                    algorithm="no.such.kernel" if number % 7 == 3 else None,
                )
                for number in range(500)
            ]
    assert "no.such.kernel" in str(first.value)
    for number, each in enumerate(pending):
        if number % 7 == 3:
            with pytest.raises(tensord.NotFound, match="no.such.kernel"):
                each.result()
        else:
            result = each.result().numpy()
            np.testing.assert_allclose(result, values * (1 + number))
