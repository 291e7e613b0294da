"""Channels to one server, and calls on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

import grpc

from tensord._arguments import timeout_seconds
from tensord._credentials import Credentials, Metadata
from tensord.errors import DeadlineExceeded, FailedPrecondition, from_rpc_error
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


class ResponseStream:
    """The responses of a call that has many, and its end."""

    def __init__(self, call: Any, translated: Callable[[Exception], Exception]) -> None:
        self._call = call
        self._translated = translated

    def __iter__(self) -> Iterator[compute_pb2.ExecuteStreamResponse]:
        """Yields them; raises as the status says."""
        try:
            yield from self._call
        except (grpc.RpcError, ValueError) as error:
            raise self._translated(error) from None

    def cancel(self) -> None:
        """Ends the call soon; from any thread."""
        self._call.cancel()


class Stubs:
    """The services of a server, as methods that take a request.

    Attributes:
        admin, session, tensor, view, compute, plan, plan_cache, program: The services.
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

    def __init__(
        self, address: str, timeout: float, credentials: Credentials
    ) -> None:
        """Connects when the first call is made.

        Args:
            address: `host:port` or `unix:/path`.
            timeout: Default deadline of a call, in seconds; `math.inf` for none.
            credentials: TLS, and the token that each call brings along.
        """
        self.address = address
        self.timeout = timeout
        self.credentials = credentials
        self._closed = False
        self._calls = credentials.channel(grpc, address)
        self._bulk = credentials.channel(grpc, address)
        super().__init__(self._calls)
        self._snapshots = plan_cache_pb2_grpc.PlanCacheServiceStub(self._bulk)
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
        except (grpc.RpcError, ValueError) as error:
            what = request.DESCRIPTOR.name.removesuffix("Request")
            raise self.translated(error, what, deadline) from None

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

    def execute_stream(
        self,
        requests: Iterator[compute_pb2.ExecuteStreamRequest],
        timeout: float | None = None,
    ) -> ResponseStream:
        """Sends a stream of requests, which a thread of gRPC takes one by one."""
        self.check_open()
        deadline = self.deadline(timeout)
        return ResponseStream(
            self.compute.ExecuteStream(
                requests, timeout=deadline, metadata=self.credentials.metadata()
            ),
            lambda error: self.translated(error, "ExecuteStream", deadline),
        )

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

    def close(self) -> None:
        """Ends every call and both channels."""
        self._closed = True
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
        except (grpc.RpcError, ValueError) as error:
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
        except (grpc.RpcError, ValueError) as error:
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
        if not isinstance(error, grpc.RpcError):
            # gRPC's word for a channel that another thread has closed meanwhile.
            return self._closed_error() if self._closed else error
        known = from_rpc_error(error)
        if known.code == grpc.StatusCode.CANCELLED and self._closed:
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
        """Refuses calls once it is closed.

        Raises:
            FailedPrecondition: It is (`SESSION_CLOSED`).
        """
        if self._closed:
            raise self._closed_error()
