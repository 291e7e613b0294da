"""Moves the bytes of tensors, and goes on where a stream broke off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensord import _chunks as chunks
from tensord._arguments import check_timeout, timeout_seconds
from tensord._connection import Connection
from tensord._progress import Progress
from tensord._transport import FAILURES, core
from tensord.errors import Aborted, DataLoss, Error, FailedPrecondition, Unavailable
from tensord.v1 import tensor_pb2

_CHUNK_BYTES = 1 << 20
_TRIES = 5
_FIRST_PAUSE_SECONDS = 0.05
_SLOWEST_BYTES_PER_SECOND = 8 << 20


class Transfers:
    """Uploads and downloads over one connection.

    A stream that breaks off or brings damaged data is resumed; the transfer fails
    when several streams in a row have brought nothing. Safe for use by many threads.
    """

    def __init__(self, connection: Connection, max_chunk_bytes: int) -> None:
        """
        Args:
            connection: Its bulk channel carries the transfers.
            max_chunk_bytes: Largest chunk that the server takes; 0 if unknown.
        """
        self._connection = connection
        channel = connection.bulk_core
        self._native: Any = None if channel is None else core.Transfers(channel)
        self._chunk_bytes = min(_CHUNK_BYTES, max_chunk_bytes or _CHUNK_BYTES)

    def upload(
        self, tensor: str, data: np.ndarray, timeout: float | None, *, empty: bool
    ) -> None:
        """Fills a tensor.

        Args:
            tensor: Its full name.
            data: All of its bytes; uint8, shape (span_bytes,), contiguous.
            empty: Whether nothing was ever written to it. Only then it is certain
                that what it holds after a failure came from here; else every try
                starts over.
            timeout: Deadline in seconds; None for the default and as long as the
                transfer takes at 8 MiB/s.

        Raises:
            Error: As the status says, after a few tries where they can help.
        """
        deadline = self._deadline(data.size, timeout)
        if self._native is not None and empty:
            # What resumes what another upload may have begun is written here.
            self._move(self._native.upload, "UploadTensor", tensor, data, deadline)
            return
        retries = _Retries(deadline)
        progress = Progress("upload", data.size)
        offset = 0
        try:
            while True:
                try:
                    if retries.failed_before and empty:
                        offset = self._committed_bytes(tensor, retries)
                    self._connection.upload(
                        self._encode(tensor, data, offset, progress),
                        retries.remaining_seconds(),
                    )
                    return
                except Error as error:
                    if not retries.allow_another(error, offset):
                        raise
        finally:
            progress.close()

    def download(self, tensor: str, data: np.ndarray, timeout: float | None) -> None:
        """Reads a tensor.

        Args:
            tensor: Its full name.
            data: Receives all of its bytes; uint8, shape (span_bytes,), contiguous.
            timeout: As for `upload`.

        Raises:
            Error: As the status says, after a few tries where they can help.
        """
        deadline = self._deadline(data.size, timeout)
        retries = _Retries(deadline)
        while self._native is not None:
            try:
                move = self._native.download
                self._move(move, "DownloadTensor", tensor, data, deadline)
                return
            except Aborted as error:  # It has changed meanwhile.
                if not retries.allow_another(error, 0):
                    raise
        progress = Progress("download", data.size)
        offset = 0
        try:
            while True:
                try:
                    for chunk in self._chunks(tensor, offset, retries):
                        end = offset + chunk.data.size
                        if chunk.offset_bytes != offset or end > data.size:
                            raise DataLoss(
                                f"got a chunk of {chunk.data.size} bytes at byte "
                                f"{chunk.offset_bytes} of {tensor}, wanted the one "
                                f"at {offset} of {data.size}",
                                reason="CHUNK_OUT_OF_ORDER",
                            )
                        data[offset:end] = chunk.data
                        offset = end
                        progress.update(offset)
                    if offset == data.size:
                        return
                    raise DataLoss(
                        f"the download of {tensor} ended after {offset} of "
                        f"{data.size} bytes",
                        reason="STREAM_ENDED_EARLY",
                    )
                except Error as error:
                    if not retries.allow_another(error, offset):
                        raise
                    if isinstance(error, Aborted):
                        offset = 0
        finally:
            progress.close()

    def _move(
        self, move: Any, what: str, tensor: str, data: np.ndarray, deadline: float
    ) -> None:
        """Has the native core do it."""
        self._connection.check_open()
        progress = Progress(move.__name__, data.size)
        seconds = deadline - time.monotonic()
        limit = self._connection.deadline(seconds)
        try:
            move(
                tensor,
                data,
                self._chunk_bytes,
                seconds,
                self._connection.credentials.metadata(),
                progress.update if progress.is_shown else None,
            )
        except FAILURES as error:
            raise self._connection.translated(error, what, limit) from None
        finally:
            progress.close()

    def _encode(
        self, tensor: str, data: np.ndarray, offset: int, progress: Progress
    ) -> Iterator[bytes]:
        name = tensor
        for begin in range(offset, max(data.size, 1), self._chunk_bytes):
            yield chunks.encode(name, begin, data[begin : begin + self._chunk_bytes])
            name = ""
            progress.update(begin)

    def _chunks(
        self, tensor: str, offset: int, retries: _Retries
    ) -> Iterator[chunks.Chunk]:
        request = tensor_pb2.DownloadTensorRequest(
            tensor=tensor, offset_bytes=offset, chunk_bytes=self._chunk_bytes
        )
        messages = self._connection.download(request, retries.remaining_seconds())
        return map(chunks.decode, messages)

    def _committed_bytes(self, tensor: str, retries: _Retries) -> int:
        """Where an upload goes on; only a PARTIAL tensor holds a part of it."""
        response: tensor_pb2.DescribeTensorResponse = self._connection.call(
            *self._connection.description(tensor), retries.remaining_seconds()
        )
        described = response.tensor
        if described.state == tensor_pb2.TENSOR_STATE_PARTIAL:
            return described.committed_bytes
        return 0

    def _deadline(self, size_bytes: int, timeout: float | None) -> float:
        check_timeout(timeout)
        if timeout is None:
            timeout = self._connection.timeout + size_bytes / _SLOWEST_BYTES_PER_SECOND
        return time.monotonic() + timeout_seconds(timeout)


class _Retries:
    """Decides whether a transfer that failed is tried once more."""

    def __init__(self, deadline: float) -> None:
        """
        Args:
            deadline: Of the whole transfer, on the monotonic clock.
        """
        self._deadline = deadline
        self._fruitless = 0
        self._furthest = 0
        self.failed_before = False

    def remaining_seconds(self) -> float:
        return self._deadline - time.monotonic()

    def allow_another(self, error: Error, offset: int) -> bool:
        """Returns whether another try is worth it, after a moment's wait.

        Args:
            error: Why the last try failed.
            offset: Bytes known to have arrived.
        """
        # A broken upload keeps its tensor busy until the server has noticed.
        busy = isinstance(error, FailedPrecondition) and error.reason == "TENSOR_BUSY"
        temporary = isinstance(error, (Unavailable, DataLoss, Aborted))
        if not temporary and not (busy and self.failed_before):
            return False
        if offset > self._furthest:
            self._furthest, self._fruitless = offset, 0
        self._fruitless += 1
        pause = _FIRST_PAUSE_SECONDS * 2**self._fruitless
        if self._fruitless >= _TRIES or pause >= self.remaining_seconds():
            return False
        self.failed_before = True
        time.sleep(pause)
        return True
