"""Sessions whose operations return before they are done."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
import threading
import time
import types
import weakref
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arguments import check_timeout, remaining_seconds
from tensord._blocking_link import BlockingLink
from tensord._connection import Method
from tensord._handle import Held
from tensord._operations import Input, Options, Settings
from tensord._pipeline import PendingTensor, Pipeline
from tensord._plans import Plan, PlanOptions
from tensord._session import Session
from tensord._specs import TensorSpec, packed_strides
from tensord._subscripts import Modes, mode_labels
from tensord._tensor import RemoteTensor
from tensord._tensor_handle import Factor, TensorHandle, TensorLike
from tensord._transfer import Transfers
from tensord.errors import (
    Error,
    Internal,
    NotFound,
    from_error,
    to_error,
)
from tensord.v1 import error_pb2, tensor_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PACKAGE = str(Path(__file__).parent)


class DeferredTensor(RemoteTensor):
    """A tensor of a `DeferredSession`, which an operation may yet have to write.

    `shape` and `dtype` are known at once. Whatever needs the contents, or asks the
    server, waits until the operations before it are done, and raises what the one that
    should have written the tensor failed with. `report` is there once it is done.
    """

    def __init__(
        self, session: Any, message: tensor_pb2.Tensor, *, owned: bool
    ) -> None:
        """As `SessionHandle` says."""
        super().__init__(session, message, owned=owned)
        self._deferral: DeferredLink = session.deferral
        self.contents = self._deferral.contents_of(self.viewed or self.name)

    def begin(self, *, is_there: bool) -> None:
        """Says that it is new, and whether the server has it already.

        Another one of its name may be there instead, or have been before.
        """
        self.contents = _Contents()
        if is_there:
            self._deferral.made(self)

    @property
    def full_name(self) -> str:
        """Its name on the wire; waits unless it is for an operation that is deferred."""
        if self._deferral.expected is None:
            if self.contents.writers:
                self._deferral.settle()
            self._deferral.check(self)
        return self._full_name

    def write(self, array: npt.ArrayLike, timeout: float | None = None) -> None:
        """As `RemoteTensor.write`; what was to have written it before does not matter."""
        check_timeout(timeout)
        begun = time.monotonic()
        self._deferral.settle(timeout)
        before = dict(self.contents.failures)
        self.contents.forgive(self)
        try:
            super().write(array, remaining_seconds(timeout, begun))
        except BaseException as error:
            self.contents.failures = before
            if isinstance(error, NotFound):
                self._deferral.check(self)
            raise


class _Contents:
    """What is known of the contents of a tensor and of its views.

    Attributes:
        writers: How many operations have yet to write them.
        failures: What those failed with that were to write them last, by the names that
            they were to be written by.
    """

    def __init__(self) -> None:
        self.writers = 0
        self.failures: dict[str, error_pb2.Error] = {}

    def forgive(self, target: RemoteTensor) -> None:
        """Says that the tensor, or what a view sees of it, was written anew."""
        # Replaced, as others may be looking at them.
        kept = self.failures if target.is_view else {}
        self.failures = {
            name: failure for name, failure in kept.items() if name != target.name
        }

    def miss(self, target: RemoteTensor, failure: error_pb2.Error) -> None:
        """Says what the tensor, or what a view sees of it, is missing for."""
        self.failures = {**self.failures, target.name: failure}


class _Deferred(PendingTensor):
    """An operation that is on its way, and the tensor that it writes."""

    def __init__(
        self,
        pipeline: Pipeline,
        link: DeferredLink,
        target: RemoteTensor,
        held: Held,
        call: str,
        is_new: bool,
    ) -> None:
        super().__init__(pipeline.changed, target, None, held)
        self._is_new = is_new
        self._link = link
        self._target = target
        self._call = call
        self._contents = _contents_of(target)
        self._contents.writers += 1

    def withdraw(self) -> None:
        """Says that it was not sent."""
        self._contents.writers -= 1

    def _settle(self, session: Any, response: Any) -> None:
        if response.HasField("error"):
            self._fail(response.error)
            return
        written, wanted = response.result.tensor, self._target
        dtype = dtypes.dtype_of(written.element_type)
        extents = tuple(written.layout.extents)
        cause = _failure_of(self._held)
        if cause is not None:  # What it read is not what it should have been.
            self._fail(cause)
        elif (extents, dtype) != (wanted.shape, wanted.dtype):
            what = f"got a result of {dtype} {extents}, wanted {wanted!r}"
            self._fail(to_error(Internal(what, reason="RESPONSE_MALFORMED")))
        else:
            super()._settle(session, response)
            self._end(None)

    def _fail(self, error: error_pb2.Error) -> None:
        cause = _failure_of(self._held)
        if cause is None:
            cause = error_pb2.Error()
            cause.CopyFrom(error)
            cause.message += f"; the call was {self._call}"
            self._link.miss(cause)
        super()._fail(cause)
        self._end(cause)

    def _end(self, failure: error_pb2.Error | None) -> None:
        self._contents.writers -= 1
        if failure is None:
            self._contents.forgive(self._target)
            if self._is_new and isinstance(self._target, DeferredTensor):
                self._link.made(self._target)
        else:
            self._contents.miss(self._target, failure)


def _contents_of(tensor: Any) -> _Contents:
    contents = getattr(tensor, "contents", None)
    return contents if isinstance(contents, _Contents) else _Contents()


def _failure_of(operands: Held) -> error_pb2.Error | None:
    """Returns what one of them is missing for."""
    for operand in operands:
        for failure in _contents_of(operand).failures.values():
            return failure
    return None


class DeferredLink(BlockingLink):
    """A link with operations that are on their way; other calls wait for them."""

    def __init__(self, *opened: Any) -> None:
        """Takes what `open_session` returns."""
        super().__init__(*opened)
        self.transfers = _OrderedTransfers(self)
        self._lock = threading.RLock()
        # Of its own: who has the other one may wait for who finds errors.
        self._notes = threading.Lock()
        self._unseen: list[error_pb2.Error] = []
        self._pipeline: Pipeline | None = None
        self._contents: weakref.WeakValueDictionary[str, _Contents]
        self._contents = weakref.WeakValueDictionary()
        self._local = threading.local()

    def contents_of(self, name: str) -> _Contents:
        """Returns what is known of the contents of the tensor of a name."""
        with self._notes:
            contents = self._contents.get(name)
            if contents is None:
                contents = self._contents[name] = _Contents()
            return contents

    def made(self, tensor: DeferredTensor) -> None:
        """Says that a tensor of its name is there, and is this one."""
        with self._notes:
            self._contents[tensor.name] = tensor.contents

    @property
    def expected(self) -> TensorSpec | None:
        """What the operation makes that this thread is about to defer, if it is."""
        expected: TensorSpec | None = getattr(self._local, "expected", None)
        return expected

    @contextlib.contextmanager
    def deferring(self, expected: TensorSpec | None) -> Generator[None, None, None]:
        """Defers the operation that is called meanwhile; None: it does not."""
        before = self.expected
        self._local.expected = expected
        try:
            yield
        finally:
            self._local.expected = before

    def check(self, *operands: Any) -> None:
        """Raises what one of them is missing for.

        Raises:
            Error: That; `wait` does not raise it any more.
        """
        failure = _failure_of([*operands])
        if failure is not None:
            with self._notes:
                self._unseen = [each for each in self._unseen if each is not failure]
            raise from_error(failure)

    def miss(self, error: error_pb2.Error) -> None:
        """Takes note of an error that nobody has met."""
        with self._notes:
            self._unseen.append(error)

    def take_unseen(self) -> error_pb2.Error | None:
        """Returns the first error that nobody has met, and forgets all."""
        with self._notes:
            unseen, self._unseen = self._unseen, []
        return unseen[0] if unseen else None

    def defer(
        self,
        session: Session,
        operation: str,
        request: Any,
        settings: Settings,
        spec: TensorSpec,
        held: Held,
    ) -> RemoteTensor:
        """Sends a request, and returns the tensor that it will have written.

        Args:
            session: The session of the link.
            operation, request, settings, held: As `Operations._perform` takes them.
            spec: What a new tensor is like.
        """
        self.check(*held)
        call = f"{operation} in {_place_of_caller()}"
        target: Any = settings.out
        pipeline = self._opened()
        if target is None:
            target = self._announce(session, operation, request, settings, spec)
        while True:
            is_new = settings.out is None
            pending = _Deferred(pipeline, self, target, held, call, is_new)
            try:
                pipeline.add(operation, request, pending, self.connection.timeout)
                break
            except BaseException as error:
                pending.withdraw()
                # It ended between two operations.
                before, pipeline = pipeline, self._opened()
                if pipeline is before or not isinstance(error, Error):
                    raise
        deferred: RemoteTensor = target
        return deferred

    def _announce(
        self,
        session: Session,
        operation: str,
        request: Any,
        settings: Settings,
        spec: TensorSpec,
    ) -> DeferredTensor:
        """Returns the new tensor that an operation will make."""
        full_name = f"{self.name}/tensors/{settings.name}"
        if not settings.name:
            full_name = self._opened().name_result(operation, request)
        message = tensor_pb2.Tensor(
            name=full_name,
            device=self.device,
            element_type=dtypes.element_type_of(spec.dtype),
            layout=spec.layout_message(),
            span_bytes=spec.span_bytes,
        )
        if not message.layout.strides:
            size = spec.dtype.itemsize
            strides = packed_strides(spec.shape, spec.dtype)
            message.layout.strides.extend(each // size for each in strides)
        made = DeferredTensor(session, message, owned=not settings.name)
        made.begin(is_there=False)
        return made

    def _opened(self) -> Pipeline:
        """Returns a pipeline that takes operations."""
        with self._lock:
            if self._pipeline is None or self._pipeline.has_ended:
                # It does not refer to the session, which can be garbage collected.
                stand_in: Any = types.SimpleNamespace(link=self)
                self._pipeline = Pipeline(stand_in, math.inf).__enter__()
            return self._pipeline

    def settle(self, timeout: float | None = None) -> None:
        """Waits until all operations that were deferred before are done.

        Args:
            timeout: Most seconds to wait; None for as long as one after the other is
                done, each within the default deadline.

        Raises:
            DeadlineExceeded: They are not (`DEADLINE_EXCEEDED`); they go on.
        """
        with self._lock:
            pipeline = self._pipeline
        if pipeline is not None:
            pipeline.wait(self.connection.timeout, timeout)

    def abandon(self) -> None:
        """Cancels what has not begun."""
        with self._lock:
            pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.cancel()

    def call(
        self, method: Method[Any], request: Any, timeout: float | None = None
    ) -> Any:
        check_timeout(timeout)
        begun = time.monotonic()
        if self.expected is None:  # What is staged meanwhile is new.
            self.settle(timeout)
        return super().call(method, request, remaining_seconds(timeout, begun))

    def list(self, kind: str) -> Iterator[Any]:
        self.settle()
        return super().list(kind)


class _OrderedTransfers(Transfers):
    """Transfers after what was deferred before."""

    def __init__(self, link: DeferredLink) -> None:
        super().__init__(link.connection, link.info.limits.max_chunk_bytes)
        self._link = link

    def upload(
        self, tensor: str, data: np.ndarray, timeout: float | None, *, empty: bool
    ) -> None:
        begun = time.monotonic()
        if self._link.expected is None:
            self._link.settle(timeout)
        super().upload(tensor, data, remaining_seconds(timeout, begun), empty=empty)

    def download(self, tensor: str, data: np.ndarray, timeout: float | None) -> None:
        begun = time.monotonic()
        self._link.settle(timeout)
        super().download(tensor, data, remaining_seconds(timeout, begun))


class DeferredSession(Session):
    """A session whose operations return at once, `connect(deferred=True)`.

    They are sent over one stream without anyone waiting for responses, and take effect
    in the order in which they were called. Deferred are contractions, permutations,
    reductions and element-wise operations, by whatever name (`einsum` of up to two
    operands, `a + b`, `a.sum()`), and plans of them, if shape and dtype of the result
    are known here: operands of different dtypes want `dtype`. All else is done at once,
    after what was deferred before: uploads and downloads, views, programs, and what has
    a `timeout` of its own.

    An operation that fails raises nothing where it is called, unless its arguments can
    be seen here to be wrong. Its error is raised where its result is used, as often as
    that is, and so is that of an operation whose operand it is. It names the call: what
    it was, in which file and line. Errors that nobody has met are raised by `wait` or
    at the end of `with`.

    A tensor that is dropped stays on the server until the operations that use it are
    done.
    """

    _tensor_class = DeferredTensor

    def __init__(self, link: DeferredLink) -> None:
        """Use `tensord.connect`."""
        super().__init__(link)
        self.deferral = link

    def wait(self, timeout: float | None = None) -> None:
        """Waits until everything is done that was deferred.

        Args:
            timeout: Most seconds to wait; None for as long as one operation after the
                other is done, each within the default deadline.

        Raises:
            DeadlineExceeded: It is not; it goes on.
            Error: The first that an operation failed with and nobody has met.
        """
        check_timeout(timeout)
        self.deferral.settle(timeout)
        error = self.deferral.take_unseen()
        if error is not None:
            raise from_error(error)

    def close(self, timeout: float | None = None) -> None:
        """Closes the session; what is not done yet need not be done any more."""
        self.deferral.abandon()
        super().close(timeout)

    def __exit__(self, *raised: object) -> None:
        try:
            if raised[0] is None:
                self.wait()
        finally:
            self.close()

    def upload(
        self,
        array: npt.ArrayLike,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """As `Session.upload`."""
        return _begun(super().upload(array, name, timeout))

    def create(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike,
        name: str | None = None,
        timeout: float | None = None,
    ) -> RemoteTensor:
        """As `Session.create`."""
        return _begun(super().create(shape, dtype, name, timeout))

    def open_shared(
        self, share: str, name: str | None = None, timeout: float | None = None
    ) -> RemoteTensor:
        """As `Session.open_shared`."""
        return _begun(super().open_shared(share, name, timeout))

    def pipeline(self, timeout: float | None = None) -> Pipeline:
        """As `Session.pipeline`, after what was deferred; nothing is meanwhile."""
        self.deferral.settle()
        return super().pipeline(timeout)

    def execute(
        self,
        plan: Plan,
        *operands: TensorLike | None,
        **options: Unpack[PlanOptions],
    ) -> RemoteTensor:
        """As `Session.execute`; deferred."""
        known = isinstance(plan, Plan) and "d" in plan.operands
        with self.deferral.deferring(plan.operands["d"] if known else None):
            return super().execute(plan, *operands, **options)

    def _submit(
        self,
        operation: str,
        inputs: Mapping[str, Input],
        modes_d: Modes,
        factors: Mapping[str, Factor],
        options: Options,
        fields: Mapping[str, Any] | None = None,
    ) -> RemoteTensor:
        expected = _expected(inputs, modes_d, options, fields or {})
        with self.deferral.deferring(expected):
            return super()._submit(
                operation, inputs, modes_d, factors, options, fields
            )

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: Held
    ) -> RemoteTensor:
        spec = self.deferral.expected
        if spec is not None and settings.timeout is None:
            return self.deferral.defer(self, operation, request, settings, spec, held)
        begun = time.monotonic()
        self.deferral.settle(settings.timeout)
        self.deferral.check(*held)
        left = remaining_seconds(settings.timeout, begun)
        with self.deferral.deferring(None):
            made = super()._perform(
                operation, request, dataclasses.replace(settings, timeout=left), held
            )
        _contents_of(made).forgive(made)
        return made


def _begun(tensor: RemoteTensor) -> RemoteTensor:
    """Returns a tensor that was made just now."""
    if isinstance(tensor, DeferredTensor):
        tensor.begin(is_there=True)
    return tensor


def _expected(
    inputs: Mapping[str, Input],
    modes_d: Modes,
    options: Options,
    fields: Mapping[str, Any],
) -> TensorSpec | None:
    """Returns what the result will be like; None if only the server knows."""
    out = options.get("out")
    if isinstance(out, TensorHandle):
        return TensorSpec(out.shape, out.dtype)
    extents: dict[int, int] = {}
    dtype_of: dict[str, np.dtype] = {}
    for name, (tensor, modes, _) in inputs.items():
        if tensor is None:
            continue
        if modes is None or not isinstance(tensor, (TensorHandle, np.ndarray)):
            return None
        labels = mode_labels(modes, f"modes_{name}")
        if len(labels) != len(tensor.shape):
            return None
        extents.update(zip(labels, tensor.shape))
        dtype_of[name] = tensor.dtype
    dtype = options.get("dtype") or dtype_of.get("c")
    if dtype is None and len(set(dtype_of.values())) == 1:
        dtype = next(iter(dtype_of.values()))
    labels = mode_labels(modes_d, "modes_d")
    if dtype is None or any(label not in extents for label in labels):
        return None
    shape = [extents[label] for label in labels]
    padding = fields.get("padding")
    if padding is not None:
        margins = zip(shape, padding.before, padding.after, strict=True)
        shape = [extent + before + after for extent, before, after in margins]
    return TensorSpec(tuple(shape), dtype)


def _place_of_caller() -> str:
    """Returns the file and line outside of this package that called it."""
    frame = inspect.currentframe()
    while frame and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return "an unknown place"
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
