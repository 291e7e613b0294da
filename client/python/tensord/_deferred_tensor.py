"""Tensors that an operation may yet have to write."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from tensord._arguments import check_timeout, remaining_seconds
from tensord._handle import Held
from tensord._tensor import RemoteTensor
from tensord._tensor_handle import Factor, TensorHandle
from tensord._view_shapes import are_injective, viewed_shape
from tensord._wire import length_delimited
from tensord.errors import Error, NotFound, ResourceExhausted
from tensord.transforms import Stage, encoded_view
from tensord.v1 import error_pb2, operand_pb2, tensor_pb2

_MOST_STAGES = 32
# Guards what contents know of views; held for a moment.
_VIEWS = threading.Lock()
# Tags.
_VIEW_OF_OPERAND = bytes([operand_pb2.Operand.VIEW_FIELD_NUMBER << 3 | 2])
_VIEW_OF_OUTPUT = bytes([operand_pb2.Output.VIEW_FIELD_NUMBER << 3 | 2])

# What is known of a view once it is made.
_OF_THE_SERVER = (
    "_full_name",
    "name",
    "_owner",
    "viewed",
    "is_gathered",
    "is_writable",
    "may_pad",
    "strides",
    "_span_bytes",
)


class DeferredTensor(RemoteTensor):
    """A tensor of a `DeferredSession`, which an operation may yet have to write.

    `shape` and `dtype` are known at once. Whatever needs the contents, or asks the
    server, waits until the operations before it are done, and raises what the one that
    should have written the tensor failed with. `report` is there once it is done.
    """

    # The stages by which it sees its contents; None where they are not known.
    _sight: tuple[Stage, ...] | None = ()

    def __init__(
        self, session: Any, message: tensor_pb2.Tensor, *, owned: bool
    ) -> None:
        """As `SessionHandle` says."""
        super().__init__(session, message, owned=owned)
        if self.is_view:
            self._sight = None
        self._deferral: Any = session.deferral  # A `DeferredLink`.
        self.contents: Contents = self._deferral.contents_of(self.viewed or self.name)

    @classmethod
    def announced(
        cls, session: Any, likeness: dict[str, Any], full_name: str
    ) -> DeferredTensor:
        """Returns a new one that an operation is about to write, see `of_likeness`."""
        tensor = cls.of_likeness(session, likeness, full_name, None)
        tensor._deferral = session.deferral
        tensor.contents = Contents()
        return tensor

    def unsent(self) -> weakref.ref[DeferredTensor]:
        """Says that it is not there, so that nobody deletes it; returns a way to it."""
        self.leave_by(None)
        return weakref.ref(self)

    def begin(self, *, is_there: bool) -> None:
        """Says that it is new, and whether the server has it already.

        Another one of its name may be there instead, or have been before.
        """
        self.contents = Contents()
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

    def put_in(self, operand: Any) -> None:
        """As `TensorHandle.put_in`: a view need not be made for it."""
        unmade = self._unnamed()
        if unmade is None:
            super().put_in(operand)
            return
        operand.tensor = unmade[0].full_name
        operand.view.MergeFromString(encoded_view(unmade[1]))

    def operand(self) -> bytes:
        """As `Handle.operand`; for operations that are deferred."""
        unmade = self._unnamed()
        if unmade is None or self._operand is not None:
            return super().operand()
        operand = self._operand = _seen(unmade[0], unmade[1], _VIEW_OF_OPERAND)
        return operand

    def output(self) -> bytes:
        """As `TensorHandle.output`; for operations that are deferred."""
        unmade = self._unnamed()
        if unmade is None:
            return super().output()
        return _seen(unmade[0], unmade[1], _VIEW_OF_OUTPUT)

    def _unnamed(self) -> tuple[DeferredTensor, Sequence[Stage]] | None:
        """What requests see, and how, of a view that has no name; None of others."""
        unmade: tuple[DeferredTensor, Sequence[Stage]] | None
        unmade = vars(self).get("_unmade")
        return unmade if self._deferral.sees_operands else None

    def view(
        self,
        stages: Sequence[Stage] = (),
        padding: Factor | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> DeferredTensor:
        """As `Views.view`; the server hears of it as part of what uses it."""
        if not self.contents.writers:
            self._deferral.check(self)
        if padding is None and not name and timeout is None:
            seen = self._to_be_seen(stages)
            if seen is not None:
                return seen
        return self._seen_as(stages, padding, name, timeout)

    def _to_be_seen(self, stages: Sequence[Stage]) -> DeferredTensor | None:
        """Returns a view that is not made yet; None if it must be made at once.

        A name that the user gave may be another tensor's by then.
        """
        base, before = vars(self).get("_unmade", (self, ()))
        if base is self and self._owner is None:
            return None
        shape = viewed_shape(self.shape, stages)
        if shape is None:
            return None
        if len(before) + len(stages) > _MOST_STAGES:
            base, before = self, ()
        view = type(self).__new__(type(self))
        view.session, view.link, view.device = self.session, self.link, self.device
        view.shape, view.dtype, view.is_view = shape, self.dtype, True
        view.contents, view._deferral = self.contents, self._deferral
        if self._sight is not None:
            view._sight = (*self._sight, *stages)
        else:
            view._sight = None
        unmade = {"_unmade": (base, (*before, *stages))}
        vars(view).update(unmade, _report=None, _operand=None)
        self.contents.add_view(view)
        return view

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Makes a view whose name, or what else the server says, is asked for."""
            unmade = vars(self).get("_unmade")
            if name in _OF_THE_SERVER and unmade is not None:
                if name == "is_writable" and are_injective(unmade[1]):
                    return unmade[0].is_writable
                self.make()
                return vars(self)[name]
            raise AttributeError(f"{type(self).__name__} has no {name!r}", name=name)

    def __repr__(self) -> str:
        if "_unmade" not in vars(self):
            return super().__repr__()
        return (
            f"{type(self).__name__}(view, shape={self.shape}, dtype={self.dtype}, "
            f"device={self.device!r})"
        )

    def make(self) -> None:
        """Has the server make a view that has no name, if it is one."""
        with self._deferral.making:
            if "_unmade" not in vars(self):
                return
            base, stages = vars(self)["_unmade"]
            made = vars(base._seen_as(stages, None, None, None))
            vars(self).update({name: made[name] for name in _OF_THE_SERVER})
            del vars(self)["_unmade"]
            # Another thread may be writing a request that names what is below.
            self.keep(base)
            self._operand = None
            self.contents.forget_view(self)

    def _downloaded(self, timeout: float | None) -> np.ndarray:
        if self.nbytes > self._deferral.most_fetched_bytes:
            return super()._downloaded(timeout)
        if "_unmade" not in vars(self) and not self._is_packed():
            return super()._downloaded(timeout)
        try:
            fetched: np.ndarray = self._deferral.fetch(self, timeout)
        except ResourceExhausted:
            # There is no memory for a copy, as the server's statistics tell.
            return super()._downloaded(timeout)
        return fetched

    def coincides(self, other: TensorHandle) -> bool:
        """As `TensorHandle.coincides`."""
        if other is self or not isinstance(other, DeferredTensor):
            return other is self
        shared = self.contents is other.contents
        return shared and self._sight is not None and self._sight == other._sight

    def overlaps(self, out: TensorHandle) -> bool:
        """As `TensorHandle.overlaps`: other views of the same contents may."""
        return contents_of(out) is self.contents and not self.coincides(out)

    def _seen_as(self, *arguments: Any) -> DeferredTensor:
        """Makes a view, after what was deferred before."""
        with self._deferral.deferring(None):
            view: Any = super().view(*arguments)
        view.contents = self.contents
        return cast("DeferredTensor", view)

    def forget(self) -> None:
        """As `Handle.forget`, of what is on its way at least."""
        self._deferral.send_recorded()
        super().forget()

    def make_views(self) -> None:
        """Makes the views that keep the memory when this is deleted."""
        self.contents.make_views(self.name)

    def delete(self, timeout: float | None = None) -> None:
        """As `RemoteTensor.delete`."""
        check_timeout(timeout)
        self.make_views()
        super().delete(timeout)

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


def _seen(base: DeferredTensor, stages: Sequence[Stage], view_tag: bytes) -> bytes:
    """Returns the fields of a message that name a tensor and how it is seen."""
    view = length_delimited(encoded_view(stages))
    return length_delimited(base.named() + view_tag + view)


class Contents:
    """What is known of the contents of a tensor and of its views.

    Attributes:
        writers: How many operations have yet to write them.
        failures: What those failed with that were to write them last, by the names that
            they were to be written by.
    """

    def __init__(self) -> None:
        self.writers = 0
        self.failures: dict[str, error_pb2.Error] = {}
        # Views that are not made yet, by their ids: tensors compare by elements.
        self._unmade: weakref.WeakValueDictionary[int, DeferredTensor] | None = None

    def add_view(self, view: DeferredTensor) -> None:
        """Takes note of a view that is not made yet."""
        with _VIEWS:
            if self._unmade is None:
                self._unmade = weakref.WeakValueDictionary()
            self._unmade[id(view)] = view

    def forget_view(self, view: DeferredTensor) -> None:
        """Says that it is made."""
        with _VIEWS:
            if self._unmade is not None:
                self._unmade.pop(id(view), None)

    def make_views(self, name: str) -> None:
        """Makes the views of a tensor of that name, which keep the memory."""
        with _VIEWS:
            views = list((self._unmade or {}).values())
        for view in views:
            base = vars(view).get("_unmade", (None,))[0]
            if base is not None and vars(base).get("name") == name:
                with contextlib.suppress(Error):  # It is raised where it is used.
                    view.make()

    def forgive(self, target: RemoteTensor) -> None:
        """Says that the tensor, or what a view sees of it, was written anew."""
        # Replaced, as others may be looking at them.
        kept = self.failures if target.is_view else {}
        self.failures = {
            name: failure
            for name, failure in kept.items()
            if name != written_name(target)
        }

    def miss(self, target: RemoteTensor, failure: error_pb2.Error) -> None:
        """Says what the tensor, or what a view sees of it, is missing for."""
        self.failures = {**self.failures, written_name(target): failure}

    def met(self, refusal: error_pb2.Error) -> None:
        """Says that somebody knows that the operation was refused: all is as before."""
        self.failures = {
            name: each for name, each in self.failures.items() if each is not refusal
        }


def written_name(target: RemoteTensor) -> str:
    """What a tensor is told apart by among those that see its contents.

    Nobody is asked, and it stays as it is when a view gets a name.
    """
    known: str | None = vars(target).get("_written")
    if known is None:
        sight = getattr(target, "_sight", None)
        base, stages = vars(target).get("_unmade", (None, ()))
        if sight is not None:
            known = f"by {sight}"
        elif base is not None:
            known = f"{written_name(base)} by {stages}"
        else:
            known = target.name
        vars(target)["_written"] = known
    return known


def contents_of(tensor: Any) -> Contents:
    """Returns what is known of a tensor's contents; of what is never deferred, nothing."""
    contents = getattr(tensor, "contents", None)
    return contents if isinstance(contents, Contents) else Contents()


def failure_of(operands: Held) -> error_pb2.Error | None:
    """Returns what one of them is missing for."""
    for operand in operands:
        for failure in contents_of(operand).failures.values():
            return failure
    return None
