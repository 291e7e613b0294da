"""A tensor on the server, by its name and by what it is like."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arrays import flat_bytes
from tensord._handle import Handle, SessionHandle
from tensord._messages import from_message
from tensord._program_reports import ProgramReport
from tensord._specs import TensorSpec
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
        dtype: npt.DTypeLike | None = None,
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
        b: TensorLike | None = None,
        modes_b: Modes | None = None,
        gamma: Factor = 1,
        op_c: str | None = None,
        out: TensorHandle | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> Outcome: ...

    def reduce(
        self,
        a: TensorLike | None,
        modes_a: Modes,
        modes_d: Modes,
        *,
        op: str = "add",
        along: str | int | None = None,
        sort: str | None = None,
        alpha: Factor = 1,
        out: TensorHandle | None = None,
    ) -> Outcome: ...


# What results of one operation on equal operands have in common.
_LIKENESS = (
    "shape",
    "dtype",
    "is_view",
    "viewed",
    "is_gathered",
    "is_writable",
    "may_pad",
    "strides",
    "device",
    "_span_bytes",
)


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

    # Above NumPy's: libraries that look at it leave operations to us.
    __array_priority__ = 100

    def __init__(
        self, session: Any, message: tensor_pb2.Tensor, *, owned: bool
    ) -> None:
        """As `SessionHandle` says."""
        super().__init__(session, message, owned=owned)
        self.shape: tuple[int, ...] = tuple(message.layout.extents)
        self.dtype: np.dtype = dtypes.dtype_of(message.element_type)
        self._report: ExecutionReport | ProgramReport | Any = None
        self.is_view = message.HasField("view")
        self.viewed: str | None = None
        self.is_gathered = self.may_pad = False
        self.is_writable = True
        # A view without strides is read by way of a copy; the layout is that copy's.
        self.strides: tuple[int, ...] | None = None
        if not self.is_view or message.view.has_strides:
            size = self.dtype.itemsize
            self.strides = tuple([size * stride for stride in message.layout.strides])
        if self.is_view:
            self._see_as(message.view)
        self._span_bytes: int = message.span_bytes
        if not self.is_view:
            self._weigh(self._span_bytes)

    def _see_as(self, view: tensor_pb2.View) -> None:
        """Takes note of what kind of view it is."""
        self.viewed = view.viewed.rpartition("/")[2] or None
        self.is_gathered = view.is_gathered
        self.is_writable = view.is_writable
        self.may_pad = view.may_pad

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
        tensor._report = result.report
        return tensor

    def output(self) -> bytes:
        """Returns the fields of an output that say where it goes, with their length."""
        return self.operand()  # The field `tensor` has one number in both.

    def put_in(self, operand: Any) -> None:
        """Says in a message which tensor it is: in its fields `tensor` and `view`."""
        operand.tensor = self.full_name

    def likeness(self) -> dict[str, Any]:
        """Returns what `of_likeness` makes others of; it refers to no session."""
        return {name: vars(self)[name] for name in _LIKENESS}

    @classmethod
    def of_likeness(
        cls, session: Any, likeness: dict[str, Any], full_name: str, report: Any
    ) -> Self:
        """Returns a new tensor, which leaves the server with its object.

        Args:
            session: The session that it belongs to.
            likeness: That of a tensor that differs in name and report alone.
            full_name: Its name on the wire.
            report: What the server says of the operation that wrote it.
        """
        tensor = cls.__new__(cls)
        vars(tensor).update(likeness)
        Handle.__init__(tensor, full_name, session.link.keeper)
        if not tensor.is_view:
            tensor._weigh(tensor._span_bytes)
        tensor.session = session
        tensor.link = session.link
        tensor._report = report
        return tensor

    # Small contents that came with the response, and the request of that.
    _known: tuple[bytes, bytes] | None = None

    def contents_as_of(self, request: bytes, data: bytes) -> None:
        """Takes note of the contents, packed, as of the response to a request.

        Until the session makes another one, nobody can have written it.
        """
        self._known = request, data

    def known_contents(self) -> np.ndarray | None:
        """Returns them as a new array, or None if they are not known any more."""
        if self._known is None:
            return None
        request, data = self._known
        if request is not self.link.last_request:
            self._known = None
            return None
        self.link.connection.check_open()
        return np.ndarray(self.shape, self.dtype, bytearray(data))

    @property
    def report(self) -> ExecutionReport | ProgramReport | None:
        """What wrote it last did; read when it is asked for."""
        report = self._report
        if isinstance(report, bytes):
            report = compute_pb2.ExecuteStreamResponse.FromString(report).result.report
        if isinstance(report, compute_pb2.ExecutionReport):
            self._report = from_message(ExecutionReport, report)
        known: ExecutionReport | ProgramReport | None = self._report
        return known

    @report.setter
    def report(self, report: ExecutionReport | ProgramReport | None) -> None:
        self._report = report

    def reported_in(self, response: bytes) -> None:
        """Takes note of the response of a stream that has its report."""
        self._report = response

    @property
    def ndim(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

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

    def coincides(self, other: TensorHandle) -> bool:
        """Whether it is known here to be the same elements in the same order."""
        return self is other

    def overlaps(self, out: TensorHandle) -> bool:
        """Whether it is thought here to see part of the memory of an output, but not to
        coincide. False where the server is asked first."""
        return False

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

    def _dense_spec(self) -> TensorSpec:
        """What a dense array of the elements is like, in the tensor's order if it is."""
        return TensorSpec(
            self.shape, self.dtype, self.strides if self._is_dense() else None
        )

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


def check_session(link: Any, what: str, tensor: TensorHandle) -> None:
    """Refuses a tensor of another session, which the server does not find.

    Args:
        link: That of the session.
        what: The tensor's role, e.g. "operand b of contract".
        tensor: The tensor.

    Raises:
        InvalidArgument: It is of another one (`SESSION_DIFFERS`).
    """
    if tensor.link.name != link.name:
        raise InvalidArgument(
            f"{what}, {tensor!r}, is of another session, wanted one of this session",
            reason="SESSION_DIFFERS",
        )
