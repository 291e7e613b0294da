"""Operations that follow each other without anyone waiting in between."""

from __future__ import annotations

import collections
import itertools
import math
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord._arguments import check_timeout, remaining_seconds, timeout_seconds
from tensord._blocking_link import BlockingLink
from tensord._execution import Executor
from tensord._handle import Held
from tensord._keeper import NAMES_PER_CALL
from tensord._settings import Settings
from tensord._tensor import RemoteTensor
from tensord._tensor_handle import TensorHandle, TensorSession
from tensord._wire import varint
from tensord.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    from_error,
    to_error,
)
from tensord.v1 import compute_pb2, error_pb2


class PendingTensor:
    """What an operation of a pipeline will give. Safe for use by many threads."""

    def __init__(
        self,
        pipeline: Pipeline | None,
        out: TensorHandle | None,
        unclaimed: str | None,
        held: Held,
    ) -> None:
        """Use the operations of a `Pipeline`.

        Args:
            pipeline: Sends it, and says what becomes of it; None if nobody asks `result`.
            out: The tensor that is written, if it exists.
            unclaimed: Full name of the new tensor when nobody but this object knows it.
            held: Tensors and plans that must live until the operation is done.
        """
        self._pipeline: Any = pipeline
        self._tensor: Any = out
        self._unclaimed = unclaimed
        self._held = held
        self._done = False
        self._error: error_pb2.Error | None = None

    def done(self) -> bool:
        """Returns whether `result` would return, or raise, at once."""
        return self._done

    def result(self, timeout: float | None = None) -> RemoteTensor:
        """Returns the result, once it is there.

        Args:
            timeout: Most seconds to wait; None for as long as the pipeline takes.

        Raises:
            DeadlineExceeded: It is not there yet; the pipeline goes on. Or the
                pipeline ended at its own deadline.
            Error: The operation failed, or the pipeline did before its response.
        """
        check_timeout(timeout)
        seconds = math.inf if timeout is None else timeout_seconds(timeout)
        self._pipeline.await_fact(self.done, None if math.isinf(seconds) else seconds)
        if not self._done:
            raise DeadlineExceeded(
                f"the result was not there after {seconds:.3g} s",
                reason="DEADLINE_EXCEEDED",
            )
        if self._error is not None:
            raise from_error(self._error)
        tensor: RemoteTensor = self._tensor
        return tensor

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        raise TypeError(
            "got the pending result of an operation, wanted a RemoteTensor or an array: "
            "use its result(), or have it written to an out= that exists already"
        )

    def _settle_unread(self, response: bytes) -> bool:
        """Settles it by a result that need not be looked at; returns whether it did."""
        return False

    def _settle(
        self, session: TensorSession[RemoteTensor, BlockingLink], response: Any
    ) -> None:
        if response.HasField("error"):
            self._fail(response.error)
            return
        owned = self._unclaimed is not None
        self._tensor = RemoteTensor.of_result(
            session, response.result, self._tensor, owned=owned
        )
        self._held = []
        self._done = True

    def _fail(self, error: error_pb2.Error) -> None:
        # The message, not an exception: one that is raised refers to frames, which
        # would refer to it and keep tensors alive.
        self._error = error
        self._held = []
        self._done = True


class Pipeline(Executor[PendingTensor]):
    """Operations and plans of a session that are on their way together.

    They take effect in the order in which they were added. Adding returns a
    `PendingTensor` at once, or waits until the server takes more.

    An operation names the tensors that exist when it is added. So what a later one
    reads is written to an `out` that was created before; a new tensor can be read once
    its `PendingTensor.result()` has returned it.

    A new tensor that nobody holds is deleted when the response names it, so a
    thousand of them may be in memory at a time: write large results to an `out`.

    An operation that fails does not end the pipeline. Later ones that need what it
    should have written fail too, or find what was there before.

    Leaving the context waits for all operations and raises the first of their errors.
    Leaving it with an exception cancels those that have not begun. Safe for use by many
    threads.
    """

    link: BlockingLink
    changed: threading.Condition
    """Guards and announces what becomes of its operations."""

    def __init__(
        self,
        session: TensorSession[RemoteTensor, BlockingLink],
        timeout: float | None,
    ) -> None:
        """Use `Session.pipeline`."""
        self.link = session.link
        self._session = session
        self._timeout = timeout
        # Random once: the system's call would let other threads go first each time.
        self._id = uuid.uuid4().hex
        self._numbers = itertools.count()
        window = max(1, self.link.info.limits.max_stream_operations)
        # Twice what the server takes, so that it need not wait for requests.
        self._limit = 2 * window
        self.changed = threading.Condition()
        self._waiting: collections.deque[PendingTensor] = collections.deque()
        self._open = False
        self._ended = False
        self._first_error: error_pb2.Error | None = None
        self._added = self._settled = 0
        self._exchange: Any = None
        self._entered = 0.0
        self._reader: threading.Thread

    def __enter__(self) -> Pipeline:
        if self._ended or self._open:
            raise FailedPrecondition(
                "a pipeline is entered once", reason="PIPELINE_FINISHED"
            )
        self.link.connection.check_open()
        self.link.keeper.flush()
        self._open = True
        self._entered = time.monotonic()
        return self

    def _begin(self) -> Any:
        """Makes the call; the server waits only so long for its first operation."""
        seconds = self.link.connection.deadline(self._timeout)
        left = math.inf
        if seconds is not None:
            left = seconds - (time.monotonic() - self._entered)
            if left <= 0:
                raise DeadlineExceeded(
                    f"ExecuteStream took longer than {seconds:.3g} s",
                    reason="DEADLINE_EXCEEDED",
                )
        self._exchange = self.link.connection.execute_stream(left)
        self._reader = threading.Thread(
            target=self._read,
            name=f"tensord pipeline {self.link.name}",
            daemon=True,
        )
        self._reader.start()
        return self._exchange

    def __exit__(
        self, raised: type[BaseException] | None, _: object, __: object
    ) -> None:
        if raised is not None:
            if not self.link.connection.is_forked:
                self.cancel()
            return
        self.finish()
        if self._first_error is not None:
            raise from_error(self._first_error)

    def finish(self) -> None:
        """Waits for all operations; no other is taken."""
        self.link.connection.check_process()
        with self.changed:
            self._open = False
            self._ended = self._ended or self._exchange is None
        if self._exchange is not None:
            self._exchange.end()
            self._reader.join()

    def cancel(self) -> None:
        """Ends it without the operations that have not begun."""
        self.link.connection.check_process()
        if self._exchange is not None:
            self._exchange.cancel()
        self.finish()

    @property
    def has_ended(self) -> bool:
        """Whether the server takes no more operations; all that it took are settled."""
        return self._ended

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: Held
    ) -> PendingTensor:
        if settings.timeout is not None:
            raise InvalidArgument(
                f"timeout is {settings.timeout} for one operation of a pipeline, wanted none: "
                "Session.pipeline() takes one for all",
                reason="TIMEOUT_NOT_APPLICABLE",
            )
        self.link.settle()  # It has a stream of its own.
        unclaimed = None
        if settings.out is None and not settings.name:
            # Named here, so that it can be deleted also when its response is lost.
            unclaimed = self.name_result(operation, request)
        pending = PendingTensor(self, settings.out, unclaimed, held)
        self.add([message_of(operation, request)], [pending])
        return pending

    def name_result(self, operation: str, request: Any) -> str:
        """Gives a new result a name of its own; returns that in full."""
        output = request if operation == "execute_plan" else request.d
        output.tensor_id = self.new_id()
        return f"{self.link.name}/tensors/{output.tensor_id}"

    def new_id(self) -> str:
        """Returns a tensor's id that no other has."""
        return f"pipeline-{self._id}-{next(self._numbers)}"

    def add(
        self,
        messages: list[Any],
        pending: Sequence[PendingTensor],
        patience: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Sends requests whose responses settle what is pending; waits while there are many.

        Args:
            messages: As `message_of` returns them.
            pending: What becomes of each.
            patience: Most seconds to wait for the next response; None for as long as
                the pipeline takes.
            timeout: Most seconds to wait altogether; None for as long as that takes.

        Raises:
            DeadlineExceeded: None came, or not enough.
            FailedPrecondition: The pipeline is not open.
            Error: It has ended with this one. None of them was sent then.
        """
        self.link.connection.check_process()
        # Unary calls delete what nobody holds once memory lacks. Here that response
        # would come too late, so it is done before.
        if self.link.keeper.backlog() > NAMES_PER_CALL:
            self.link.keeper.flush()
        with self.changed:
            if len(self._waiting) >= self._limit:
                # Half of them, so that the two threads need not take turns.
                self._wait_for(
                    lambda: len(self._waiting) <= self._limit // 2 or self._ended,
                    patience,
                    timeout,
                )
            if self._ended and self._first_error is not None:
                raise from_error(self._first_error)
            if self._ended or not self._open:
                raise FailedPrecondition(
                    "operations are added inside `with session.pipeline() as pipeline:`",
                    reason="PIPELINE_NOT_OPEN",
                )
            exchange = self._exchange or self._begin()
            # In this order: an interrupt between them is found by the response that
            # nobody waits for.
            self.link.last_request = messages[-1]
            exchange.send(*messages)
            self._waiting.extend(pending)
            self._added += len(messages)

    def has(self, pending: PendingTensor) -> bool:
        """Returns whether the request of what is pending was added, or is done."""
        with self.changed:
            added = any([each is pending for each in self._waiting])
            return added or pending.done()

    def wait(self, patience: float, timeout: float | None = None) -> None:
        """Waits until all that has been added is done.

        Args:
            patience: Most seconds to wait for the next response.
            timeout: Most seconds to wait altogether; None for as long as that takes.

        Raises:
            DeadlineExceeded: It is not done; it goes on.
        """
        self.link.connection.check_process()
        with self.changed:
            target = self._added
            if self._exchange is None:
                return
            self._exchange.flush()
            self._wait_for(
                lambda: self._settled >= target or self._ended, patience, timeout
            )

    def await_fact(self, fact: Callable[[], bool], timeout: float | None) -> None:
        """Waits until a response makes something true, which is told at once."""
        if fact():
            return
        self.link.connection.check_process()
        with self.changed, self._exchange.awaited():
            self.changed.wait_for(fact, timeout)

    def _wait_for(
        self,
        fact: Callable[[], bool],
        patience: float | None,
        timeout: float | None = None,
    ) -> None:
        begun = time.monotonic()
        while not fact():
            settled = self._settled
            seconds = [
                each
                for each in (patience, remaining_seconds(timeout, begun))
                if each is not None and not math.isinf(each)
            ]
            came = self.changed.wait_for(
                lambda: fact() or self._settled != settled,
                min(seconds, default=None),
            )
            late = timeout is not None and time.monotonic() - begun >= timeout
            if not came or (late and not fact()):
                raise DeadlineExceeded(
                    f"operations were not done after {time.monotonic() - begun:.3g} s",
                    reason="DEADLINE_EXCEEDED",
                )

    def _read(self) -> None:
        """Takes responses until the call ends, on a thread of its own."""
        error = None
        count = 0
        try:
            with self.link.connection.stream_errors(self._timeout):
                for responses in self._exchange.batches():
                    with self.changed:
                        for response in responses:
                            self._settle_next(count, response)
                            count += 1
                        self.changed.notify_all()
        except Exception as failure:
            self._exchange.cancel()
            error = to_error(failure)
        with self.changed:
            self._ended = True
            if self._waiting and error is None:
                error = to_error(Internal("the pipeline ended without a response"))
            self._first_error = self._first_error or error
            while self._waiting and error is not None:
                pending = self._waiting.popleft()
                pending._fail(error)
                # It may have been computed, without anyone hearing of it.
                if pending._unclaimed is not None:
                    self.link.keeper.discard(pending._unclaimed)
            self.changed.notify_all()
        self._exchange.end()

    def _settle_next(self, index: int, encoded: bytes) -> None:
        is_expected = self._waiting and encoded.startswith(_result_of(index))
        if not (is_expected and self._waiting[0]._settle_unread(encoded)):
            response = compute_pb2.ExecuteStreamResponse.FromString(encoded)
            self._check(index, response)
            self._waiting[0]._settle(self._session, response)
            if response.HasField("error"):
                self._first_error = self._first_error or response.error
        self._waiting.popleft()
        self._settled += 1

    def _check(self, index: int, response: Any) -> None:
        """Refuses a response that is not the next one."""
        outcome = response.WhichOneof("outcome")
        if response.index != index or outcome is None or not self._waiting:
            raise Internal(
                f"got response {response.index} with {outcome}, wanted response "
                f"{index} with a result or an error",
                reason="RESPONSE_MALFORMED",
            )


def message_of(operation: str, request: Any) -> Any:
    """Returns a message of the stream.

    Args:
        operation, request: As `Operations._perform` takes them; the request may be
            encoded, as such a message.
    """
    if isinstance(request, bytes):
        return request
    return compute_pb2.ExecuteStreamRequest(**{operation: request})


def _result_of(index: int) -> bytes:
    """Returns what the response with a result begins with."""
    return (b"\x08" + varint(index) if index else b"") + b"\x12"
