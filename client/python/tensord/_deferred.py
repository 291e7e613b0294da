"""Sessions whose operations return before they are done."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensord._arguments import check_timeout, remaining_seconds
from tensord._deferred_link import DeferredLink
from tensord._deferred_tensor import DeferredTensor, contents_of
from tensord._dtypes import dtype_of
from tensord._expectations import expected_factors, expected_result
from tensord._handle import Held
from tensord._operations import Input
from tensord._pipeline import Pipeline
from tensord._plans import Plan, PlanOptions
from tensord._session import Session
from tensord._settings import Options, Settings
from tensord._shortcuts import Asked
from tensord._specs import TensorSpec
from tensord._subscripts import Modes
from tensord._tensor import RemoteTensor
from tensord._tensor_handle import Factor, TensorHandle, TensorLike
from tensord.errors import from_error
from tensord.v1 import compute_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DeferredSession(Session):
    """A session whose operations return at once, of `connect(deferred=True)` or `recorded`.

    They are sent over one stream without anyone waiting for responses, and take effect
    in the order in which they were called. If they are recorded, they are sent only when
    a value is wanted or there are many, see `connect`, without those whose results
    nobody has any more: those fail with nothing. Deferred are contractions, permutations,
    reductions, element-wise operations and factorizations, by whatever name (`einsum` of up to two
    operands, `a + b`, `a.sum()`), and plans of them, if shape and dtype of the result
    are known here: operands of different dtypes want `dtype`. A view is part of what uses
    it, and takes no call. All else is done at once, after what was deferred before:
    uploads, large downloads, programs, and what has a `timeout` of its own.

    An operation that fails raises nothing where it is called, unless its arguments can
    be seen here to be wrong. Its error is raised where its result is used, as often as
    that is, and so is that of an operation whose operand it is. It names the call: what
    it was, in which file and line. Errors that nobody has met are raised by `wait` or
    at the end of `with`.

    A tensor that is dropped stays on the server until the operations that use it are
    done.
    """

    _tensor_class = DeferredTensor
    _awaits = False

    def __init__(self, link: DeferredLink) -> None:
        """Use `tensord.connect`."""
        super().__init__(link)
        self.deferral = link
        self._recordings = link.recordings()  # Kept by this alone.

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

    def delete(
        self, tensors: Iterable[RemoteTensor | str], timeout: float | None = None
    ) -> int:
        """As `Session.delete`."""
        if isinstance(tensors, (str, RemoteTensor)):
            return super().delete(tensors, timeout)  # Which refuses it.
        known = list(tensors)
        if any(isinstance(each, str) for each in known):
            self.deferral.settle(timeout)  # Names are known of what is there.
        for each in known:
            if isinstance(each, DeferredTensor):
                each.make_views()
            elif isinstance(each, str):
                name = each.rpartition("/")[2]
                self.deferral.contents_of(name).make_views(name)
        return super().delete(known, timeout)

    def pipeline(self, timeout: float | None = None) -> Pipeline:
        """As `Session.pipeline`; each of its operations comes after what was deferred.

        What is deferred meanwhile does not wait for them, but for their `result`.
        """
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
        asked = Asked(operation, inputs, modes_d, factors, options, fields or {})
        request = self._shortcuts.find_operation(asked)
        if request is not None:
            operands = tuple(each[0] for each in inputs.values() if each[0] is not None)
            out: Any = options.get("out")
            return self.deferral.defer_again(self, request, operands, factors, out)[0]
        expected = expected_result(inputs, modes_d, options, fields or {})
        with self.deferral.deferring(expected):
            return super()._submit(operation, inputs, modes_d, factors, options, fields)

    def factorize(
        self, subscripts: str, a: TensorLike, **options: Any
    ) -> tuple[RemoteTensor, ...]:
        """As `Session.factorize`; deferred, unless there are `out` or `timeout`."""
        request = self._shortcuts.find_factorization(subscripts, a, options)
        if request is not None:
            return self.deferral.defer_again(self, request, (a,), {})
        is_known = isinstance(a, (TensorHandle, np.ndarray))
        waits = options.get("out") is not None or options.get("timeout") is not None
        known = TensorSpec((), np.bool_) if is_known and not waits else None
        with self.deferral.deferring(known):
            return super().factorize(subscripts, a, **options)

    def _perform_factorization(
        self,
        request: Any,
        places: tuple[Settings, ...],
        held: Held,
    ) -> Any:
        if self.deferral.expected is None:
            return super()._perform_factorization(request, places, held)
        operand: Any = held[0] if held else _inline_spec(request.a.inline)
        specs = expected_factors(request, operand)
        names = [place.name for place in places]
        return self.deferral.defer_factors(self, request, names, specs, held)

    def _einsum_again(
        self, subscripts: Any, operands: tuple[Any, ...]
    ) -> RemoteTensor | None:
        request = self._shortcuts.find(subscripts, operands)
        if request is None:
            return None
        return self.deferral.defer_again(self, request, operands, {})[0]

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
        contents_of(made).forgive(made)
        return made


def _inline_spec(message: compute_pb2.InlineTensor) -> TensorSpec:
    """Returns what an operand is like that is part of a request."""
    return TensorSpec(tuple(message.layout.extents), dtype_of(message.element_type))


def _begun(tensor: RemoteTensor) -> RemoteTensor:
    """Returns a tensor that was made just now."""
    if isinstance(tensor, DeferredTensor):
        tensor.begin(is_there=True)
    return tensor
