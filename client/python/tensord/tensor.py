"""A tensor that lives on the server."""

from __future__ import annotations

import types
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensord import dtypes
from tensord.arguments import check_timeout, check_type
from tensord.errors import InvalidArgument
from tensord.reports import ExecutionReport
from tensord.v1 import tensor_pb2

if TYPE_CHECKING:
    from tensord.session import Session


class RemoteTensor:
    """A tensor on the server, seen from here.

    A tensor that the server named leaves the server with the last reference to this
    object; one with a name of its own stays until it is deleted or its session ends.

    Attributes:
        session: The session that it belongs to.
        name: Its name within the session, as `Session.tensor` takes it.
        full_name: Its name on the wire, `sessions/{session}/tensors/{tensor}`.
        shape: Extents.
        dtype: NumPy's dtype.
        device: Where its memory is, e.g. `cpu:0`.
        report: What the operation that wrote it last did; None for other tensors.
    """

    def __init__(
        self, session: Session, message: tensor_pb2.Tensor, *, owned: bool
    ) -> None:
        """
        Args:
            session: The session that it belongs to.
            message: What the server says about it.
            owned: Whether it leaves the server with this object.
        """
        self.session = session
        self.full_name: str = message.name
        self.name: str = message.name.rpartition("/")[2]
        self.shape: tuple[int, ...] = tuple(message.layout.extents)
        self.dtype: np.dtype = dtypes.dtype_of(message.element_type)
        self.device: str = message.device
        self.report: ExecutionReport | None = None
        self._strides = tuple(s * self.dtype.itemsize for s in message.layout.strides)
        self._span_bytes: int = message.span_bytes
        self._finalizer = None
        if owned:
            discard = session._keeper.discard
            self._finalizer = weakref.finalize(self, discard, self.full_name)
            self._finalizer.atexit = False

    @property
    def ndim(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def state(self) -> str:
        """State on the server as of now: "empty", "partial", "pending", "ready" or
        "invalid"; asks the server."""
        message = self.session._describe_tensor(self.full_name)
        name = tensor_pb2.TensorState.Name(message.state)
        return name.removeprefix("TENSOR_STATE_").lower()

    def numpy(self, timeout: float | None = None) -> np.ndarray:
        """Downloads the tensor.

        Args:
            timeout: Deadline in seconds; None for the default and as long as the
                transfer takes at 8 MiB/s.

        Returns:
            A new array of `shape` and `dtype`.

        Raises:
            FailedPrecondition: It has no contents yet (`TENSOR_NOT_READY`).
            NotFound: It was deleted.
            DataLoss: The data arrived damaged several times.
        """
        array, data = self._allocate()
        self.session._transfers.download(self.full_name, data, timeout)
        return array

    def write(self, array: npt.ArrayLike, timeout: float | None = None) -> None:
        """Overwrites the tensor's contents.

        Args:
            array: Of `shape` and `dtype`.
            timeout: As for `numpy`.

        Raises:
            InvalidArgument: `array` has another shape or dtype.
            FailedPrecondition: Something else uses the tensor (`TENSOR_BUSY`).
        """
        source = np.asarray(array)
        if source.shape != self.shape or dtypes.wire_dtype(source.dtype) != self.dtype:
            raise InvalidArgument(
                f"got an array of {source.shape} {source.dtype} for tensor "
                f"{self.name}, wanted {self.shape} {self.dtype}",
                reason="TENSOR_MISMATCH",
            )
        if self._is_packed():
            data = flat_bytes(source)
        else:
            target, data = self._allocate()
            target[...] = source
        empty = self.state == "empty"
        self.session._transfers.upload(self.full_name, data, timeout, empty=empty)

    def copy(
        self,
        name: str | None = None,
        timeout: float | None = None,
        session: Session | None = None,
    ) -> RemoteTensor:
        """Copies the tensor on the server.

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
        request = tensor_pb2.CopyTensorRequest(
            source=self.full_name, tensor_id=name or ""
        )
        if session is None or session is self.session:
            session = self.session
            request.layout.CopyFrom(packed_layout(self.shape))
        else:  # as it is
            request.session = session.name
        response = session._call_allocating(
            session._connection.tensor.CopyTensor, request, timeout
        )
        return RemoteTensor(session, response.tensor, owned=name is None)

    def delete(self, timeout: float | None = None) -> None:
        """Deletes the tensor; operations that use it still end.

        Raises:
            NotFound: It was deleted before.
        """
        check_timeout(timeout)
        if self._finalizer is not None:
            self._finalizer.detach()
        request = tensor_pb2.DeleteTensorRequest(tensor=self.full_name)
        connection = self.session._connection
        connection.call(connection.tensor.DeleteTensor, request, timeout)

    def item(self) -> Any:
        """Downloads the only element.

        Raises:
            InvalidArgument: There is not exactly one.
        """
        if self.size != 1:
            raise InvalidArgument(
                f"tensor {self.name} of shape {self.shape} has {self.size} elements, "
                "wanted one",
                reason="TENSOR_NOT_SCALAR",
            )
        return self.numpy().item()

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor on the server becomes an array by copying only")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __enter__(self) -> RemoteTensor:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self.delete()

    def __repr__(self) -> str:
        return (
            f"RemoteTensor({self.name!r}, shape={self.shape}, dtype={self.dtype}, "
            f"device={self.device!r})"
        )

    def _discard(self) -> None:
        """Deletes the tensor soon; never waits and never fails."""
        if self._finalizer is not None:
            self._finalizer()
        else:
            self.session._keeper.discard(self.full_name)

    def _is_packed(self) -> bool:
        stride = self.dtype.itemsize
        for extent, actual in zip(reversed(self.shape), reversed(self._strides)):
            if extent != 1 and actual != stride:
                return self.size == 0
            stride *= extent
        return True

    def _allocate(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns an array for the elements and, over the same memory, its bytes."""
        if self._is_packed():
            array = np.empty(self.shape, self.dtype)
            return array, flat_bytes(array)
        data = np.zeros(self._span_bytes, np.uint8)
        return np.ndarray(self.shape, self.dtype, data, strides=self._strides), data


def flat_bytes(array: np.ndarray) -> np.ndarray:
    """Returns the elements as they travel: in C order, little-endian.

    Args:
        array: Any shape and strides; copied unless that is how it lies in memory.

    Returns:
        uint8, shape (bytes,).
    """
    packed = np.asarray(array, dtype=dtypes.wire_dtype(array.dtype), order="C")
    return packed.reshape(-1).view(np.uint8)


def packed_layout(shape: tuple[int, ...]) -> tensor_pb2.Layout:
    """Returns the layout of an array in C order."""
    return tensor_pb2.Layout(extents=shape, order=tensor_pb2.ORDER_LAST_MODE_FASTEST)
