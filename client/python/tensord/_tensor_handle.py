"""A tensor on the server, by its name and by what it is like."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._arrays import flat_bytes
from tensord.v1 import tensor_pb2

if TYPE_CHECKING:
    from tensord._program_reports import ProgramReport
    from tensord.reports import ExecutionReport


class TensorHandle:
    """What is known here of a tensor on the server; an operand of every operation.

    A tensor that the server named leaves the server with the last reference to this
    object; one with a name of its own stays until it is deleted or its session ends.

    Attributes:
        session: The session that it belongs to.
        name: Its name within the session, as `Session.tensor` takes it.
        full_name: Its name on the wire, `sessions/{session}/tensors/{tensor}`.
        shape: Extents.
        dtype: NumPy's dtype.
        device: Where its memory is, e.g. `cpu:0`.
        strides: Bytes from one element to the next along each mode, 0 where a view
            repeats, negative where it is backwards; None for a view without strides.
        is_view: Whether it sees the memory of another tensor.
        viewed: The name that tensor has, or had; None unless this is a view.
        is_gathered: Whether operations that read it gather it first: it has no strides,
            or negative ones.
        is_writable: Whether it can be the `out` of an operation; not so a view that
            has two indices for one element, for all that the server can tell.
        may_pad: Whether some of its indices may be padding.
        report: What the operation or program that wrote it last did; None for other
            tensors.
    """

    session: Any

    def __init__(
        self, session: Any, message: tensor_pb2.Tensor, *, owned: bool
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
        self.report: ExecutionReport | ProgramReport | None = None
        self.is_view = message.HasField("view")
        self.viewed: str | None = message.view.viewed.rpartition("/")[2] or None
        self.is_gathered: bool = message.view.is_gathered
        self.is_writable: bool = not self.is_view or message.view.is_writable
        self.may_pad: bool = message.view.may_pad
        strides = message.layout.strides
        # Without strides of its own, the layout is that of the copy by which it is read.
        self.strides: tuple[int, ...] | None = None
        if not message.HasField("view") or message.view.has_strides:
            self.strides = tuple(stride * self.dtype.itemsize for stride in strides)
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

    def __repr__(self) -> str:
        viewed = f", viewed={self.viewed!r}" if self.is_view else ""
        return (
            f"{type(self).__name__}({self.name!r}, shape={self.shape}, dtype={self.dtype}, "
            f"device={self.device!r}{viewed})"
        )

    def _discard(self) -> None:
        """Deletes the tensor soon; never waits and never fails."""
        if self._finalizer is not None:
            self._finalizer()
        else:
            self.session._keeper.discard(self.full_name)

    def _is_packed(self) -> bool:
        """Whether elements follow each other in C order."""
        return self.strides is not None and self._follow_each_other(
            zip(reversed(self.strides), reversed(self.shape))
        )

    def _is_dense(self) -> bool:
        """Whether elements follow each other in some order of the modes."""
        return self.strides is not None and self._follow_each_other(
            sorted(zip(self.strides, self.shape))
        )

    def _follow_each_other(self, modes: Iterable[tuple[int, int]]) -> bool:
        """Whether each of `modes`, (stride, extent), begins where those before end."""
        wanted = self.dtype.itemsize
        for stride, extent in modes:
            if extent != 1 and stride != wanted:
                return self.size == 0
            wanted *= extent
        return True

    def _allocate(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns an array for the elements and, over the same memory, its bytes."""
        if self._is_packed():
            array = np.empty(self.shape, self.dtype)
            return array, flat_bytes(array)
        data = np.zeros(self._span_bytes, np.uint8)
        return np.ndarray(self.shape, self.dtype, data, strides=self.strides), data
