"""Channels to one server, and calls on them."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Protocol, TypeVar

import grpc
import grpc.aio

from tensord._arguments import timeout_seconds
from tensord._credentials import Credentials, Metadata
from tensord._exchange import Exchange, encoded
from tensord._native_channel import AwaitedNativeChannel, NativeChannel
from tensord._transport import CALL_ERRORS, FAILURES, core, grpcio_channel
from tensord.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    from_outcome,
    from_rpc_error,
)
from tensord.v1 import (
    admin_pb2_grpc,
    compute_pb2,
    compute_pb2_grpc,
    plan_cache_pb2,
    plan_cache_pb2_grpc,
    plan_pb2,
    plan_pb2_grpc,
    program_pb2,
    program_pb2_grpc,
    session_pb2_grpc,
    tensor_pb2,
    tensor_pb2_grpc,
    view_pb2_grpc,
)

Response = TypeVar("Response", covariant=True)

# Of what sessions have, by its kind.
_MESSAGES = {"tensor": tensor_pb2, "plan": plan_pb2, "program": program_pb2}


def kind_of(full_name: str) -> str:
    """Returns "tensor", "plan" or "program"."""
    return full_name.split("/")[2].removesuffix("s")


class Method(Protocol[Response]):
    """A unary method of a stub."""

    def __call__(
        self, request: Any, *, timeout: float | None, metadata: Metadata | None
    ) -> Response: ...


class EncodedMethod:
    """A unary method of the compute service, which takes its request as bytes.

    Attributes:
        name: The method's.
    """

    def __init__(self, channel: Any, name: str) -> None:
        """
        Args:
            channel: As `Stubs` takes it.
            name: The method's.
        """
        self.name = name
        response = getattr(compute_pb2, f"{name}Response")
        self._call = channel.unary_unary(
            f"/tensord.v1.ComputeService/{name}",
            request_serializer=None,
            response_deserializer=response.FromString,
        )

    def __call__(
        self, request: bytes, *, timeout: float | None, metadata: Metadata | None
    ) -> Any:
        return self._call(request, timeout=timeout, metadata=metadata)


def name_of(method: Any, request: Any) -> str:
    """Returns the name of a unary method, whose request may be bytes."""
    if isinstance(method, EncodedMethod):
        return method.name
    name: str = request.DESCRIPTOR.name
    return name.removesuffix("Request")


class Stubs:
    """The services of a server, as methods that take a request.

    Attributes:
        admin, session, tensor, view, compute, plan, plan_cache, program: The services.
        encoded: Methods that take bytes, by their operations.
    """

    def __init__(self, channel: Any) -> None:
        """
        Args:
            channel: One of gRPC's, or of its asyncio; methods are like it.
        """
        self.admin = admin_pb2_grpc.AdminServiceStub(channel)
        self.session = session_pb2_grpc.SessionServiceStub(channel)
        self.tensor = tensor_pb2_grpc.TensorServiceStub(channel)
        self.view = view_pb2_grpc.ViewServiceStub(channel)
        self.compute = compute_pb2_grpc.ComputeServiceStub(channel)
        self.plan = plan_pb2_grpc.PlanServiceStub(channel)
        self.plan_cache = plan_cache_pb2_grpc.PlanCacheServiceStub(channel)
        self.program = program_pb2_grpc.ProgramServiceStub(channel)
        self.encoded = {
            name.lower(): EncodedMethod(channel, name)
            for name in ("Contract", "Permute", "Reduce")
        }

    def deletion(self, full_name: str) -> tuple[Any, Any]:
        """Returns the method, and its request, that deletes what has this name.

        Args:
            full_name: Of a tensor, plan or program, `sessions/{session}/plans/{plan}`.
        """
        kind = kind_of(full_name)
        return self._call("Delete", kind, kind.title(), **{kind: full_name})

    def deletions(self, session: str, full_names: list[str]) -> tuple[Any, Any]:
        """The same of what deletes tensors of a session, at most 1000."""
        request = tensor_pb2.DeleteTensorsRequest(session=session, tensors=full_names)
        return self.tensor.DeleteTensors, request

    def description(self, full_name: str) -> tuple[Any, Any]:
        """The same of what describes it; `kind_of` names the response's field."""
        kind = kind_of(full_name)
        return self._call("Describe", kind, kind.title(), **{kind: full_name})

    def listing(self, kind: str, session: str) -> tuple[Any, Any]:
        """The same of what lists all of a session that are of a kind, by pages.

        Args:
            kind: "tensor", "plan" or "program"; with an s, the response's field.
            session: Its full name.
        """
        return self._call("List", kind, f"{kind.title()}s", session=session)

    def _call(self, verb: str, kind: str, what: str, **fields: str) -> tuple[Any, Any]:
        method = getattr(getattr(self, kind), verb + what)
        return method, getattr(_MESSAGES[kind], f"{verb}{what}Request")(**fields)


class Connection(Stubs):
    """Two channels to a server: bulk transfers do not delay the other calls.

    Its methods are passed to `call`. Safe for use by many threads.

    Attributes:
        address: Where the server is.
        timeout: Default deadline of a call, in seconds.
        credentials: TLS, and the token that each call brings along.
    """

    def __init__(self, address: str, timeout: float, credentials: Credentials) -> None:
        """Connects when the first call is made.

        Args:
            address: `host:port` or `unix:/path`.
            timeout: Default deadline of a call, in seconds; `math.inf` for none.
            credentials: TLS, and the token that each call brings along.
        """
        self.address = address
        self.timeout = timeout
        self.credentials = credentials
        self._ending = False
        self._closed = False
        self._process = os.getpid()
        self._calls = self._channel()
        self._bulk = self._channel()
        super().__init__(self._calls)
        self._snapshots = plan_cache_pb2_grpc.PlanCacheServiceStub(self._bulk)
        self._stream: Any = self._calls.stream_stream(
            "/tensord.v1.ComputeService/ExecuteStream",
            request_serializer=encoded,
            response_deserializer=None,
        )
        # Chunks pass as bytes, see chunks.py.
        self._upload: Any = self._bulk.stream_unary(
            "/tensord.v1.TensorService/UploadTensor",
            response_deserializer=tensor_pb2.UploadTensorResponse.FromString,
        )
        self._download: Any = self._bulk.unary_stream(
            "/tensord.v1.TensorService/DownloadTensor",
            request_serializer=tensor_pb2.DownloadTensorRequest.SerializeToString,
        )

    def call(
        self, method: Method[Response], request: Any, timeout: float | None = None
    ) -> Response:
        """Makes one unary call.

        Args:
            method: A method of one of the stubs.
            request: Its request.
            timeout: Deadline in seconds; None for the default.

        Raises:
            Error: As the status says.
        """
        self.check_open()
        deadline = self.deadline(timeout)
        try:
            return method(
                request, timeout=deadline, metadata=self.credentials.metadata()
            )
        except FAILURES as error:
            what = name_of(method, request)
            raise self.translated(error, what, deadline) from None

    def begin(
        self, method: Method[Response], request: Any, timeout: float | None = None
    ) -> Callable[[], Response]:
        """Begins a unary call; returns what waits for its response, once.

        grpcio makes it at once: there, to begin one takes longer.

        Args:
            method, request, timeout: As for `call`.

        Raises:
            Error: As the status says; what is returned raises it, too.
        """
        if core is None:
            made = self.call(method, request, timeout)
            return lambda: made
        self.check_open()
        deadline = self.deadline(timeout)
        what = name_of(method, request)
        native: Any = method
        try:
            wait = native.begin(
                request, timeout=deadline, metadata=self.credentials.metadata()
            )
        except FAILURES as error:
            raise self.translated(error, what, deadline) from None

        def response() -> Response:
            try:
                awaited: Response = wait()
                return awaited
            except FAILURES as error:
                raise self.translated(error, what, deadline) from None

        return response

    def pages(
        self, method: Method[Response], request: Any, timeout: float | None = None
    ) -> Iterator[Response]:
        """Makes a call for each page of a list.

        Args:
            method: A method of one of the stubs.
            request: Its request; it is changed.
            timeout: Deadline of each call in seconds; None for the default.

        Raises:
            Error: As the status says.
        """
        while True:
            page: Any = self.call(method, request, timeout)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def execute_stream(self, timeout: float | None = None) -> Any:
        """Begins a stream of operations; returns the `Exchange`.

        What it raises is to pass `stream_errors`.
        """
        self.check_open()
        deadline = self.deadline(timeout)
        metadata = self.credentials.metadata()
        method = self._stream
        if core is not None:
            return method(timeout=deadline, metadata=metadata)
        return Exchange(
            lambda requests: method(requests, timeout=deadline, metadata=metadata)
        )

    @contextlib.contextmanager
    def stream_errors(
        self, timeout: float | None = None
    ) -> Generator[None, None, None]:
        """A context that turns the errors of a stream into this package's."""
        try:
            yield
        except FAILURES as error:
            deadline = self.deadline(timeout)
            raise self.translated(error, "ExecuteStream", deadline) from None

    @property
    def bulk_core(self) -> Any:
        """The channel for bulk transfers, for the native core; None without it."""
        return None if core is None else self._bulk.core

    def awaited_channel(self) -> Any:
        """Returns a channel to the same server whose calls are awaited."""
        options = self.credentials.options(self.address)
        pem = self.credentials.pem
        if core is not None:
            return AwaitedNativeChannel(self.address, options, pem)
        return grpcio_channel(grpc.aio, self.address, options, pem)

    def _channel(self) -> Any:
        options = self.credentials.options(self.address)
        pem = self.credentials.pem
        try:
            if core is not None:
                return NativeChannel(self.address, options, pem)
        except CALL_ERRORS as error:
            raise self.translated(error, "connect", None) from None
        return grpcio_channel(grpc, self.address, options, pem)

    def upload(
        self, messages: Iterable[bytes], timeout: float
    ) -> tensor_pb2.UploadTensorResponse:
        """Sends a stream of encoded `UploadTensorRequest`.

        Raises:
            Error: As the status says.
        """
        response: tensor_pb2.UploadTensorResponse
        response = self._send(self._upload, "UploadTensor", messages, timeout)
        return response

    def download(
        self, request: tensor_pb2.DownloadTensorRequest, timeout: float
    ) -> Iterator[bytes]:
        """Yields encoded `DownloadTensorResponse`; closing it ends the call.

        Raises:
            Error: As the status says.
        """
        return self._receive(self._download, "DownloadTensor", request, timeout)

    def load_plan_cache(
        self,
        messages: Iterable[plan_cache_pb2.LoadPlanCacheRequest],
        timeout: float | None,
    ) -> plan_cache_pb2.LoadPlanCacheResponse:
        """Sends a snapshot of a plan cache.

        Raises:
            Error: As the status says.
        """
        method = self._snapshots.LoadPlanCache
        response: plan_cache_pb2.LoadPlanCacheResponse
        response = self._send(method, "LoadPlanCache", messages, timeout)
        return response

    def dump_plan_cache(
        self, timeout: float | None
    ) -> Iterator[plan_cache_pb2.DumpPlanCacheResponse]:
        """Yields a snapshot of the plan cache; closing it ends the call.

        Raises:
            Error: As the status says.
        """
        method = self._snapshots.DumpPlanCache
        request = plan_cache_pb2.DumpPlanCacheRequest()
        return self._receive(method, "DumpPlanCache", request, timeout)

    def end_session(self) -> None:
        """Has calls that fail for want of their session say that it is closed."""
        self._ending = True

    def close(self) -> None:
        """Ends every call and both channels."""
        self._closed = True
        if self.is_forked:
            return  # They are the other process's.
        self._calls.close()
        self._bulk.close()

    def _send(
        self, method: Any, what: str, messages: Iterable[Any], timeout: float | None
    ) -> Any:
        """Makes a call with many requests."""
        self.check_open()
        deadline = self.deadline(timeout)
        try:
            return method(
                iter(messages),
                timeout=deadline,
                metadata=self.credentials.metadata(),
            )
        except FAILURES as error:
            raise self.translated(error, what, deadline) from None

    def _receive(
        self, method: Any, what: str, request: Any, timeout: float | None
    ) -> Iterator[Any]:
        """Makes a call with many responses."""
        self.check_open()
        deadline = self.deadline(timeout)
        stream = None
        try:
            stream = method(
                request, timeout=deadline, metadata=self.credentials.metadata()
            )
            yield from stream
        except FAILURES as error:
            raise self.translated(error, what, deadline) from None
        finally:
            if stream is not None:
                stream.cancel()

    def deadline(self, timeout: float | None) -> float | None:
        """Returns a timeout as gRPC takes it.

        Args:
            timeout: Seconds; None for the default.
        """
        seconds = timeout_seconds(self.timeout if timeout is None else timeout)
        return None if math.isinf(seconds) else seconds

    def translated(
        self, error: Exception, what: str, deadline: float | None
    ) -> Exception:
        """Returns this package's exception for what gRPC raised.

        Callers raise it at once and keep no variable for it: a frame that refers to
        its own exception would keep tensors alive until the garbage collector runs.
        """
        if not isinstance(error, CALL_ERRORS):
            return self._closed_error() if self._closed else error
        is_grpcio = isinstance(error, grpc.RpcError)
        known = from_rpc_error(error) if is_grpcio else from_outcome(*error.args)
        if self._closed and known.code == grpc.StatusCode.CANCELLED:
            return self._closed_error()
        if self._ending and known.reason == "SESSION_NOT_FOUND":
            return self._closed_error()
        if known.code == grpc.StatusCode.DEADLINE_EXCEEDED and deadline is not None:
            if known.reason == "DEADLINE_TOO_SHORT":
                return DeadlineExceeded(f"{what}: {known}", reason=known.reason)
            return DeadlineExceeded(
                f"{what} took longer than {deadline:.3g} s", reason=known.reason
            )
        return known

    def _closed_error(self) -> FailedPrecondition:
        return FailedPrecondition(
            f"the session with {self.address} is closed", reason="SESSION_CLOSED"
        )

    def check_open(self) -> None:
        """Refuses calls once it is closed, and in forks of this process.

        Raises:
            FailedPrecondition: It is (`SESSION_CLOSED`), or this is one (`FORKED`).
        """
        if self._closed:
            raise self._closed_error()
        self.check_process()

    @property
    def is_forked(self) -> bool:
        """Whether this process is a fork of the one that connects."""
        return self._process != os.getpid()

    def check_process(self) -> None:
        """Refuses whatever waits for others, whose threads are the parent's.

        Raises:
            FailedPrecondition: This process is a fork (`FORKED`).
        """
        if self.is_forked:
            raise FailedPrecondition(
                f"the session with {self.address} was opened before this process was "
                "forked, wanted one that this process opens itself",
                reason="FORKED",
            )
