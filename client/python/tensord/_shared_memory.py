"""Memory that this program and a server on the same host both see."""

from __future__ import annotations

import collections
import contextlib
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._handle import Handle
from tensord._regions import Broken, Region, Way, page_multiple, way_to
from tensord._specs import TensorSpec
from tensord.errors import (
    Error,
    FailedPrecondition,
    InvalidArgument,
    ResourceExhausted,
    Unavailable,
)
from tensord.v1 import tensor_pb2

if TYPE_CHECKING:
    from tensord._connection import Connection
    from tensord._keeper import Keeper

LEAST_BYTES = 64 << 10
"""Smaller arrays are sent by gRPC, which takes no more calls for them."""
_ALIGNMENT = 256
_ADOPTED_PER_ARRAY = 8
_KEPT_BYTES = 512 << 20
_KEPT_SECONDS = 2.0
_REFUSED_SECONDS = 1.0
# How long the server's word of what it has released may take.
_WORD_SECONDS = 0.1

TRANSPORTS = ("auto", "shm", "grpc")


def transport_of(transport: str | None) -> str:
    """Returns a transport; that of the environment for None.

    Raises:
        InvalidArgument: It is none (`TRANSPORT_UNKNOWN`).
    """
    if transport is None:
        transport = os.environ.get("TENSORD_TRANSPORT") or "auto"
    if transport not in TRANSPORTS:
        raise InvalidArgument(
            f"transport is {transport!r}, wanted one of {', '.join(TRANSPORTS)}",
            reason="TRANSPORT_UNKNOWN",
        )
    return transport


class Lease:
    """Owns a region as long as an array in it lives; what arrays have as their base.

    Attributes:
        memory: Where the region belongs.
        region: What it owns.
        adopted: Tensors that are views of it, by what they are like.
    """

    def __init__(self, memory: SharedMemory, region: Region, nbytes: int) -> None:
        self.memory = memory
        self.region = region
        self.adopted: collections.OrderedDict[Any, Handle] = collections.OrderedDict()
        self.__array_interface__ = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (region.address, False),
        }

    def __del__(self) -> None:
        # In the middle of anything, as garbage collection is: takes no lock.
        self.region.idle_since = time.monotonic()
        self.region.leased = False


def output_of(array: np.ndarray, timeout: float | None) -> Any:
    """Returns the tensor that an array is, to be written; None: it is no such array."""
    lease = lease_of(array)
    adopted = None
    if lease is not None and array.flags.writeable:
        adopted = lease.memory.adopted(array, timeout)
    if lease is None or adopted is None:
        return None
    session = lease.memory.session() if lease.memory.session is not None else None
    if session is None:
        return None
    return session.tensor_in_array(array, *adopted)


def lease_of(array: Any) -> Lease | None:
    """Returns what owns an array's memory, if that is shared with a server."""
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, Lease) else None


class SharedMemory:
    """The memory that a session shares with its server.

    Regions are reused, as new pages cost more than a copy. Safe for use by many
    threads; not by a process that was forked meanwhile.

    Attributes:
        session: Whose tensors are made of arrays that are outputs; it refers to this.
        call, begin: Make a unary call, as those of `Connection`.
    """

    def __init__(
        self, connection: Connection, session: str, keeper: Keeper, transport: str
    ) -> None:
        """
        Args:
            connection: To the server.
            session: The session's name on the wire.
            keeper: Deletes tensors in the memory.
            transport: "auto", "shm" or "grpc".
        """
        self.session: weakref.ref[Any] | None = None
        self.call: Any = connection.call
        self.begin: Any = connection.begin
        self._connection = connection
        self._session = session
        self._keeper = keeper
        self._lock = threading.RLock()
        self._regions: list[Region] = []
        self._refused: tuple[ResourceExhausted, int, float] | None = None
        self._way: Way | None = None
        self._failure: Error | None = None
        self._process = os.getpid()
        if transport == "grpc":
            self._failure = FailedPrecondition(
                'the session was opened with transport="grpc"',
                reason="SHARED_MEMORY_NOT_WANTED",
            )
        keeper.on_close = self.close
        _memories.add(self)

    def is_used(self) -> bool:
        """Whether transfers go this way, which is looked for at the first question."""
        return self._opened() is not None

    def check(self) -> None:
        """Refuses to go on without.

        Raises:
            FailedPrecondition: It cannot be used; says which precondition fails.
        """
        if self._opened() is None:
            assert self._failure is not None, "there is no way without a reason"
            raise FailedPrecondition(
                f"no shared memory with {self._connection.address}: {self._failure}",
                reason=self._failure.reason or "SHARED_MEMORY_UNAVAILABLE",
            )

    def takes(self, nbytes: int) -> bool:
        """Whether so many bytes go this way."""
        return nbytes >= LEAST_BYTES and self.is_used()

    def empty(self, spec: TensorSpec) -> np.ndarray:
        """Returns an array in it.

        Raises:
            FailedPrecondition: It cannot be used.
            ResourceExhausted: It does not fit the quota.
        """
        self.check()
        if spec.span_bytes == 0:
            return np.empty(spec.shape, spec.dtype)
        array = self._array(self._take(spec.span_bytes), spec)
        return array

    def upload(
        self,
        array: np.ndarray,
        spec: TensorSpec,
        name: str | None,
        timeout: float | None,
    ) -> tensor_pb2.Tensor | None:
        """Makes a tensor with the contents of an array; None: it does not go this way."""
        span_bytes = spec.span_bytes
        if spec.dtype == np.bool_ or not self.takes(span_bytes):
            return None
        try:
            region = self._take(span_bytes)
        except Error:
            return None

        def fill() -> None:
            target: np.ndarray = np.ndarray(
                spec.shape, spec.dtype, region.memory, strides=spec.strides
            )
            if spec.strides is not None:
                np.frombuffer(region.memory, np.uint8, span_bytes)[:] = 0
            np.copyto(target, array, casting="unsafe")

        way = self._way
        # A name is known to others, who may read it as soon as it is there.
        fills_first = bool(name) or way is None or way.copies
        try:
            if fills_first:
                fill()
            request = self._adoption(region, spec.dtype, spec.layout_message(), name)
            return self._adopt(region, request, timeout, None if fills_first else fill)
        except ResourceExhausted:
            return None  # By gRPC, which first lets go what nobody holds.
        finally:
            region.leased = False

    def download(
        self, full_name: str, spec: TensorSpec, timeout: float | None
    ) -> np.ndarray | None:
        """Returns an array, in it, of a tensor's elements; None as for `upload`."""
        if not self.takes(spec.span_bytes):
            return None
        try:
            region = self._take(spec.span_bytes)
        except Error:
            return None
        request = tensor_pb2.StoreTensorRequest(
            tensor=full_name, layout=spec.layout_message(), region=region.number
        )
        region.adoptions += 1
        try:
            self.call(self._connection.tensor.StoreTensor, request, timeout)
        except BaseException as error:
            self._drop(region)
            region.leased = False
            is_way = isinstance(error, Error) and error.reason.startswith("SHARED_MEM")
            if is_way or isinstance(error, ResourceExhausted):
                return None
            raise
        return self._array(region, spec)

    def handle_of(
        self, array: np.ndarray, timeout: float | None = None
    ) -> Handle | None:
        """Returns the tensor that an array in it is; None: it is no such array."""
        adopted = self.adopted(array, timeout)
        return None if adopted is None else adopted[0]

    def adopted(
        self, array: np.ndarray, timeout: float | None = None
    ) -> tuple[Handle, tensor_pb2.Tensor] | None:
        """The same, with what the server says about it.

        It is remembered with the array's memory. What is written to the array later is
        seen by operations, which read it when they run.
        """
        lease = lease_of(array)
        if lease is None or lease.memory is not self or array.size == 0:
            return None
        placed = _placed(array, lease.region)
        if placed is None:
            return None
        self._check_process()
        key, layout, offset = placed
        with self._lock:
            known = lease.adopted.get(key)
            if known is None:
                dtype = dtypes.wire_dtype(array.dtype)
                request = self._adoption(lease.region, dtype, layout, offset=offset)
                request.in_place = True
                message = self._adopt(lease.region, request, timeout)
                if message is None:
                    return None
                known = Adopted(message, self._keeper, lease)
                lease.adopted[key] = known
                if len(lease.adopted) > _ADOPTED_PER_ARRAY:
                    lease.adopted.popitem(last=False)
            assert isinstance(known, Adopted)
            return known, known.message

    def trim(self) -> bool:
        """Gives regions back that nothing uses; returns whether there were any.

        If there are none it waits a moment: the server says on another way than its
        responses that a tensor has left.
        """
        end = time.monotonic() + _WORD_SECONDS
        while not self._trim(0):
            if not self._may_become_idle() or time.monotonic() >= end:
                return False
            time.sleep(_WORD_SECONDS / 50)
        return True

    def trim_idle(self) -> None:
        """The same of those that nothing has used for a while."""
        self._trim(time.monotonic() - _KEPT_SECONDS)

    def close(self) -> None:
        """Ends it; arrays keep their memory."""
        with self._lock:
            if self._way is not None:
                self._way.close()
            self._way = None
            self._failure = self._failure or FailedPrecondition(
                "the session is closed", reason="SESSION_CLOSED"
            )
            self._regions.clear()

    def leave_to_parent(self) -> None:
        """Of a process that was forked: the connection is the parent's."""
        if self._way is not None:
            self._way.close()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise FailedPrecondition(
                "the session was opened before this process was forked, and is its "
                "parent's: open another one here",
                reason="SHARED_MEMORY_FORKED",
            )

    def _opened(self) -> Way | None:
        self._check_process()
        with self._lock:
            if self._way is None and self._failure is None:
                try:
                    self._way = way_to(self._connection, self._session)
                    self._keeper.tick(self.trim_idle)
                except Error as error:
                    self._failure = error
            return self._way

    def _lose(self, error: Exception) -> None:
        """Goes on without."""
        if self._way is not None:
            self._way.close()
        self._way = None
        self._failure = Unavailable(
            f"the connection has ended: {error}", reason="SHARED_MEMORY_LOST"
        )
        self._regions.clear()

    def _take(self, nbytes: int) -> Region:
        """Returns a region that is leased from now on.

        Raises:
            Error: There is none.
        """
        with self._lock:
            way = self._way or self._opened()
            if way is None:
                self.check()
            assert way is not None
            try:
                while self._may_become_idle() and way.hear_one(self._regions):
                    pass
                region = self._idle_region(nbytes)
                if region is None:
                    self._keep_within(_KEPT_BYTES)
                    region = self._new_region(way, nbytes)
            except Broken as error:
                self._lose(error)
                self.check()
                raise
            region.leased = True
            return region

    def _new_region(self, way: Way, nbytes: int) -> Region:
        """Has the server take one; what it refuses once it is not asked soon again.

        Raises:
            Error, Broken: As `Way.add`.
        """
        refused = self._refused
        if refused is not None:
            error, least, until = refused
            if nbytes >= least and time.monotonic() < until:
                raise error
        try:
            try:
                region = way.add(_rounded(nbytes), self._regions)
            except ResourceExhausted:
                if not any(each.is_idle() for each in self._regions):
                    raise
                self._keep_within(0)
                region = way.add(_rounded(nbytes), self._regions)
        except ResourceExhausted as error:
            self._refused = error, nbytes, time.monotonic() + _REFUSED_SECONDS
            raise
        self._regions.append(region)
        return region

    def _idle_region(self, nbytes: int) -> Region | None:
        """Returns the smallest that fits; of several, the last used: caches have it."""
        most = 2 * max(nbytes, LEAST_BYTES)
        fits = [
            region
            for region in self._regions
            if nbytes <= region.nbytes <= most and region.is_idle()
        ]
        return min(fits, key=lambda each: (each.nbytes, -each.idle_since), default=None)

    def _may_become_idle(self) -> bool:
        """Whether the server may yet say that it needs a region no more."""
        return any(
            not region.leased and region.released != region.adoptions
            for region in [*self._regions]
        )

    def _keep_within(self, nbytes: int) -> None:
        """Gives those back that have waited longest."""
        idle = [region for region in self._regions if region.is_idle()]
        for region in sorted(idle, key=lambda region: -region.idle_since):
            nbytes -= region.nbytes
            if nbytes < 0:
                self._drop(region)

    def _trim(self, before: float) -> bool:
        if os.getpid() != self._process:
            return False
        with self._lock:
            if self._way is None:
                return False
            try:
                self._way.hear(self._regions)
            except Broken as error:
                self._lose(error)
                return False
            idle = [
                region
                for region in self._regions
                if region.is_idle() and (before == 0 or region.idle_since < before)
            ]
            for region in idle:
                self._drop(region)
            return bool(idle)

    def _drop(self, region: Region) -> None:
        with self._lock:
            if self._way is None or region not in self._regions:
                return
            self._regions.remove(region)
            self._refused = None  # There may be room now.
            try:
                self._way.drop(region, self._regions)
            except Broken as error:
                self._lose(error)

    def _adoption(
        self,
        region: Region,
        dtype: np.dtype,
        layout: tensor_pb2.Layout,
        name: str | None = None,
        offset: int = 0,
    ) -> tensor_pb2.AdoptTensorRequest:
        return tensor_pb2.AdoptTensorRequest(
            session=self._session,
            tensor_id=name or "",
            element_type=dtypes.element_type_of(dtype),
            layout=layout,
            region=region.number,
            offset_bytes=offset,
        )

    def _adopt(
        self,
        region: Region,
        request: tensor_pb2.AdoptTensorRequest,
        timeout: float | None,
        fill: Callable[[], None] | None = None,
    ) -> tensor_pb2.Tensor | None:
        """Makes a tensor in a region; None: it does not go this way.

        Args:
            region: Where.
            request: For it.
            timeout: Deadline in seconds; None for the default.
            fill: Writes its contents while the server makes it.
        """
        region.adoptions += 1
        try:
            wait = self.begin(self._connection.tensor.AdoptTensor, request, timeout)
            try:
                if fill is not None:
                    fill()
            except BaseException:
                with contextlib.suppress(Error):
                    self._keeper.discard(wait().tensor.name)
                raise
            tensor: tensor_pb2.Tensor = wait().tensor
            return tensor
        except BaseException as error:
            # Nobody knows whether the server has counted it.
            self._drop(region)
            if isinstance(error, Error) and error.reason.startswith("SHARED_MEMORY_"):
                return None
            raise

    def _array(self, region: Region, spec: TensorSpec) -> np.ndarray:
        flat = np.asarray(Lease(self, region, spec.span_bytes))
        array: np.ndarray = np.ndarray(
            spec.shape, spec.dtype, flat, strides=spec.strides
        )
        return array


class Adopted(Handle):
    """A tensor in a region; while it is needed here, the array's memory is, too."""

    def __init__(
        self, message: tensor_pb2.Tensor, keeper: Keeper, lease: Lease
    ) -> None:
        super().__init__(message.name, keeper)
        self.message = message
        self.region = lease.region


def _placed(
    array: np.ndarray, region: Region
) -> tuple[Any, tensor_pb2.Layout, int] | None:
    """Returns what tells an array in a region apart, its layout and offset there.

    None: no tensor is like that.
    """
    size = array.itemsize
    try:
        if dtypes.wire_dtype(array.dtype) != array.dtype:
            return None
    except InvalidArgument:
        return None
    begin = array.__array_interface__["data"][0] - region.address
    if begin < 0 or begin % size or begin >= region.nbytes:
        return None
    if array.dtype == np.bool_:
        return None  # The server reads none where other bytes may be written.
    strides = []
    for extent, stride in zip(array.shape, array.strides):
        if extent == 1:
            stride = size
        if stride <= 0 or stride % size:
            return None
        strides.append(stride // size)
    rest = begin % _ALIGNMENT
    layout = tensor_pb2.Layout(
        extents=array.shape, strides=strides, offset=rest // size
    )
    key = (begin, array.dtype.str, array.shape, tuple(strides))
    return key, layout, begin - rest


def _rounded(nbytes: int) -> int:
    """Returns a size of which there are few: at most an eighth more."""
    step = 1 << max(12, math.ceil(math.log2(max(nbytes, 1))) - 3)
    return page_multiple((nbytes + step - 1) // step * step)


_memories: weakref.WeakSet[SharedMemory] = weakref.WeakSet()


def _leave_all_to_parent() -> None:
    for memory in list(_memories):
        memory.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all_to_parent)
