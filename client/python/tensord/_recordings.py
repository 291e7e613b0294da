"""Operations that wait here until a value is wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tensord._deferred_operations import Deferred
from tensord._deferred_tensor import DeferredTensor
from tensord._transport import core
from tensord.errors import DeadlineExceeded

# What goes though nobody wants a value: so many, or so many bytes of requests and results.
# The native core sends beside Python, so that the server can begin early.
_MOST_OPERATIONS = 64 if core is None else 16
_MOST_BYTES = 32 << 20
# Longer requests, which have data, are not compared.
_MOST_COMPARED_BYTES = 4 << 10


class Recordings:
    """The operations of a session that wait. Safe for use by many threads.

    Attributes:
        lock: Held while something is looked for and recorded.
    """

    def __init__(self, send: Callable[[list[Deferred], float | None], None]) -> None:
        """
        Args:
            send: Sends operations, all or none, within some seconds or as long as it takes.
        """
        self._send = send
        # Its holder may collect garbage, and whatever that ends.
        self.lock = threading.RLock()
        self._waiting: list[Deferred] = []
        self._nbytes = 0
        # Those that make tensors, as long as nothing was written that they may read.
        self._known: dict[bytes, Deferred] = {}

    def add(self, operation: Deferred, asked: bytes = b"") -> None:
        """Records an operation; sends all if that is enough.

        Args:
            operation: What is recorded.
            asked: All of its request but for the names of its results, if `find` may be
                asked for it.

        Raises:
            DeadlineExceeded: The server takes no more; the operation is not recorded.
        """
        with self.lock:
            operation.hold()
            self._waiting.append(operation)
            self._nbytes += operation.nbytes
            if not operation.is_new:
                self._known.clear()
            elif 0 < len(asked) <= _MOST_COMPARED_BYTES:
                self._known[asked] = operation
            is_much = (
                len(self._waiting) >= _MOST_OPERATIONS or self._nbytes >= _MOST_BYTES
            )
            if not is_much and not operation.has_staged:
                return
            try:
                self.flush()
            except DeadlineExceeded:
                self._waiting.remove(operation)
                operation.withdraw()
                raise

    def find(self, asked: bytes) -> list[DeferredTensor] | None:
        """Returns the results of an operation that waits and was asked for alike.

        Requires the lock, until copies of all are recorded; None if those would be sent
        before they are known to be copies.
        """
        operation = self._known.get(asked)
        results = None if operation is None else operation.results()
        if operation is None or results is None:
            return None
        count = len(self._waiting) + len(results)
        nbytes = self._nbytes + operation.nbytes + len(results) * _MOST_COMPARED_BYTES
        return results if count < _MOST_OPERATIONS and nbytes < _MOST_BYTES else None

    def maker_of(self, tensor: DeferredTensor) -> Deferred | None:
        """Returns the operation that waits to make a tensor, and nothing else."""
        with self.lock:
            for one in reversed(self._waiting):
                if one.makes(tensor):
                    return one
        return None

    def with_data(self, tensor: DeferredTensor) -> Deferred | None:
        """Has the elements of a tensor come with the response of what is to make it.

        Returns:
            That operation; None where another one has to bring them.
        """
        with self.lock:
            maker = self.maker_of(tensor) if tensor.contents.writers == 1 else None
            return maker if maker is not None and maker.ask_for_data() else None

    def flush(self, timeout: float | None = None) -> None:
        """Sends what is wanted, and forgets what is not.

        Args:
            timeout: Most seconds to wait for the server to take it; None for as long as
                one operation after the other is done, each within the default deadline.

        Raises:
            DeadlineExceeded: It does not; all is still recorded.
        """
        seconds = threading.TIMEOUT_MAX if timeout is None else timeout
        if not self.lock.acquire(timeout=min(max(seconds, 0), threading.TIMEOUT_MAX)):
            raise DeadlineExceeded(
                f"operations were not sent after {timeout:.3g} s",
                reason="DEADLINE_EXCEEDED",
            )
        try:
            self._known.clear()
            # Backwards: who is forgotten refers to what others make.
            for i in reversed(range(len(self._waiting))):
                if not self._waiting[i].begin():
                    self._waiting.pop(i).withdraw()
            sent, self._waiting, self._nbytes = self._waiting, [], 0
            if sent:
                self._send_or_keep(sent, timeout)
        finally:
            self.lock.release()

    def _send_or_keep(self, sent: list[Deferred], timeout: float | None) -> None:
        try:
            self._send(sent, timeout)
        except DeadlineExceeded:
            # Behind it is what finalizers and handlers of signals have recorded meanwhile.
            self._waiting = sent + self._waiting
            self._nbytes = sum(each.nbytes for each in self._waiting)
            raise

    def clear(self) -> None:
        """Forgets all."""
        with self.lock:
            self._known.clear()
            self._nbytes = 0
            while self._waiting:
                self._waiting.pop().withdraw()
