"""Calls of grpcio with many messages either way."""

from __future__ import annotations

import collections
import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tensord._wire import batch_of, messages_of

# Requests that go at once: their responses are soon there.
_SOON_ANSWERED = 8
# How long others wait for more to go with them, how many, and how many bytes.
_GATHER_SECONDS = 3e-4
_MOST_TOGETHER = 64
_MOST_BYTES = 64 << 10


def encoded(request: Any) -> bytes:
    """Returns a request as bytes, which it may be already."""
    data: bytes
    data = request if isinstance(request, bytes) else request.SerializeToString()
    return data


class Exchange:
    """A call of gRPC's whose requests are sent one by one.

    Those that wait together travel as the field `batch` of one. The native core has the
    same, see `_native_channel.Exchange`. Safe for use by many threads.
    """

    def __init__(self, begin: Callable[[Iterator[bytes]], Any]) -> None:
        """
        Args:
            begin: Makes the call of an iterator of requests, which a thread of gRPC
                takes one by one.
        """
        # Of those that were sent together, and of None at the end.
        self._requests: queue.SimpleQueue[list[bytes | None]] = queue.SimpleQueue()
        self._begin = begin
        self._lock = threading.Lock()
        self._call: Any = None
        self._cancelled = False
        self._hurry = threading.Event()
        self._sent_count = self._answered_count = 0

    def send(self, *requests: Any) -> None:
        """Sends requests soon, together if they are not large."""
        self._sent_count += len(requests)
        self._requests.put([encoded(each) for each in requests])

    def flush(self) -> None:
        """Sends at once what waits for others to go with them."""
        self._hurry.set()

    def end(self) -> None:
        """Says that nothing follows."""
        self._requests.put([None])
        self.flush()

    def batches(self) -> Iterator[list[bytes]]:
        """Makes the call, and yields responses as they come; raises as the status says.

        That is for a thread that no signal interrupts.
        """
        call = self._begin(self._messages())
        with self._lock:
            self._call = call
            cancelled = self._cancelled
        if cancelled:
            call.cancel()
        for response in call:
            responses = messages_of(response)
            self._answered_count += len(responses)
            yield responses

    def awaited(self) -> contextlib.AbstractContextManager[None]:
        """While somebody waits, responses do not; nor do they else."""
        self.flush()
        return contextlib.nullcontext()

    def cancel(self) -> None:
        """Ends the call soon; from any thread."""
        with self._lock:
            self._cancelled = True
            call = self._call
        self._requests.put([None])  # gRPC's thread waits for more
        if call is not None:
            call.cancel()

    def _messages(self) -> Iterator[bytes]:
        """Yields requests, together those that wait together."""
        waiting: collections.deque[bytes | None] = collections.deque()
        while True:
            if not waiting:
                waiting.extend(self._requests.get())
                is_soon = self._sent_count - self._answered_count <= _SOON_ANSWERED
                if len(waiting) == 1 and not is_soon:
                    self._hurry.wait(_GATHER_SECONDS)
                self._hurry.clear()
            with contextlib.suppress(queue.Empty):
                while True:
                    waiting.extend(self._requests.get_nowait())
            together = _first_together(waiting)
            if not together:
                return
            yield batch_of(together)


def _first_together(waiting: collections.deque[bytes | None]) -> list[bytes]:
    """Takes those that go next from what waits; none at the end."""
    together: list[bytes] = []
    size = 0
    while waiting and len(together) < _MOST_TOGETHER:
        request = waiting[0]
        if request is None or (together and size + len(request) > _MOST_BYTES):
            break
        together.append(request)
        size += len(request)
        waiting.popleft()
    return together
