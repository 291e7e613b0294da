"""What a session does in the background."""

from __future__ import annotations

import queue
import threading
import time

from tensord._arguments import timeout_seconds
from tensord._connection import Connection, kind_of
from tensord.errors import Error, NotFound
from tensord.v1 import session_pb2

_BEATS_PER_LEASE = 3
# How long what is discarded waits for more, so that it goes in one call.
_GATHER_SECONDS = 0.01
NAMES_PER_CALL = 1000


class Keeper:
    """Keeps a session's lease, deletes what nobody holds, closes it.

    One thread does all of this, so that none of it delays the program. Tensors that are
    discarded together are deleted in one call. It does not refer to the Session, which
    can therefore be garbage collected.

    Attributes:
        deleted_count: How many discarded tensors, plans and programs have been deleted.
    """

    def __init__(
        self, connection: Connection, session: str, lease_seconds: float
    ) -> None:
        self._connection = connection
        self._session = session
        self._beat_seconds = lease_seconds / _BEATS_PER_LEASE
        # SimpleQueue.put() may be called in the middle of anything, as garbage
        # collection requires. Names are to be deleted, events to be set, and None
        # ends the thread.
        self._queue: queue.SimpleQueue[str | threading.Event | None]
        self._queue = queue.SimpleQueue()
        self._gathered: list[str] = []
        self._stopping = False
        self.deleted_count = 0
        self._thread = threading.Thread(
            target=self._run, name="tensord keeper", daemon=True
        )
        self._thread.start()

    def discard(self, full_name: str) -> None:
        """Deletes a tensor, plan or program soon; never waits and never fails."""
        self._queue.put(full_name)

    def backlog(self) -> int:
        """Returns about how many deletions are due."""
        return self._queue.qsize() + len(self._gathered)

    def flush(self) -> None:
        """Waits until earlier discards are done."""
        done = threading.Event()
        self._queue.put(done)
        while self._thread.is_alive() and not done.wait(0.05):
            pass

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
        leased = True
        while True:
            wait = max(0.0, next_beat - time.monotonic()) if leased else None
            try:
                item = self._queue.get(timeout=wait)
            except queue.Empty:
                leased = self._beat()
                next_beat = time.monotonic() + self._beat_seconds
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

    def _gather(self, first: str) -> threading.Event | None:
        """Deletes what is discarded together.

        Returns:
            What came behind it; an event of no interest when nothing did.
        """
        end = time.monotonic() + _GATHER_SECONDS
        item: str | threading.Event | None = first
        while isinstance(item, str):
            self._gathered.append(item)
            if len(self._gathered) == NAMES_PER_CALL:
                item = threading.Event()
                break
            try:
                item = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                item = threading.Event()
        if not self._stopping:
            self._delete(self._gathered)
        self._gathered = []
        return item

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
        request = session_pb2.CloseSessionRequest(session=self._session)
        try:
            self._connection.call(
                self._connection.session.CloseSession, request, self._beat_seconds
            )
        except Error:
            pass  # It goes with its lease.
        self._connection.close()
