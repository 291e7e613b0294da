"""A tensor that lives on the server."""

from __future__ import annotations

import contextlib
import importlib
import time
import uuid
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord import _stages as stages
from tensord._arguments import (
    check_timeout,
    check_type,
    factor_value,
    remaining_seconds,
)
from tensord._arithmetic import Arithmetic
from tensord._array_functions import ArrayFunctions
from tensord._arrays import (
    DLPACK_CPU,
    array_of,
    assigned_array,
    flat_bytes,
    packed_layout,
)
from tensord._blocking_link import BlockingHandle, BlockingLink
from tensord._array_session import DOWNLOADS
from tensord._assignment import mask_of, overwrite_at, overwrite_where
from tensord._conversions import apart_from, converted, refuse_lists
from tensord._indexing import takes_everything
from tensord._taking import indexed
from tensord._tensor_handle import Factor, TensorLike, TensorSession, state_of
from tensord.errors import Aborted, FailedPrecondition, InvalidArgument
from tensord.transforms import Stage, stage_message
from tensord.v1 import compute_pb2, tensor_pb2, view_pb2

if TYPE_CHECKING:
    from typing_extensions import Self


class RemoteTensor(Arithmetic, ArrayFunctions, BlockingHandle):
    """A tensor on the server, seen from here.

    It leaves the server with its last reference, unless it was given a name.
    `TensorHandle` says what is known of it here, `Views` how to see it differently,
    `t[1:5]`, `t.T` and so on, `Arithmetic` how to compute with it, `t + 1`, and
    `ArrayFunctions` what NumPy's functions do with it.
    """

    link: BlockingLink

    @property
    def state(self) -> str:
        """State on the server as of now: "empty", "partial", "pending", "ready" or
        "invalid"; asks the server."""
        return state_of(self.link.describe(self.full_name))

    def numpy(self, timeout: float | None = None) -> np.ndarray:
        """Downloads the tensor.

        A view with gaps between its elements or without strides, or of memory that is
        being written elsewhere, is copied on the server first, which takes memory there
        for as long as it lasts.

        Args:
            timeout: Deadline in seconds; None for the default and as long as the
                transfer takes at 8 MiB/s.

        Returns:
            A new array of `shape` and `dtype`, in memory in C order or in the tensor's.

        Raises:
            FailedPrecondition: It has no contents yet (`TENSOR_NOT_READY`).
            NotFound: It was deleted.
            DataLoss: The data arrived damaged several times.
        """
        check_timeout(timeout)
        DOWNLOADS.count()
        return self._downloaded(timeout)

    def tolist(self) -> Any:
        """Downloads the tensor; returns its elements as nested lists."""
        return self.numpy().tolist()

    def _downloaded(self, timeout: float | None) -> np.ndarray:
        known = self.known_contents()
        if known is not None:
            return known
        begun = time.monotonic()
        if self.is_view or self._is_dense():
            shared = self.link.memory.download(
                self.full_name, self._dense_spec(), timeout
            )
            if shared is not None:
                return shared
        if not self.is_view or self._is_dense():
            array, data = self._allocate()
            try:
                self.link.transfers.download(self.full_name, data, timeout)
                return array
            except (Aborted, FailedPrecondition):
                # Perhaps another part of the memory is being written: a copy waits.
                if not self.is_view:
                    raise
        with self._packed_copy(remaining_seconds(timeout, begun)) as packed:
            return packed._downloaded(remaining_seconds(timeout, begun))

    def write(self, array: npt.ArrayLike, timeout: float | None = None) -> None:
        """Overwrites the tensor's contents. `t[...] = array` broadcasts and converts.

        What is written to a view is uploaded beside it and permuted into it.

        Args:
            array: Of `shape` and `dtype`.
            timeout: As for `numpy`.

        Raises:
            InvalidArgument: `array` has another shape or dtype, or the tensor is a view
                with two indices for one element (`OUTPUT_NOT_INJECTIVE`).
            FailedPrecondition: Something else uses the tensor (`TENSOR_BUSY`), or it is
                a view of a part of what has no contents yet (`TENSOR_NOT_READY`).
        """
        source = array_of(array)
        if source.shape != self.shape or dtypes.wire_dtype(source.dtype) != self.dtype:
            raise InvalidArgument(
                f"got an array of {source.shape} {source.dtype} for tensor "
                f"{self.name}, wanted {self.shape} {self.dtype}",
                reason="TENSOR_MISMATCH",
            )
        if self.is_view:
            modes = range(self.ndim)
            self.session.permute(source, modes, modes, out=self, timeout=timeout)
            return
        if self._is_packed():
            data = flat_bytes(source)
        else:
            target, data = self._allocate()
            target[...] = source
        empty = self.state == "empty"
        self.link.transfers.upload(self.full_name, data, timeout, empty=empty)

    def copy(
        self,
        name: str | None = None,
        timeout: float | None = None,
        session: TensorSession[RemoteTensor, BlockingLink] | None = None,
    ) -> RemoteTensor:
        """Copies the tensor on the server; the copy of a view is no view.

        Args:
            name: Name of the copy; None lets the server choose.
            timeout: Deadline in seconds; None for the default.
            session: Session that gets the copy, perhaps on another device of
                the same server; None for the tensor's own.

        Raises:
            AlreadyExists: The name is taken.
            ResourceExhausted: There is no memory for it.
        """
        if session is not None:
            check_type("session", session, type(self.session), "a Session")
        within = session is None or session is self.session
        check_timeout(timeout)
        if self.is_view and not within:
            begun = time.monotonic()
            with self._packed_copy(timeout) as packed:
                return packed.copy(name, remaining_seconds(timeout, begun), session)
        request = tensor_pb2.CopyTensorRequest(
            source=self.full_name, tensor_id=name or ""
        )
        if session is None or within:
            session = self.session
            request.layout.CopyFrom(packed_layout(self.shape))
        else:  # as it is
            request.session = session.name
        copy = session.link.connection.tensor.CopyTensor
        response = session.link.call_allocating(copy, request, timeout)
        kind = type(self) if within else RemoteTensor
        return kind(session, response.tensor, owned=name is None)

    def share(self, *tenants: str, timeout: float | None = None) -> str:
        """Lets tenants read the tensor; those that may already go on doing so.

        While it is shared nobody writes it. What others open is gone when it is
        unshared, deleted, or its session ends; what they had asked for is still done.

        >>> share = tensor.share("biology")
        >>> theirs = session_of_biology.open_shared(share)

        Args:
            *tenants: Names of tenants, one or more.
            timeout: Deadline in seconds; None for the default.

        Returns:
            The name by which they open it, `shares/{share}`.

        Raises:
            FailedPrecondition: It has no contents, or is being written
                (`TENSOR_NOT_READY`).
            InvalidArgument: It is a view (`TENSOR_IS_VIEW`), or a name is malformed.
        """
        request = tensor_pb2.ShareTensorRequest(tensor=self.full_name, tenants=tenants)
        method = self.link.connection.tensor.ShareTensor
        return str(self.link.call(method, request, timeout).share)

    def unshare(self, *tenants: str, timeout: float | None = None) -> tuple[str, ...]:
        """Tenants may no longer read the tensor; none named: nobody may.

        Returns:
            Who may still.
        """
        request = tensor_pb2.UnshareTensorRequest(
            tensor=self.full_name, tenants=tenants
        )
        method = self.link.connection.tensor.UnshareTensor
        return tuple(self.link.call(method, request, timeout).tenants)

    def __getitem__(self, key: Any) -> Self:
        """Makes a view of a part, as `Views.__getitem__` says, or takes elements.

        One item of `key` may be ints, as an array, a sequence or a tensor: of these the
        elements are copied, `t[:, indices]`, and their modes stand where it stands.

        Raises:
            InvalidIndex, InvalidArgument: As `Views.__getitem__` says. Of indices in a
                tensor the server says it, when the result is used.
        """
        result: Self | None = indexed(self, key)
        return super().__getitem__(key) if result is None else result

    def view(
        self,
        stages: Sequence[Stage] = (),
        padding: Factor | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """As `Views.view` says."""
        check_timeout(timeout)
        check_type("stages", stages, Sequence, "a list of stages")
        check_type("name", name, (str, type(None)), "a string or None")
        request = view_pb2.CreateViewRequest(
            tensor=self.full_name,
            tensor_id=name or "",
            stages=[stage_message(stage) for stage in stages],
        )
        if padding is not None:
            value = factor_value("padding", padding)
            request.padding.CopyFrom(
                compute_pb2.Scalar(real=value.real, imaginary=value.imag)
            )
        method = self.link.connection.view.CreateView
        response = self.link.call(method, request, timeout)
        return type(self)(self.session, response.tensor, owned=not name)

    def __setitem__(self, key: Any, value: TensorLike) -> None:
        """Overwrites a part: `t[1:5] = array`, `t[..., 0] = another_tensor`.

        Args:
            key: As for `__getitem__`, with ints as an array or a sequence along one mode;
                or bools, as an array or a tensor with its first modes, that say which
                elements become `value`, a single one then.
            value: A number, an array or a tensor of the session. It is broadcast, and
                converted to the dtype: arrays here, tensors on the server, as `astype`.

        Raises:
            InvalidArgument: It does not broadcast to the part.
            InvalidIndex: As for `__getitem__`.
            FailedPrecondition: The tensor has no contents in the rest, or `value` has
                none (`TENSOR_NOT_READY`).
        """
        refuse_lists(value)
        mask = mask_of(key)
        if mask is not None:
            overwrite_where(self, mask, value)
            return
        if overwrite_at(self, key, value):
            return
        part = self if takes_everything(key, self.ndim) else super().__getitem__(key)
        if not isinstance(value, RemoteTensor):
            value = assigned_array(value, self.dtype)
        elif value.coincides(part):
            return  # Python ends `t[1:] += 1` so.
        elif value.dtype.kind == "c" and self.dtype.kind != "c":
            value = converted(value, self.dtype)
        kept = stages.assigned_axes(value.shape, part.shape)
        modes = [axis - len(value.shape) + part.ndim for axis in kept]
        if len(kept) < len(value.shape):
            value = value.squeeze(
                tuple(i for i in range(len(value.shape)) if i not in kept)
            )
        value = apart_from(part, value)
        try:
            self.session.permute(value, modes, range(part.ndim), out=part)
            return
        except InvalidArgument as error:
            if error.reason != "OUTPUT_OVERLAPS_INPUT":
                raise
        assert isinstance(value, RemoteTensor)
        self.session.permute(value.copy(), modes, range(part.ndim), out=part)

    def item(self) -> Any:
        """Downloads the only element.

        Raises:
            InvalidArgument: There is not exactly one.
        """
        self._check_single()
        return self.numpy().item()

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor on the server becomes an array by copying only")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Returns `tensord.array`, which has most of the array API's functions.

        Raises:
            ValueError: A version is wanted: no version is there as a whole.
        """
        if api_version is not None:
            raise ValueError(
                f"api_version is {api_version!r}, wanted None: `tensord.array` has most "
                "functions of the array API, but not all of any version"
            )
        # By name: it stands above this module.
        return importlib.import_module("tensord.array")

    def to_device(self, device: str, /, *, stream: Any = None) -> RemoteTensor:
        """Returns the tensor itself: a session has one device."""
        if device != self.device or stream is not None:
            raise ValueError(
                f"device is {device!r}, wanted {self.device!r}, that of the session, and "
                "no stream; `copy(session=...)` copies to another"
            )
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLPACK_CPU, 0

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Downloads the tensor and hands it over, in this computer's memory.

        >>> torch.from_dlpack(t)

        Raises:
            BufferError: A copy is not wanted (`copy=False`), or another device is, or
                NumPy does not hand over the dtype, e.g. bfloat16.
        """
        if copy is False:
            raise BufferError("a tensor on the server is handed over by copying only")
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(
                f"dl_device is {dl_device}, wanted {self.__dlpack_device__()}, the CPU"
            )
        array = self.numpy()
        try:
            return array.__dlpack__(max_version=max_version)
        except TypeError:  # NumPy before 2.1.
            return array.__dlpack__()

    @contextlib.contextmanager
    def _packed_copy(
        self, timeout: float | None
    ) -> Generator[RemoteTensor, None, None]:
        """A copy that leaves the server afterwards."""
        # Named here, so that it can be deleted also when the response is lost.
        name = f"copy-{uuid.uuid4().hex}"
        try:
            yield self.copy(name, timeout)
        finally:
            self.link.keeper.discard(f"{self.session.name}/tensors/{name}")
