"""What a session does in the background."""

from __future__ import annotations

import queue
import threading
import time

from tensord._arguments import timeout_seconds
from tensord._connection import Connection
from tensord.errors import Error, NotFound
from tensord.v1 import session_pb2

_BEATS_PER_LEASE = 3


class Keeper:
    """Keeps a session's lease, deletes what nobody holds, closes it.

    One thread does all of this, so that none of it delays the program. It does not
    refer to the Session, which can therefore be garbage collected.

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
        self._stopping = False
        self.deleted_count = 0
        self._thread = threading.Thread(
            target=self._run, name=f"tensord {session}", daemon=True
        )
        self._thread.start()

    def discard(self, full_name: str) -> None:
        """Deletes a tensor, plan or program soon; never waits and never fails."""
        self._queue.put(full_name)

    def backlog(self) -> int:
        """Returns about how many deletions are due."""
        return self._queue.qsize()

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
            if item is None:
                break
            if isinstance(item, threading.Event):
                item.set()
            elif not self._stopping:
                self._delete(item)
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

    def _delete(self, full_name: str) -> None:
        try:
            self._connection.call(
                *self._connection.deletion(full_name), self._beat_seconds
            )
        except Error:
            pass  # It goes with the session.
        self.deleted_count += 1

    def _close(self) -> None:
        request = session_pb2.CloseSessionRequest(session=self._session)
        try:
            self._connection.call(
                self._connection.session.CloseSession, request, self._beat_seconds
            )
        except Error:
            pass  # It goes with its lease.
        self._connection.close()
