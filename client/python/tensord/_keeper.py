"""What a session does in the background."""

from __future__ import annotations

import collections
import queue
import threading
import time
from collections.abc import Callable

from tensord._arguments import timeout_seconds
from tensord._connection import Connection, kind_of
from tensord.errors import Error, NotFound
from tensord.v1 import session_pb2

_BEATS_PER_LEASE = 3
# How long what is discarded waits for more, so that it goes in one call.
_GATHER_SECONDS = 0.01
# What is that large does not wait: the next one takes its memory, still in caches.
_LARGE_BYTES = 2 << 20
_TICK_SECONDS = 1.0
NAMES_PER_CALL = 1000
_GATHER = "gather"
_AT_ONCE = "at once"


class Keeper:
    """Keeps a session's lease, deletes what nobody holds, closes it.

    One thread does all of this, so that none of it delays the program. Tensors that are
    discarded together are deleted in one call. It does not refer to the Session, which
    can therefore be garbage collected.

    Attributes:
        deleted_count: How many discarded tensors, plans and programs have been deleted.
        on_close: Is called before the session is closed; None: nothing.
    """

    def __init__(
        self, connection: Connection, session: str, lease_seconds: float
    ) -> None:
        self._connection = connection
        self._session = session
        self._beat_seconds = lease_seconds / _BEATS_PER_LEASE
        # Both may be added to in the middle of anything, as garbage collection
        # requires. An event is to be set, _GATHER and _AT_ONCE say that names are to be
        # deleted, and None ends the thread.
        self._discarded: collections.deque[str] = collections.deque()
        self._queue: queue.SimpleQueue[threading.Event | str | None]
        self._queue = queue.SimpleQueue()
        self._gathering = False
        self._deleting_count = 0
        self._stopping = False
        self.deleted_count = 0
        self._on_tick: Callable[[], object] | None = None
        self.on_close: Callable[[], object] | None = None
        self._thread = threading.Thread(
            target=self._run, name="tensord keeper", daemon=True
        )
        self._thread.start()

    def discard(self, full_name: str, nbytes: int = 0) -> None:
        """Deletes a tensor, plan or program soon; never waits and never fails.

        Args:
            full_name: Its name on the wire.
            nbytes: What a tensor holds, if that is known here.
        """
        # In this order: who gathers looks at the names after it has said that it
        # gathers no more. As a rule this wakes nobody.
        self._discarded.append(full_name)
        if nbytes >= _LARGE_BYTES:
            self._queue.put(_AT_ONCE)
        elif not self._gathering or len(self._discarded) == NAMES_PER_CALL:
            self._gathering = True
            self._queue.put(_GATHER)

    def backlog(self) -> int:
        """Returns about how many deletions are due."""
        return len(self._discarded) + self._deleting_count

    def flush(self) -> None:
        """Waits until earlier discards are done."""
        done = threading.Event()
        self._queue.put(done)
        while self._thread.is_alive() and not done.wait(0.05):
            pass

    def tick(self, on_tick: Callable[[], object]) -> None:
        """Has a function called about once a second from now on."""
        self._on_tick = on_tick
        self._queue.put(threading.Event())  # It may be waiting for long.

    def stop(self) -> None:
        """Closes the session and its connection soon; never waits."""
        self._stopping = True
        self._queue.put(None)

    def join(self, timeout: float | None = None) -> None:
        """Waits at most `timeout` seconds until the session is closed."""
        if timeout is not None:
            timeout = min(timeout_seconds(timeout), threading.TIMEOUT_MAX)
        self._thread.join(timeout)

    def _run(self) -> None:
        next_beat = time.monotonic() + self._beat_seconds
        next_tick = time.monotonic() + _TICK_SECONDS
        leased = True
        while True:
            now = time.monotonic()
            # Also of what is busy, which never waits for so long.
            if self._on_tick is not None and now >= next_tick:
                self._on_tick()
                next_tick = now + _TICK_SECONDS
            if leased and now >= next_beat:
                leased = self._beat()
                next_beat = time.monotonic() + self._beat_seconds
                continue
            wait = next_beat - now if leased else None
            if self._on_tick is not None:
                wait = min(next_tick - now, _TICK_SECONDS if wait is None else wait)
            try:
                item = self._queue.get(timeout=None if wait is None else max(0.0, wait))
            except queue.Empty:
                continue
            if isinstance(item, str):
                item = self._gather(item)
            if item is None:
                break
            item.set()
        self._close()

    def _beat(self) -> bool:
        """Renews the lease. Returns False when there is none any more."""
        request = session_pb2.KeepSessionAliveRequest(session=self._session)
        try:
            self._connection.call(
                self._connection.session.KeepSessionAlive, request, self._beat_seconds
            )
        except NotFound:
            return False
        except Error:
            pass  # The next call or beat may fare better.
        return True

    def _gather(self, item: threading.Event | str | None) -> threading.Event | None:
        """Deletes what is discarded together.

        Args:
            item: What said so.

        Returns:
            What came behind it; an event of no interest when nothing did.
        """
        end = time.monotonic() + _GATHER_SECONDS
        while item == _GATHER and len(self._discarded) < NAMES_PER_CALL:
            try:
                item = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
        self._gathering = False
        # Counted before they are taken, so that a backlog is never told too small.
        self._deleting_count = len(self._discarded)
        names = [self._discarded.popleft() for _ in range(self._deleting_count)]
        for begin in range(0, len(names), NAMES_PER_CALL):
            if not self._stopping:
                self._delete(names[begin : begin + NAMES_PER_CALL])
        self._deleting_count = 0
        return threading.Event() if isinstance(item, str) else item

    def _delete(self, full_names: list[str]) -> None:
        tensors = [name for name in full_names if kind_of(name) == "tensor"]
        calls = [
            self._connection.deletion(name)
            for name in full_names
            if len(tensors) == 1 or kind_of(name) != "tensor"
        ]
        if len(tensors) > 1:
            calls.append(self._connection.deletions(self._session, tensors))
        for method, request in calls:
            try:
                self._connection.call(method, request, self._beat_seconds)
            except Error:
                pass  # It goes with the session.
        self.deleted_count += len(full_names)

    def _close(self) -> None:
        if self.on_close is not None:
            self.on_close()
        self._connection.end_session()
        request = session_pb2.CloseSessionRequest(session=self._session)
        try:
            self._connection.call(
                self._connection.session.CloseSession, request, self._beat_seconds
            )
        except Error:
            pass  # It goes with its lease.
        self._connection.close()
