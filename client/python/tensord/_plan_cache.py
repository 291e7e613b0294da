"""What a server has learned about kernels."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Union

from tensord._arguments import check_timeout, check_type, look_up
from tensord._blocking_link import BlockingLink
from tensord._messages import from_message
from tensord.reports import LoadedPlans, PlanCacheEntry, PlanCacheStats
from tensord.v1 import plan_cache_pb2

Entry = Union[str, PlanCacheEntry]
"""An entry, or its id."""

_CHUNK_BYTES = 1 << 20
_SLOWEST_BYTES_PER_SECOND = 8 << 20
_ORDERS = {
    "hits": plan_cache_pb2.PLAN_CACHE_ORDER_HITS,
    "id": plan_cache_pb2.PLAN_CACHE_ORDER_UNSPECIFIED,
}


class PlanCache:
    """The plan cache of a server, which all of its sessions share.

    >>> session.plan_cache.stats().jobs
    >>> session.plan_cache.dump("plans")

    Everything takes `timeout`, a deadline in seconds; None for the default. Safe for
    use by many threads.
    """

    def __init__(self, session: object, link: BlockingLink) -> None:
        """Use `Session.plan_cache`.

        Args:
            session: What must live as long as this does.
            link: What ties it to the server.
        """
        self._session = session
        self._connection = link.connection

    def stats(self, timeout: float | None = None) -> PlanCacheStats:
        """Returns how the cache fares, by job, too."""
        request = plan_cache_pb2.GetPlanCacheStatsRequest()
        response = self._call("GetPlanCacheStats", request, timeout)
        return from_message(PlanCacheStats, response)

    def entries(
        self, order: str = "hits", timeout: float | None = None
    ) -> Iterator[PlanCacheEntry]:
        """Yields the entries, asking the server for some at a time.

        Args:
            order: "hits", the most first, or "id". An entry that is hit meanwhile may
                come twice, or not at all, by "hits".
            timeout: Deadline of each call.

        Raises:
            InvalidArgument: There is no such order.
        """
        check_type("order", order, str, "the name of an order")
        check_timeout(timeout)
        wanted = look_up("order", order, _ORDERS, "ORDER_UNKNOWN")
        pages = self._connection.pages(
            self._connection.plan_cache.ListPlanCacheEntries,
            plan_cache_pb2.ListPlanCacheEntriesRequest(order=wanted),
            timeout,
        )
        return (
            from_message(PlanCacheEntry, message)
            for page in pages
            for message in page.entries
        )

    def pin(self, entry: Entry, timeout: float | None = None) -> None:
        """Keeps an entry until it is unpinned or removed.

        Args:
            entry: It, or its id.

        Raises:
            NotFound: There is no such entry (`PLAN_NOT_FOUND`).
            ResourceExhausted: Pinned ones take half of the cache (`PINS_FULL`).
        """
        request = plan_cache_pb2.PinPlanCacheEntryRequest(id=_id_of(entry))
        self._call("PinPlanCacheEntry", request, timeout)

    def unpin(self, entry: Entry, timeout: float | None = None) -> None:
        """Lets an entry go when its turn comes.

        Args:
            entry: It, or its id.

        Raises:
            NotFound: There is no such entry (`PLAN_NOT_FOUND`).
        """
        request = plan_cache_pb2.UnpinPlanCacheEntryRequest(id=_id_of(entry))
        self._call("UnpinPlanCacheEntry", request, timeout)

    def remove(self, entry: Entry, timeout: float | None = None) -> None:
        """Removes an entry, pinned or not: an equal problem is planned anew.

        Args:
            entry: It, or its id.

        Raises:
            NotFound: There is no such entry (`PLAN_NOT_FOUND`).
        """
        request = plan_cache_pb2.RemovePlanCacheEntryRequest(id=_id_of(entry))
        self._call("RemovePlanCacheEntry", request, timeout)

    def clear(self, pinned_too: bool = False, timeout: float | None = None) -> int:
        """Removes all entries but pinned ones; statistics stay.

        Args:
            pinned_too: Pinned ones go, too.

        Returns:
            How many went.
        """
        request = plan_cache_pb2.ClearPlanCacheRequest(pinned_too=pinned_too)
        response: plan_cache_pb2.ClearPlanCacheResponse
        response = self._call("ClearPlanCache", request, timeout)
        return response.removed_count

    def dump(self, path: str | os.PathLike[str], timeout: float | None = None) -> None:
        """Writes all entries to a file that `load` takes, here or on another server.

        Args:
            path: The file. It is replaced when all has arrived; until then, and after
                a failure, it is what it was.

        Raises:
            OSError: It cannot be written.
        """
        check_timeout(timeout)
        target = Path(path)
        partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with partial.open("xb") as file:
                for message in self._connection.dump_plan_cache(timeout):
                    file.write(message.data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    def load(
        self,
        path: str | os.PathLike[str],
        problems_only: bool = False,
        timeout: float | None = None,
    ) -> LoadedPlans:
        """Takes in what `dump` has written, besides what is there already.

        Each entry is checked when an equal problem is asked for: one that does not hold
        here is planned anew.

        Args:
            path: The file.
            problems_only: Leaves the decisions there and plans the problems now, on
                devices of this server of the kind that they were planned for.
            timeout: None for the default and as long as the file takes at 8 MiB/s.

        Raises:
            InvalidArgument: The file is something else (`SNAPSHOT_FOREIGN`), of a newer
                server (`SNAPSHOT_NEWER`) or too large (`SNAPSHOT_TOO_LARGE`).
            DataLoss: It is cut off or was changed (`SNAPSHOT_CORRUPT`); nothing of it
                is kept.
            OSError: It cannot be read.
        """
        check_timeout(timeout)
        with open(path, "rb") as file:
            if timeout is None:
                size_bytes = os.fstat(file.fileno()).st_size
                timeout = (
                    self._connection.timeout + size_bytes / _SLOWEST_BYTES_PER_SECOND
                )
            response = self._connection.load_plan_cache(
                _load_requests(file, problems_only), timeout
            )
        return from_message(LoadedPlans, response)

    def _call(self, method: str, request: Any, timeout: float | None) -> Any:
        check_timeout(timeout)
        stub = getattr(self._connection.plan_cache, method)
        return self._connection.call(stub, request, timeout)


def _load_requests(
    file: BinaryIO, problems_only: bool
) -> Iterator[plan_cache_pb2.LoadPlanCacheRequest]:
    """Yields a file's contents; one request at least."""
    request = plan_cache_pb2.LoadPlanCacheRequest(
        data=file.read(_CHUNK_BYTES),
        load=plan_cache_pb2.PLAN_CACHE_LOAD_PROBLEMS if problems_only else None,
    )
    yield request
    while data := file.read(_CHUNK_BYTES):
        yield plan_cache_pb2.LoadPlanCacheRequest(data=data)


def _id_of(entry: Entry) -> str:
    check_type("entry", entry, (str, PlanCacheEntry), "an entry or its id")
    return entry if isinstance(entry, str) else entry.id
