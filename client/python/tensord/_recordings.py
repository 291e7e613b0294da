"""Operations that wait here until a value is wanted."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tensord._deferred_operations import Deferred
from tensord._deferred_tensor import DeferredTensor

# What goes though nobody wants a value: so many, or those with results of so many bytes.
_MOST_OPERATIONS = 64
_MOST_BYTES = 32 << 20


class Recordings:
    """The operations of a session that wait. Safe for use by many threads."""

    def __init__(self, send: Callable[[list[Deferred]], None]) -> None:
        """
        Args:
            send: Sends some, and takes from the list what was sent.
        """
        self._send = send
        # Its holder may collect garbage, and whatever that ends.
        self._lock = threading.RLock()
        self._waiting: list[Deferred] = []
        self._nbytes = 0
        # New results by requests, as long as nothing was written that these may read.
        self._made: dict[bytes, tuple[weakref.ref[Any], ...]] = {}

    def add(self, operation: Deferred) -> None:
        """Records an operation."""
        with self._lock:
            operation.record()
            self._waiting.append(operation)
            self._nbytes += operation.nbytes
            if not operation.is_new:
                self._made.clear()
            if len(self._waiting) >= _MOST_OPERATIONS or self._nbytes >= _MOST_BYTES:
                self.flush()

    def find(self, request: bytes) -> Sequence[DeferredTensor] | None:
        """Returns the results that an equal request, which still waits, will make."""
        with self._lock:
            made = self._made.get(request)
            if made is None:
                return None
            results = [result for each in made if (result := each()) is not None]
            return results if len(results) == len(made) else None

    def remember(self, request: bytes, results: Sequence[DeferredTensor]) -> None:
        """Takes note of the results of a request, unless it has been sent."""
        with self._lock:
            if self._waiting:
                self._made[request] = tuple(map(weakref.ref, results))

    def with_data(self, tensor: DeferredTensor) -> Deferred | None:
        """Has the elements of a tensor come with the response of what is to make it.

        Returns:
            That operation; None where another one has to bring them.
        """
        with self._lock:
            if tensor.contents.writers != 1:
                return None
            for one in reversed(self._waiting):
                if one.makes(tensor):
                    return one if one.ask_for_data() else None
        return None

    def flush(self) -> None:
        """Sends what is wanted, and forgets what is not."""
        if not self._waiting:
            return
        with self._lock:
            self._made.clear()
            self._nbytes = 0
            # Backwards: who is forgotten refers to what others make.
            for i in reversed(range(len(self._waiting))):
                if not self._waiting[i].begin():
                    self._waiting.pop(i).withdraw()
            self._send(self._waiting)

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._made.clear()
            while self._waiting:
                self._waiting.pop().withdraw()
