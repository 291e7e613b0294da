"""The way by which memory gets to a server on the same host."""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import socket
import struct
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tensord.errors import (
    Error,
    FailedPrecondition,
    ResourceExhausted,
    Unavailable,
    from_code,
)
from tensord.v1 import session_pb2

if TYPE_CHECKING:
    from tensord._connection import Connection

_MAGIC = 0x314D5354
_VERSION = 1
_HELLO, _ADD, _DROP = 1, 2, 3
_ANSWER, _RELEASED = 1, 2
_HELLO_MESSAGE = struct.Struct("<IIQ16s")
_REGION_MESSAGE = struct.Struct("<IIQQQ")
_REPLY = struct.Struct("<IIQQII128s")
_PATIENCE_SECONDS = 10
_PATIENCE = struct.pack("ll", _PATIENCE_SECONDS, 0)  # A `timeval`.
_LOOPBACK = re.compile(r"(localhost|127\.\d+\.\d+\.\d+|\[::1\]):\d+")


class Broken(Exception):
    """The connection has ended, or nobody understands what it says."""


class Region:
    """A file in memory that both sides have mapped.

    Attributes:
        number: By which both sides call it.
        nbytes: Its size.
        memory: It.
        address: Where it begins here.
        leased: Whether somebody here has it.
        adoptions: Tensors that have been in it, as far as is known here.
        released: The same, when the server said last that none is any more.
        idle_since: When it was heard or seen to be idle, on the monotonic clock.
    """

    def __init__(self, number: int, descriptor: int, nbytes: int) -> None:
        self.number = number
        self.nbytes = nbytes
        self.memory = mmap.mmap(descriptor, nbytes)
        self.address: int = np.frombuffer(self.memory, np.uint8).ctypes.data
        self.leased = True
        self.adoptions = 0
        self.released = 0
        self.idle_since = time.monotonic()

    def is_idle(self) -> bool:
        """Whether nobody uses it, here or there."""
        return not self.leased and self.released == self.adoptions


class Way:
    """A connection that brings regions to the server. Used by one thread at a time.

    Attributes:
        copies: Whether the server copies what is uploaded to its device at once.
    """

    def __init__(
        self, connected: socket.socket, opened: session_pb2.OpenSharedMemoryResponse
    ) -> None:
        """
        Args:
            connected: To the server, which has not been greeted.
            opened: What it has said before.

        Raises:
            Error: The server does not take it.
            Broken: It says nothing that is understood.
        """
        self.copies = opened.copies
        self._socket = connected
        self._next_number = 1
        # The system's patience: Python's would take two calls more whenever it is
        # looked whether there is something to hear.
        connected.settimeout(None)
        for option in socket.SO_RCVTIMEO, socket.SO_SNDTIMEO:
            connected.setsockopt(socket.SOL_SOCKET, option, _PATIENCE)
        self._send(_HELLO_MESSAGE.pack(_MAGIC, _HELLO, _VERSION, opened.ticket))
        self._answer(())

    def add(self, nbytes: int, regions: Iterable[Region]) -> Region:
        """Returns a new region.

        Raises:
            Error: The system or the server has no room for it.
            Broken: The connection has ended.
        """
        number = self._next_number
        self._next_number += 1
        descriptor = _sealed_file(nbytes)
        try:
            region = Region(number, descriptor, nbytes)
            message = _REGION_MESSAGE.pack(_MAGIC, _ADD, number, nbytes, 0)
            self._send(message, descriptor)
        finally:
            os.close(descriptor)
        self._answer(regions)
        return region

    def drop(self, region: Region, regions: Iterable[Region]) -> None:
        """Takes a region back.

        Raises:
            Broken: The connection has ended.
        """
        self._send(_REGION_MESSAGE.pack(_MAGIC, _DROP, region.number, 0, 0))
        try:
            self._answer(regions)
        except Error as error:
            raise Broken(str(error)) from None

    def hear(self, regions: Iterable[Region]) -> None:
        """Takes note of all that the server has said of regions.

        Raises:
            Broken: The connection has ended.
        """
        while self.hear_one(regions):
            pass

    def hear_one(self, regions: Iterable[Region]) -> bool:
        """Takes note of the next that it has said; returns whether there was any.

        Raises:
            Broken: The connection has ended.
        """
        try:
            self._next(regions, socket.MSG_DONTWAIT)
            return True
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Ends it."""
        self._socket.close()

    def _send(self, message: bytes, *descriptors: int) -> None:
        try:
            if descriptors:
                socket.send_fds(self._socket, [message], list(descriptors))
            else:
                self._socket.send(message)
        except OSError as error:
            raise Broken(str(error)) from None

    def _next(
        self, regions: Iterable[Region], flags: int = 0
    ) -> tuple[int, str] | None:
        """Reads one packet; returns an answer's code and text."""
        try:
            packet = self._socket.recv(_REPLY.size + 1, flags)
        except BlockingIOError:
            raise
        except OSError as error:
            raise Broken(str(error)) from None
        if len(packet) != _REPLY.size:
            raise Broken("the server has closed it")
        magic, kind, number, adoptions, code, length, text = _REPLY.unpack(packet)
        if magic != _MAGIC or kind not in (_ANSWER, _RELEASED):
            raise Broken("the server says what nobody understands")
        if kind == _ANSWER:
            return code, text[:length].decode(errors="replace")
        for region in regions:
            if region.number == number:
                region.released = adoptions
                region.idle_since = time.monotonic()
        return None

    def _answer(self, regions: Iterable[Region]) -> None:
        answer = None
        try:
            while answer is None:
                answer = self._next(regions)
        except BlockingIOError:
            raise Broken("the server is silent") from None
        code, text = answer
        if code != 0:
            reason, _, message = text.partition(" ")
            raise from_code(code, message, reason)


def page_multiple(nbytes: int) -> int:
    """Returns the next multiple of a page."""
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


def way_to(connection: Connection, session: str) -> Way:
    """Connects.

    Args:
        connection: To the server, by gRPC.
        session: The session's name on the wire.

    Raises:
        Error: Which precondition fails.
    """
    address = connection.address
    is_unix = address.startswith("unix:")
    if not is_unix and _LOOPBACK.fullmatch(address) is None:
        raise FailedPrecondition(
            f"{address} is perhaps another machine: only unix:PATH, localhost and "
            "loopback addresses are this one",
            reason="SHARED_MEMORY_NOT_LOCAL",
        )
    for needed in (os, "memfd_create"), (socket, "send_fds"), (fcntl, "F_ADD_SEALS"):
        if not hasattr(*needed):
            raise FailedPrecondition(
                f"this system's Python has no {needed[1]}",
                reason="SHARED_MEMORY_NOT_LINUX",
            )
    request = session_pb2.OpenSharedMemoryRequest(session=session, takes_copies=True)
    opened: session_pb2.OpenSharedMemoryResponse = connection.call(
        connection.session.OpenSharedMemory, request
    )
    sockets = list(opened.sockets)
    if is_unix:
        sockets = _beside(re.sub("^//", "", address.removeprefix("unix:")), sockets)
    failures = [] if sockets else [f"it has none beside {address}"]
    for name in sockets:
        try:
            return Way(_connected(name), opened)
        except (OSError, Broken) as error:
            failures.append(f"{name}: {error}")
    raise Unavailable(
        "no socket for shared memory answers, perhaps as the server is in another "
        f"container, network or user namespace ({'; '.join(failures)})",
        reason="SHARED_MEMORY_UNREACHABLE",
    )


def _beside(path: str, told: list[str]) -> list[str]:
    """Returns where the sockets that a server has told of are for whom it is at `path`.

    Its own path may be one of another container, where folders are others. But what it
    has not told of could be anybody's.
    """
    ours = os.path.abspath(f"{path}.shm")
    has_ours = any(
        os.path.realpath(each) == os.path.realpath(ours)
        or os.path.basename(each) == os.path.basename(ours)
        and not os.path.exists(each)
        for each in map(os.path.abspath, (each for each in told if each[0] != "@"))
    )
    return [ours] * has_ours + [each for each in told if each[0] == "@"]


def _connected(name: str) -> socket.socket:
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connected.settimeout(_PATIENCE_SECONDS)
        connected.connect(f"\0{name[1:]}" if name[0] == "@" else name)
    except BaseException:
        connected.close()
        raise
    return connected


def _sealed_file(nbytes: int) -> int:
    """Returns the descriptor of a file in memory that can neither shrink nor grow.

    Raises:
        ResourceExhausted: The system has no room for it.
    """
    try:
        descriptor = os.memfd_create("tensord", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, nbytes)
            # All of its pages are there from now on.
            os.posix_fallocate(descriptor, 0, nbytes)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        raise ResourceExhausted(
            f"no memory of {nbytes} bytes that can be shared: {error}",
            reason="SHARED_MEMORY_EXHAUSTED",
        ) from None
    return descriptor
