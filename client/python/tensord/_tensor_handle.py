"""A tensor on the server, by its name and by what it is like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arrays import flat_bytes
from tensord._handle import SessionHandle
from tensord._messages import from_message
from tensord._program_reports import ProgramReport
from tensord._subscripts import Modes
from tensord.errors import InvalidArgument
from tensord.reports import ExecutionReport
from tensord.v1 import compute_pb2, tensor_pb2

if TYPE_CHECKING:
    from typing_extensions import Self

Link = TypeVar("Link", covariant=True)
Outcome = TypeVar("Outcome", covariant=True)
Factor = Union[int, float, complex]


class TensorSession(Protocol[Outcome, Link]):
    """What a tensor asks of its session; `Outcome` is what operations return.

    Attributes:
        name: Its name on the wire.
        link: What ties it to the server.
    """

    @property
    def name(self) -> str: ...

    @property
    def link(self) -> Link: ...

    def upload(self, array: npt.ArrayLike) -> Outcome: ...

    def einsum(
        self,
        subscripts: Any,
        *operands: Any,
        dtype: npt.DTypeLike | None = None,
        casting: str | None = None,
    ) -> Outcome: ...

    def permute(
        self,
        a: TensorLike | None,
        modes_a: Modes,
        modes_d: Modes,
        *,
        alpha: Factor = 1,
        op_a: str | None = None,
        out: TensorHandle | None = None,
        timeout: float | None = None,
    ) -> Outcome: ...

    def elementwise(
        self,
        a: TensorLike | None,
        modes_a: Modes | None,
        c: TensorLike | None,
        modes_c: Modes | None,
        modes_d: Modes,
        *,
        op: str = "add",
        gamma: Factor = 1,
        op_c: str | None = None,
        out: TensorHandle | None = None,
    ) -> Outcome: ...

    def reduce(
        self,
        a: TensorLike | None,
        modes_a: Modes,
        modes_d: Modes,
        *,
        op: str = "add",
        alpha: Factor = 1,
        out: TensorHandle | None = None,
    ) -> Outcome: ...


class TensorHandle(SessionHandle):
    """What is known here of a tensor on the server; an operand of every operation.

    A tensor that the server named is deleted after the last reference to this object.
    One that the user named stays until it is deleted or its session ends.

    Attributes:
        session: The session that it belongs to.
        link: What ties that session to the server.
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

    def __init__(
        self, session: Any, message: tensor_pb2.Tensor, *, owned: bool
    ) -> None:
        """As `SessionHandle` says."""
        super().__init__(session, message, owned=owned)
        self.shape: tuple[int, ...] = tuple(message.layout.extents)
        self.dtype: np.dtype = dtypes.dtype_of(message.element_type)
        self.report: ExecutionReport | ProgramReport | None = None
        self.is_view = message.HasField("view")
        self.viewed: str | None = message.view.viewed.rpartition("/")[2] or None
        self.is_gathered: bool = message.view.is_gathered
        self.is_writable: bool = not self.is_view or message.view.is_writable
        self.may_pad: bool = message.view.may_pad
        strides = message.layout.strides
        # A view without strides is read by way of a copy; the layout is that copy's.
        self.strides: tuple[int, ...] | None = None
        if not message.HasField("view") or message.view.has_strides:
            self.strides = tuple(stride * self.dtype.itemsize for stride in strides)
        self._span_bytes: int = message.span_bytes

    @classmethod
    def of_result(
        cls, session: Any, result: compute_pb2.Result, out: Any, *, owned: bool
    ) -> Self:
        """Returns the tensor that an operation has written, with its report.

        Args:
            session: The session that it belongs to.
            result: What the server says about it.
            out: The tensor, if it was there before.
            owned: Whether a new one leaves the server with its object.
        """
        tensor: Self = cls(session, result.tensor, owned=owned) if out is None else out
        tensor.report = from_message(ExecutionReport, result.report)
        return tensor

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

    def _check_single(self) -> None:
        """Refuses to be anything but one element."""
        if self.size != 1:
            raise InvalidArgument(
                f"tensor {self.name} of shape {self.shape} has {self.size} elements, "
                "wanted one",
                reason="TENSOR_NOT_SCALAR",
            )

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


TensorLike = Union[TensorHandle, npt.ArrayLike]


def state_of(message: tensor_pb2.Tensor) -> str:
    """Returns the state of a tensor: "empty", "partial", "ready", ..."""
    name = tensor_pb2.TensorState.Name(message.state)
    return name.removeprefix("TENSOR_STATE_").lower()
