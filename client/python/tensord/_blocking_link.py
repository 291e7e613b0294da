"""Links to a session whose calls wait for their responses."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tensord._arguments import check_timeout
from tensord._connection import Method, kind_of
from tensord._handle import Handle
from tensord._session_link import Answer, Question, SessionLink
from tensord._specs import TensorSpec
from tensord.errors import ResourceExhausted
from tensord.v1 import tensor_pb2

if TYPE_CHECKING:
    from typing_extensions import Self

Response = TypeVar("Response")


class BlockingLink(SessionLink):
    """A link for a `tensord.Session`."""

    def call(
        self, method: Method[Response], request: Any, timeout: float | None = None
    ) -> Response:
        """Makes one unary call.

        Args:
            method: One of `connection`.
            request: Its request.
            timeout: Deadline in seconds; None for the default.

        Raises:
            Error: As the status says.
        """
        check_timeout(timeout)
        self.last_request = request
        return self.connection.call(method, request, timeout)

    def call_allocating(
        self, method: Method[Response], request: Any, timeout: float | None
    ) -> Response:
        """Makes a call; when memory lacks, first lets go what nobody holds."""
        deleted_before = self.keeper.deleted_count
        try:
            return self.call(method, request, timeout)
        except ResourceExhausted:
            gc.collect()
            self.keeper.flush()
            trimmed = self.memory.trim()
            if self.keeper.deleted_count == deleted_before and not trimmed:
                raise
        return self.call(method, request, timeout)

    def ask(self, question: Question[Answer]) -> Answer:
        """Returns the answer to a question."""
        call = self.call_allocating if question.allocates else self.call
        method = question.method_of(self.connection)
        with question.errors:
            response = call(method, question.request, question.timeout)
        return question.answer(response)

    def create(
        self, spec: TensorSpec, name: str | None, timeout: float | None
    ) -> tensor_pb2.Tensor:
        """Creates a tensor without contents."""
        method = self.connection.tensor.CreateTensor
        response: tensor_pb2.CreateTensorResponse
        response = self.call_allocating(method, self.creation(spec, name), timeout)
        return response.tensor

    def upload(
        self,
        array: np.ndarray[Any, Any],
        spec: TensorSpec,
        name: str | None,
        timeout: float | None,
    ) -> tensor_pb2.Tensor:
        """Creates a tensor with the contents of an array that `spec` fits."""
        check_timeout(timeout)
        shared = self.memory.upload(array, spec, name, timeout)
        if shared is not None:
            return shared
        data = spec.laid_out(array)
        tensor = self.create(spec, name, timeout)
        try:
            self.transfers.upload(tensor.name, data, timeout, empty=True)
        except BaseException:
            self.keeper.discard(tensor.name)
            raise
        return tensor

    def stage(
        self, array: np.ndarray[Any, Any], spec: TensorSpec, timeout: float | None
    ) -> Handle:
        """As `SessionLink.stage`; its contents are there already."""
        return Handle(self.upload(array, spec, None, timeout).name, self.keeper)

    def settle(self, timeout: float | None = None) -> None:
        """Waits until what was deferred is done; here nothing is.

        Args:
            timeout: Most seconds to wait.
        """

    def describe(self, full_name: str, timeout: float | None = None) -> Any:
        """Returns what a tensor, plan or program is as of now."""
        response = self.call(*self.connection.description(full_name), timeout)
        return getattr(response, kind_of(full_name))

    def list(self, kind: str) -> Iterator[Any]:
        """Yields all tensors, plans or programs of the session, by their names."""
        for page in self.connection.pages(*self.connection.listing(kind, self.name)):
            yield from getattr(page, f"{kind}s")


class BlockingHandle(Handle):
    """A tensor, plan or program that can be deleted, at the end of `with`, too."""

    link: Any

    def delete(self, timeout: float | None = None) -> None:
        """Deletes it; what uses it still ends, and views of a tensor stay.

        Args:
            timeout: Deadline in seconds; None for the default.

        Raises:
            NotFound: It was deleted before.
        """
        check_timeout(timeout)
        self.forget()
        self.link.call(*self.link.connection.deletion(self.full_name), timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete()
