"""Channels of the native core, with those methods of gRPC's that stubs call."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from typing import Any

from tensord._transport import Options, Pem, core

Serializer = Callable[[Any], bytes]
Deserializer = Callable[[bytes], Any]

# How long responses wait for others, if nobody waits for them.
_GATHER_SECONDS = 1e-3
_INTERNAL = 13  # As a status.


class NativeChannel:
    """A channel whose calls wait. Safe for use by many threads.

    Attributes:
        core: What the C++ client makes its calls with.
    """

    def __init__(self, address: str, options: Options, pem: Pem | None) -> None:
        """Connects when the first call is made.

        Args:
            address: `host:port` or `unix:/path`.
            options: gRPC's, by their names.
            pem: Of TLS; None for plaintext.
        """
        self.core = core.Channel(address, options, pem)

    def unary_unary(
        self,
        method: str,
        request_serializer: Serializer | None,
        response_deserializer: Deserializer,
        **_: Any,
    ) -> Callable[..., Any]:
        return _UnaryMethod(
            self.core, method, request_serializer or bytes, response_deserializer
        )

    def unary_stream(
        self,
        method: str,
        request_serializer: Serializer,
        response_deserializer: Deserializer | None = None,
        **_: Any,
    ) -> Callable[..., Any]:
        def invoke(
            request: Any, *, timeout: float | None = None, metadata: Any = None
        ) -> Any:
            stream = core.Stream(self.core, method, timeout, metadata)
            stream.write(request_serializer(request))
            stream.end_writes()
            return _Responses(stream, response_deserializer)

        return invoke

    def stream_unary(
        self,
        method: str,
        request_serializer: Serializer | None = None,
        *,
        response_deserializer: Deserializer,
        **_: Any,
    ) -> Callable[..., Any]:
        def invoke(
            requests: Iterable[Any],
            *,
            timeout: float | None = None,
            metadata: Any = None,
        ) -> Any:
            stream = core.Stream(self.core, method, timeout, metadata)
            try:
                for request in requests:
                    message = request
                    if request_serializer is not None:
                        message = request_serializer(request)
                    if not stream.write(message):
                        break
                stream.end_writes()
                replies = stream.read(0.0)
                stream.finish()
            finally:
                stream.cancel()
            if not replies:
                raise core.CallError(
                    _INTERNAL, f"{method} ended without a response", []
                )
            return response_deserializer(replies[0])

        return invoke

    def stream_stream(
        self, method: str, request_serializer: Serializer, **_: Any
    ) -> Callable[..., Any]:
        """Its calls take messages one by one and give bytes, see `Exchange`.

        Those that wait together travel as the field `batch` of one.
        """

        def invoke(*, timeout: float | None, metadata: Any) -> Exchange:
            stream = core.Stream(self.core, method, timeout, metadata, packs=True)
            return Exchange(stream, request_serializer)

        return invoke

    def close(self) -> None:
        """Cancels all calls."""
        self.core.close()


class _UnaryMethod:
    """A method with one request and one response."""

    __slots__ = ("_channel", "_name", "_serialize", "_deserialize", "_call")

    def __init__(
        self,
        channel: Any,
        name: str,
        serialize: Serializer,
        deserialize: Deserializer,
    ) -> None:
        self._channel = channel
        self._name = name
        self._serialize = serialize
        self._deserialize = deserialize
        self._call = channel.call

    def __call__(
        self, request: Any, *, timeout: float | None = None, metadata: Any = None
    ) -> Any:
        reply = self._call(self._name, self._serialize(request), timeout, metadata)
        return self._deserialize(reply)

    def begin(
        self, request: Any, *, timeout: float | None, metadata: Any
    ) -> Callable[[], Any]:
        """Begins the call; returns what waits for its response, once.

        Dropping that cancels the call.
        """
        message = self._serialize(request)
        call = core.PendingCall(self._channel, self._name, message, timeout, metadata)
        return lambda: self._deserialize(call.result())


class _Responses:
    """The responses of a call."""

    def __init__(self, stream: Any, deserializer: Deserializer | None) -> None:
        self._stream = stream
        self._deserializer = deserializer

    def __iter__(self) -> Iterator[Any]:
        while messages := self._stream.read(0.0):
            yield from (
                messages
                if self._deserializer is None
                else map(self._deserializer, messages)
            )
        self._stream.finish()

    def cancel(self) -> None:
        self._stream.cancel()


class Exchange:
    """A call with many messages either way. Safe for use by many threads."""

    def __init__(self, stream: Any, serializer: Serializer) -> None:
        self._stream = stream
        self._serializer = serializer
        self._impatient = 0

    def send(self, *requests: Any) -> None:
        """Sends requests soon."""
        for request in requests:
            self._stream.write(self._serializer(request))

    def flush(self) -> None:
        """Sends at once what waits for others to go with them."""
        self._stream.flush()

    def end(self) -> None:
        """Says that nothing follows."""
        self._stream.end_writes()

    def batches(self) -> Iterator[list[bytes]]:
        """Yields responses, many at a time unless someone waits for one."""
        while messages := self._stream.read(
            0.0 if self._impatient else _GATHER_SECONDS
        ):
            yield messages
        self._stream.finish()

    @contextlib.contextmanager
    def awaited(self) -> Generator[None, None, None]:
        """While somebody waits, responses do not."""
        self._impatient += 1
        self._stream.hurry()
        try:
            yield
        finally:
            self._impatient -= 1

    def cancel(self) -> None:
        """Ends the call soon."""
        self._stream.cancel()


class AwaitedNativeChannel:
    """A channel whose calls are awaited, made and used within one event loop."""

    def __init__(self, address: str, options: Options, pem: Pem | None) -> None:
        """As `NativeChannel`."""
        self._core = core.Channel(address, options, pem)
        self._calls = _LoopCalls.of_running_loop()
        self._calls.enter()

    def unary_unary(
        self,
        method: str,
        request_serializer: Serializer | None,
        response_deserializer: Deserializer,
        **_: Any,
    ) -> Callable[..., Awaitable[Any]]:
        serialize = request_serializer or bytes

        async def invoke(
            request: Any, *, timeout: float | None = None, metadata: Any = None
        ) -> Any:
            message = serialize(request)
            reply = await self._calls.make(
                self._core, method, message, timeout, metadata
            )
            return response_deserializer(reply)

        return invoke

    def unary_stream(self, method: str, **_: Any) -> Callable[..., Any]:
        return _not_awaited(method)

    def stream_unary(self, method: str, **_: Any) -> Callable[..., Any]:
        return _not_awaited(method)

    def stream_stream(self, method: str, **_: Any) -> Callable[..., Any]:
        return _not_awaited(method)

    async def close(self) -> None:
        """Cancels all calls."""
        self._core.close()
        self._calls.leave()


def _not_awaited(method: str) -> Callable[..., Any]:
    """Streams carry data and snapshots, which threads do."""

    def invoke(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{method} is made by a channel whose calls wait")

    return invoke


class _LoopCalls:
    """The calls that an event loop awaits, whose ends wake it once for many."""

    _of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopCalls]
    _of_loops = weakref.WeakKeyDictionary()

    def __init__(self) -> None:
        self._calls = core.Calls()
        self._futures: dict[int, asyncio.Future[bytes]] = {}
        self._users = 0

    @classmethod
    def of_running_loop(cls) -> _LoopCalls:
        loop = asyncio.get_running_loop()
        calls = cls._of_loops.get(loop)
        if calls is None:
            calls = cls._of_loops[loop] = cls()
        return calls

    def enter(self) -> None:
        """Says that one more channel makes its calls here."""
        if self._users == 0:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._calls.descriptor, self._take)
        self._users += 1

    def leave(self) -> None:
        """Says that one makes no more; those under way are cancelled."""
        self._take()
        self._users -= 1
        if self._users == 0 and not self._futures:
            self._stop_reading()

    def _stop_reading(self) -> None:
        asyncio.get_running_loop().remove_reader(self._calls.descriptor)

    async def make(
        self,
        channel: Any,
        method: str,
        message: bytes,
        timeout: float | None,
        metadata: Any,
    ) -> bytes:
        """Makes a call; raises a CallError unless it ends with OK."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        number = self._calls.begin(channel, method, message, timeout, metadata)
        self._futures[number] = future
        try:
            return await future
        except asyncio.CancelledError:
            self._calls.cancel(number)
            raise

    def _take(self) -> None:
        for number, result in self._calls.take():
            future = self._futures.pop(number)
            if future.done():  # Nobody waits any more.
                continue
            if isinstance(result, bytes):
                future.set_result(result)
            else:
                future.set_exception(core.CallError(*result))
        if self._users == 0 and not self._futures:
            self._stop_reading()
