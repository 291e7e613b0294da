"""What ties a session to the server whose operations return before they are done."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import types
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._arguments import check_timeout, remaining_seconds
from tensord._blocking_link import BlockingLink
from tensord._connection import Method
from tensord._deferred_operations import Deferred, Fetched
from tensord._deferred_tensor import (
    Contents,
    DeferredTensor,
    failure_of,
)
from tensord._expectations import place_of_caller
from tensord._handle import Held
from tensord._pipeline import PendingTensor, Pipeline, message_of
from tensord._recordings import Recordings
from tensord._settings import Settings
from tensord._shortcuts import Request
from tensord._specs import TensorSpec, packed_strides
from tensord._tensor import RemoteTensor
from tensord._transfer import Transfers
from tensord.errors import (
    Aborted,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    InvalidArgument,
    from_error,
    to_error,
)
from tensord.v1 import compute_pb2, error_pb2, tensor_pb2

if TYPE_CHECKING:
    from tensord._session import Session

# More is downloaded, which takes two calls and no copy.
_MOST_FETCHED_BYTES = 64 << 10


class DeferredLink(BlockingLink):
    """A link with operations that are on their way; other calls wait for them."""

    def __init__(self, *opened: Any, records: bool = False) -> None:
        """As `SessionLink`.

        Args:
            *opened: What that takes.
            records: Whether operations wait until a value is wanted.
        """
        super().__init__(*opened)
        self._records = records
        # They are the session's, which their operands refer to; so must not this.
        self._recordings: Callable[[], Recordings | None] = lambda: None
        self._is_abandoned = False
        self.memory.call, self.memory.begin = self.call, self.begin
        self.transfers = _OrderedTransfers(self)
        # A server that knows no such operands would read what is below them.
        self.sees_operands = self.info.limits.max_view_stages > 0
        self.most_fetched_bytes = min(
            _MOST_FETCHED_BYTES, self.info.limits.max_inline_bytes
        )
        self._lock = threading.RLock()
        # Of its own: who has the other one may wait for who finds errors.
        self._notes = threading.Lock()
        self._unseen: list[error_pb2.Error] = []
        # By the ids of the errors: with these, what is as it was before.
        self._refused: dict[int, tuple[error_pb2.Error, list[Contents]]] = {}
        self._pipeline: Pipeline | None = None
        self._contents: weakref.WeakValueDictionary[str, Contents]
        self._contents = weakref.WeakValueDictionary()
        self._local = threading.local()
        # Held while a view is made, which others may wait for.
        self.making = threading.RLock()

    def recordings(self) -> Recordings | None:
        """Returns what has operations wait as long as it lives, if they are to."""
        if not self._records:
            return None
        recordings = Recordings(self._send_recordings)
        self._recordings = weakref.ref(recordings)
        return recordings

    def contents_of(self, name: str) -> Contents:
        """Returns what is known of the contents of the tensor of a name."""
        with self._notes:
            contents = self._contents.get(name)
            if contents is None:
                contents = self._contents[name] = Contents()
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
        failure = failure_of([*operands])
        if failure is not None:
            self.connection.check_open()
            with self._notes:
                self._unseen = [each for each in self._unseen if each is not failure]
                refused = self._refused.pop(id(failure), None)
            for contents in refused[1] if refused is not None else ():
                contents.met(failure)
            raise from_error(failure)

    def miss(self, error: error_pb2.Error) -> None:
        """Takes note of an error that nobody has met."""
        with self._notes:
            self._unseen.append(error)

    def refuse(self, error: error_pb2.Error, contents: Contents) -> None:
        """Says that what was to be written was refused: what was there before is good
        once somebody has met the error."""
        with self._notes:
            self._refused.setdefault(id(error), (error, []))[1].append(contents)

    def take_unseen(self) -> error_pb2.Error | None:
        """Returns the first error that nobody has met, and forgets all."""
        with self._notes:
            unseen, self._unseen = self._unseen, []
            refused, self._refused = self._refused, {}
        for failure, all_of_it in refused.values():
            for contents in all_of_it:
                contents.met(failure)
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
        target: Any = settings.out
        is_new = target is None
        if not is_new:
            _check_writable(target)
        if is_new:
            full_name = f"{self.name}/tensors/{settings.name}"
            if not settings.name:
                full_name = self._opened().name_result(operation, request)
            owned = not settings.name
            target = self._announced(session, full_name, spec, owned=owned)
        return self._send(operation, request, target, held, is_new)

    def defer_again(
        self,
        session: Session,
        request: Request,
        operands: tuple[Any, ...],
        factors: Mapping[str, Any],
        out: DeferredTensor | None = None,
    ) -> tuple[RemoteTensor, ...]:
        """The same of a request that was made before, perhaps with several results."""
        held: list[Any] = [
            each for each in operands if isinstance(each, DeferredTensor)
        ]
        for each in held:
            if each.contents.failures:
                self.check(*held)
        asked = request.message(operands, factors)
        if out is not None:
            _check_writable(out)
            message = request.streamed_into(asked, out)
            self._send(request.operation, message, out, held, False, request)
            return (out,)
        recordings = self._recordings()
        if recordings is None:
            return self._make(session, request, asked, held)
        self.connection.check_open()  # The lock may be held for ever in a fork.
        with recordings.lock:
            before = recordings.find(asked)
            if before is not None:
                return tuple([self._copy(session, each) for each in before])
            return self._make(session, request, asked, held)

    def _make(
        self, session: Session, request: Request, asked: bytes, held: Held
    ) -> tuple[DeferredTensor, ...]:
        """Defers a request of new results, which it names."""
        pipeline = self._opened()
        tensor_ids = [pipeline.new_id() for _ in request.specs]
        message = request.streamed(asked, tensor_ids)
        names = [f"{self.name}/tensors/{tensor_id}" for tensor_id in tensor_ids]
        if not request.likenesses:
            made = [
                self._announced(session, name, spec, owned=True)
                for name, spec in zip(names, request.specs)
            ]
            request.likenesses = [each.likeness() for each in made]
        else:
            made = [
                DeferredTensor.announced(session, likeness, name)
                for likeness, name in zip(request.likenesses, names)
            ]
        first, *others = made
        # To compute a permutation is to copy.
        asked = asked if request.operation != "permute" else b""
        self._send(
            request.operation, message, first, held, True, request, others, asked
        )
        return tuple(made)

    def _copy(self, session: Session, tensor: DeferredTensor) -> Any:
        """Records a copy of what an equal operation makes, with the report of that."""
        modes = range(tensor.ndim)
        copy: Any = session.permute(tensor, modes, modes)
        recordings = self._recordings()
        maker = recordings.maker_of(copy) if recordings is not None else None
        if maker is not None:
            maker.copies()
        return copy

    def defer_factors(
        self,
        session: Session,
        request: compute_pb2.FactorizeRequest,
        names: Sequence[str | None],
        specs: Sequence[tuple[str, TensorSpec]],
        held: Held,
    ) -> tuple[RemoteTensor, ...]:
        """Sends a factorization, and returns the tensors that it will have written.

        Args:
            session: The session of the link.
            request: What is asked for.
            names: Of the results, or None.
            specs: What they are like, by their fields.
            held: As for `defer`.
        """
        self.check(*held)
        made: list[DeferredTensor] = []
        for name, (field, spec) in zip(names, specs, strict=True):
            tensor_id = name or self._opened().new_id()
            getattr(request, field).tensor_id = tensor_id
            full_name = f"{self.name}/tensors/{tensor_id}"
            made.append(self._announced(session, full_name, spec, owned=not name))
        self._send("factorize", request, made[0], held, True, others=made[1:])
        return tuple(made)

    def _send(
        self,
        operation: str,
        request: Any,
        target: RemoteTensor,
        held: Held,
        is_new: bool,
        known: Request | None = None,
        others: Sequence[DeferredTensor] = (),
        asked: bytes = b"",
    ) -> RemoteTensor:
        """Sends a request that writes `target`, or records it; returns that."""
        recordings = self._recordings()
        if recordings is not None and not asked:
            self.connection.check_open()
        call = operation, *place_of_caller()
        targets = [target, *others]
        deferred = Deferred(self, operation, request, targets, held, call, is_new, known)
        if recordings is not None:
            recordings.add(deferred, asked)
            return target
        try:
            self._add([message_of(operation, request)], [deferred])
        except BaseException:
            deferred.withdraw()
            raise
        return target

    def send_recorded(self, timeout: float | None = None) -> None:
        """Sends operations that wait here until a value is wanted.

        Args:
            timeout: Most seconds to wait until they can go.
        """
        recordings = self._recordings()
        if recordings is not None:
            self.connection.check_process()
            recordings.flush(timeout)

    def _send_recordings(self, sent: list[Deferred], timeout: float | None) -> None:
        """Sends operations, all or none.

        Raises:
            DeadlineExceeded: None were sent. What else may be wrong is raised where the
                results are used.
        """
        try:
            messages = [message_of(one.operation, one.request) for one in sent]
            self._add(messages, sent, timeout)
        except DeadlineExceeded:
            raise
        except Error as error:
            for one in sent:
                one.fail(to_error(error))
        except BaseException as error:  # A signal's, at any place.
            pipeline = self._pipeline
            why = f"{type(error).__name__} came while it was sent; perhaps it was done"
            for one in sent:
                if pipeline is None or not pipeline.has(one):
                    one.fail(to_error(Aborted(why, reason="INTERRUPTED")))
            raise

    def _add(
        self,
        messages: list[Any],
        pending: Sequence[PendingTensor],
        timeout: float | None = None,
    ) -> None:
        """Sends requests, see `Pipeline.add`."""
        pipeline = self._opened()
        while True:
            try:
                return pipeline.add(
                    messages, pending, self.connection.timeout, timeout
                )
            except BaseException as error:
                # It ended between two operations.
                before, pipeline = pipeline, self._opened()
                if pipeline is before or not isinstance(error, Error):
                    raise

    def fetch(self, tensor: DeferredTensor, timeout: float | None) -> np.ndarray:
        """Returns the elements of a tensor, which come by the way of the operations.

        Args:
            tensor: It has no more than `most_fetched_bytes`.
            timeout: As for `settle`.

        Raises:
            Error: There are none; or what should have written them failed.
        """
        if not tensor.contents.writers:
            self.check(tensor)
        self.connection.check_open()
        recordings = self._recordings()
        maker = recordings.with_data(tensor) if recordings is not None else None
        if maker is not None:
            self.settle(timeout)
            self.check(tensor)
            if maker.data:
                return np.ndarray(tensor.shape, tensor.dtype, bytearray(maker.data))
        modes = range(tensor.ndim)
        request = compute_pb2.PermuteRequest(
            session=self.name,
            a=compute_pb2.Operand(modes=modes),
            d=compute_pb2.Output(
                modes=modes, inline=True, order=tensor_pb2.ORDER_LAST_MODE_FASTEST
            ),
        )
        with self.deferring(TensorSpec(tensor.shape, tensor.dtype)):
            tensor.put_in(request.a)
        begun = time.monotonic()
        self.send_recorded(timeout)
        fetched = Fetched([tensor])
        self._add([message_of("permute", request)], [fetched])
        self.settle(remaining_seconds(timeout, begun))
        self.check(tensor)
        data = bytearray(fetched.elements(tensor.nbytes))
        return np.ndarray(tensor.shape, tensor.dtype, data)

    def _announced(
        self, session: Session, full_name: str, spec: TensorSpec, *, owned: bool
    ) -> DeferredTensor:
        """Returns a new tensor that an operation will make."""
        made = DeferredTensor(session, self._message(full_name, spec), owned=owned)
        made.begin(is_there=False)
        return made

    def _message(self, full_name: str, spec: TensorSpec) -> tensor_pb2.Tensor:
        """Returns what the server will say of a new tensor."""
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
        return message

    def _opened(self) -> Pipeline:
        """Returns a pipeline that takes operations."""
        pipeline = self._pipeline
        if pipeline is not None and not pipeline.has_ended:
            return pipeline
        self.connection.check_process()
        with self._lock:
            if self._is_abandoned:
                self.connection.check_open()
                raise FailedPrecondition(
                    f"session {self.name} is closed", reason="SESSION_CLOSED"
                )
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
            FailedPrecondition: This process is a fork (`FORKED`).
        """
        self.connection.check_process()
        begun = time.monotonic()
        self.send_recorded(timeout)
        with self._lock:
            pipeline = self._pipeline
        if pipeline is not None:
            left = remaining_seconds(timeout, begun)
            pipeline.wait(self.connection.timeout, left)

    def abandon(self) -> None:
        """Cancels what has not begun, unless that is a parent's."""
        if self.connection.is_forked:
            return
        with self._lock:
            pipeline, self._pipeline = self._pipeline, None
            self._is_abandoned = True
        if pipeline is not None:
            pipeline.cancel()
        recordings = self._recordings()
        if recordings is not None:
            recordings.clear()

    def call(
        self, method: Method[Any], request: Any, timeout: float | None = None
    ) -> Any:
        return super().call(method, request, self._after_deferred(timeout))

    def begin(
        self, method: Method[Any], request: Any, timeout: float | None = None
    ) -> Callable[[], Any]:
        """As `Connection.begin`."""
        return self.connection.begin(method, request, self._after_deferred(timeout))

    def _after_deferred(self, timeout: float | None) -> float | None:
        """Waits for what was deferred before; returns the seconds that are left."""
        check_timeout(timeout)
        begun = time.monotonic()
        if self.expected is None:  # What is staged meanwhile is new.
            self.settle(timeout)
        return remaining_seconds(timeout, begun)

    def list(self, kind: str) -> Iterator[Any]:
        self.settle()
        return super().list(kind)


def _check_writable(target: RemoteTensor) -> None:
    """Refuses an output that has two indices for one element.

    Raises:
        InvalidArgument: It is one (`OUTPUT_NOT_INJECTIVE`).
    """
    if not target.is_writable:
        raise InvalidArgument(
            f"the output is view {target.name}, which has two indices for one element, "
            "wanted one that is writable",
            reason="OUTPUT_NOT_INJECTIVE",
        )


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
