"""Links to a session whose calls are awaited."""

from __future__ import annotations

import asyncio
import gc
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensord._arguments import check_timeout
from tensord._connection import Connection, Stubs, kind_of, name_of
from tensord._handle import Handle, Held
from tensord._session_link import Answer, Question, SessionLink
from tensord._specs import TensorSpec
from tensord._transport import CALL_ERRORS
from tensord.errors import ResourceExhausted
from tensord.reports import ServerInfo
from tensord.v1 import session_pb2, tensor_pb2

if TYPE_CHECKING:
    from typing_extensions import Self


class AwaitedLink(SessionLink):
    """A link for a `tensord.aio.Session`, made and used within one event loop.

    Attributes:
        stubs: Services whose methods return what is to be awaited.
    """

    def __init__(
        self,
        connection: Connection,
        info: ServerInfo,
        opened: session_pb2.Session,
        transport: str = "auto",
    ) -> None:
        super().__init__(connection, info, opened, transport)
        self._channel = connection.awaited_channel()
        self.stubs = Stubs(self._channel)

    async def call(
        self,
        method: Callable[..., Awaitable[Any]],
        request: Any,
        timeout: float | None = None,
    ) -> Any:
        """Makes one unary call.

        Args:
            method: One of `stubs`.
            request: Its request.
            timeout: Deadline in seconds; None for the default.

        Raises:
            Error: As the status says.
        """
        check_timeout(timeout)
        self.connection.check_open()
        self.last_request = request
        deadline = self.connection.deadline(timeout)
        try:
            metadata = self.connection.credentials.metadata()
            return await method(request, timeout=deadline, metadata=metadata)
        except CALL_ERRORS as error:
            what = name_of(method, request)
            raise self.connection.translated(error, what, deadline) from None

    async def call_allocating(
        self,
        method: Callable[..., Awaitable[Any]],
        request: Any,
        timeout: float | None,
    ) -> Any:
        """Makes a call; when memory lacks, first lets go what nobody holds."""
        deleted_before = self.keeper.deleted_count
        try:
            return await self.call(method, request, timeout)
        except ResourceExhausted:
            gc.collect()
            await asyncio.to_thread(self.keeper.flush)
            trimmed = await asyncio.to_thread(self.memory.trim)
            if self.keeper.deleted_count == deleted_before and not trimmed:
                raise
        return await self.call(method, request, timeout)

    async def ask(self, question: Question[Answer]) -> Answer:
        """Returns the answer to a question."""
        await place(question.held)
        call = self.call_allocating if question.allocates else self.call
        method = question.method_of(self.stubs)
        with question.errors:
            response = await call(method, question.request, question.timeout)
        return question.answer(response)

    async def create(
        self, spec: TensorSpec, name: str | None, timeout: float | None
    ) -> tensor_pb2.Tensor:
        """Creates a tensor without contents."""
        method = self.stubs.tensor.CreateTensor
        response: tensor_pb2.CreateTensorResponse
        response = await self.call_allocating(
            method, self.creation(spec, name), timeout
        )
        return response.tensor

    async def upload(
        self,
        array: np.ndarray[Any, Any],
        spec: TensorSpec,
        name: str | None,
        timeout: float | None,
    ) -> tensor_pb2.Tensor:
        """Creates a tensor with the contents of an array that `spec` fits."""
        check_timeout(timeout)
        share = self.memory.upload
        shared = await asyncio.to_thread(share, array, spec, name, timeout)
        if shared is not None:
            return shared
        data = spec.laid_out(array)
        tensor = await self.create(spec, name, timeout)
        try:
            await self.fill(tensor.name, data, timeout, empty=True)
        except BaseException:
            self.keeper.discard(tensor.name)
            raise
        return tensor

    async def fill(
        self, full_name: str, data: np.ndarray, timeout: float | None, *, empty: bool
    ) -> None:
        """Fills a tensor, as `Transfers.upload`."""
        upload = self.transfers.upload
        await asyncio.to_thread(upload, full_name, data, timeout, empty=empty)

    def stage(
        self, array: np.ndarray[Any, Any], spec: TensorSpec, timeout: float | None
    ) -> Staged:
        """As `SessionLink.stage`; `place` creates and fills it."""
        return Staged(self, array, spec, timeout)

    async def describe(self, full_name: str, timeout: float | None = None) -> Any:
        """Returns what a tensor or program is as of now."""
        response = await self.call(*self.stubs.description(full_name), timeout)
        return getattr(response, kind_of(full_name))

    async def close(self) -> None:
        """Ends every call."""
        await self._channel.close()


class AwaitedHandle(Handle):
    """A tensor or program that can be deleted, at the end of `async with`, too."""

    link: Any

    async def delete(self, timeout: float | None = None) -> None:
        """Deletes it; what uses it still ends.

        Args:
            timeout: Deadline in seconds; None for the default.

        Raises:
            NotFound: It was deleted before.
        """
        check_timeout(timeout)
        self.forget()
        await self.link.call(*self.link.stubs.deletion(self.full_name), timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.delete()


class Staged(Handle):
    """A temporary tensor that gets its contents before the request that names it."""

    def __init__(
        self,
        link: AwaitedLink,
        array: np.ndarray[Any, Any],
        spec: TensorSpec,
        timeout: float | None,
    ) -> None:
        super().__init__(link.full_name("tensor", f"staged-{uuid.uuid4().hex}"), None)
        self._link = link
        self._contents = (array, spec, timeout)

    async def place(self) -> None:
        """Creates it; from here on it leaves the server with this object."""
        array, spec, timeout = self._contents
        self._leave_with_object(self._link.keeper)
        share = self._link.memory.upload
        if await asyncio.to_thread(share, array, spec, self.name, timeout) is not None:
            return
        await self._link.create(spec, self.name, timeout)
        data = spec.laid_out(array)
        await self._link.fill(self.full_name, data, timeout, empty=True)


async def place(held: Held) -> None:
    """Fills the temporary tensors among those that a request needs."""
    for each in held:
        if isinstance(each, Staged):
            await each.place()
