"""Operations that are on their way, and what becomes of them."""

from __future__ import annotations

import weakref
from typing import Any

from tensord import _dtypes as dtypes
from tensord._deferred_tensor import (
    DeferredTensor,
    contents_of,
    failure_of,
    written_name,
)
from tensord._handle import Held, SessionHandle
from tensord._pipeline import PendingTensor
from tensord._shortcuts import Request
from tensord.errors import (
    FailedPrecondition,
    Internal,
    InvalidArgument,
    from_error,
    to_error,
)
from tensord.v1 import compute_pb2, error_pb2

_INVALID = InvalidArgument.code.value[0]
_WITH_DATA = compute_pb2.Output(with_data=True).SerializeToString()


class Deferred(PendingTensor):
    """An operation that is on its way, or to be sent, and the tensors that it writes.

    Attributes:
        operation, request: As `message_of` takes them.
        is_new: Whether it makes tensors, rather than writes to one.
        has_staged: Whether it holds memory on the server for arrays of ours, once it is to
            wait, see `hold`.
        nbytes: Of the request and of new results, likewise.
        data: The elements of the new result, if they were asked for and came.
    """

    data = b""
    has_staged = False
    nbytes = 0

    def __init__(
        self,
        link: Any,
        operation: str,
        request: Any,
        targets: list[Any],
        held: Held,
        call: tuple[str, str, int],
        is_new: bool,
        known: Request | None,
    ) -> None:
        """
        Args:
            link: The `DeferredLink` that sends it.
            operation, request: As `message_of` takes them.
            targets: What it writes, `DeferredTensor`s or one of another session's.
            held: Tensors and plans that must live until the operation is done.
            call: What was called, in which file and line.
            is_new: Whether it makes tensors, rather than writes to one.
            known: What the request was made from, if it was asked for before.
        """
        super().__init__(None, targets[0], None, held)
        self.operation, self.request, self.is_new = operation, request, is_new
        self._link, self._call, self._known = link, call, known
        self._targets = targets
        self._contents = []
        for each in targets:
            contents = contents_of(each)
            contents.writers += 1
            self._contents.append(contents)
        # New results, to which their users alone refer; and what the others are made of
        # if somebody has one of several.
        self._unsent: list[weakref.ref[DeferredTensor]] | None = None
        self._likenesses: list[tuple[str, dict[str, Any]]] = []
        self._has_data = self._is_copy = False

    def hold(self) -> None:
        """Leaves new results to their users alone until it is sent, see `begin`."""
        if self._known is not None:
            self.nbytes = len(self.request)
        else:
            kinds = [isinstance(each, SessionHandle) for each in self._held]
            self.has_staged = not all(kinds)
            self.nbytes = self.request.ByteSize()
        targets = self._targets
        if not self.is_new or not all([each.is_owned for each in targets]):
            return  # Others may know what it writes.
        for each in targets:
            self.nbytes += each.nbytes
        if len(targets) > 1:
            self._likenesses = [
                (f"{self._link.name}/tensors/{each.name}", each.likeness())
                for each in targets
            ]
        self._unsent = [each.unsent() for each in targets]
        self._targets, self._tensor = [], None

    def results(self) -> list[DeferredTensor] | None:
        """Returns the new tensors; None if it does not wait, or somebody dropped one."""
        if self._unsent is None:
            return None
        results = [each() for each in self._unsent]
        there = [each for each in results if each is not None]
        return there if len(there) == len(results) else None

    def makes(self, tensor: DeferredTensor) -> bool:
        """Whether it waits to make a tensor, and nothing else."""
        if self._unsent is None or len(self._unsent) != 1:
            return False
        return self._unsent[0]() is tensor

    def ask_for_data(self) -> bool:
        """Has the elements of what it makes come with the response.

        Returns:
            Whether that can be asked for, see `data`.
        """
        if self._has_data:
            return True
        if self._known is not None:
            self.request += self._known.streamed_output(_WITH_DATA)
        else:
            output = getattr(self.request, "d", None)
            if not isinstance(output, compute_pb2.Output):
                return False  # Plans have no such option.
            output.with_data = True
        self._has_data = True
        return True

    def begin(self) -> bool:
        """Says that it is about to be sent, if anybody can see what it does.

        Returns:
            Whether anybody can; else `withdraw` follows.
        """
        if self._unsent is None:
            return True
        known: list[Any] = [each() for each in self._unsent]
        session = next((each.session for each in known if each is not None), None)
        if session is None:
            return False
        for i, (name, likeness) in enumerate(self._likenesses):
            if known[i] is None:
                known[i] = DeferredTensor.announced(session, likeness, name)
        for each in known:
            each.leave_by(self._link.keeper)
        self._targets, self._tensor, self._unsent = known, known[0], None
        return True

    def copies(self) -> None:
        """Says that it copies the result of an equal operation, and reports what that did."""
        self._is_copy = True

    def withdraw(self) -> None:
        """Says that it was not sent."""
        for contents in self._contents:
            contents.writers -= 1

    def fail(self, error: error_pb2.Error) -> None:
        """Says that it was not sent, and why; what it should have written is as before."""
        self._fail(error, refused=not self.is_new)

    def _settle_unread(self, response: bytes) -> bool:
        # What the first result of a kind was like, all of them are.
        if self._known is None or not self._known.is_confirmed:
            return False
        if self._has_data or self._is_copy:
            return False
        if failure_of(self._held) is not None:
            return False
        for each in self._targets:
            each.reported_in(response)
        self._held = []
        self._done = True
        self._end(None)
        return True

    def _settle(self, session: Any, response: Any) -> None:
        if response.HasField("error"):
            self._fail(response.error)
            return
        held = self._held
        cause = failure_of(held)
        what = self._misfit(response.result)
        if cause is not None:  # What it read is not what it should have been.
            self._fail(cause)
        elif what is not None:
            self._fail(to_error(Internal(what, reason="RESPONSE_MALFORMED")))
        else:
            super()._settle(session, response)
            self.data = response.result.data
            if self._is_copy and isinstance(held[0], DeferredTensor):
                self._targets[0].report = held[0].report
            for other in self._targets[1:]:
                other.report = self._targets[0].report
            self._end(None)
            if self._known is not None:
                self._known.is_confirmed = True

    def _misfit(self, result: compute_pb2.Result) -> str | None:
        """Says which result is not what it should be; None if all are."""
        for each, wanted in zip([result, *result.others], self._targets, strict=True):
            dtype = dtypes.dtype_of(each.tensor.element_type)
            extents = tuple(each.tensor.layout.extents)
            if (extents, dtype) != (wanted.shape, wanted.dtype):
                return f"got a result of {dtype} {extents}, wanted {wanted!r}"
        if len(result.data) not in (0, self._targets[0].nbytes):
            wanted_bytes = self._targets[0].nbytes
            return f"got {len(result.data)} bytes of data, wanted {wanted_bytes}"
        return None

    def _fail(self, error: error_pb2.Error, *, refused: bool = False) -> None:
        cause = failure_of(self._held)
        # Then the server has not begun to write.
        refused = refused or (
            cause is None and error.code == _INVALID and not self.is_new
        )
        if cause is None:
            cause = error_pb2.Error()
            cause.CopyFrom(error)
            operation, file, line = self._call
            cause.message += f"; the call was {operation} in {file}, line {line}"
            self._link.miss(cause)
        super()._fail(cause)
        self._end(cause, refused=refused)

    def _end(self, failure: error_pb2.Error | None, *, refused: bool = False) -> None:
        for contents, target in zip(self._contents, self._targets):
            contents.writers -= 1
            if failure is None:
                if not self.is_new:
                    contents.forgive(target)
                elif isinstance(target, DeferredTensor):
                    self._link.made(target)
            elif not refused:
                contents.miss(target, failure)
            elif written_name(target) not in contents.failures:
                contents.miss(target, failure)
                self._link.refuse(failure, contents)


class Fetched(PendingTensor):
    """The elements of a tensor, which a response brings."""

    data = b""

    def __init__(self, held: Held) -> None:
        """
        Args:
            held: The tensor.
        """
        super().__init__(None, None, None, held)

    def _settle(self, session: Any, response: Any) -> None:
        if response.HasField("error"):
            self._fail(response.error)
            return
        self.data = response.result.data
        self._held = []
        self._done = True

    def elements(self, nbytes: int) -> bytes:
        """Returns them, once they are there.

        Args:
            nbytes: How long they are.

        Raises:
            Error: There are none.
        """
        if self._error is not None:
            raise from_error(self._error)
        if not self._done:
            raise FailedPrecondition(
                "the session was closed before the elements came",
                reason="SESSION_CLOSED",
            )
        if len(self.data) != nbytes:
            raise Internal(
                f"got {len(self.data)} bytes of data, wanted {nbytes}",
                reason="RESPONSE_MALFORMED",
            )
        return self.data
