"""A collector of traces that speaks OpenTelemetry's published protocol."""

from __future__ import annotations

import threading
from concurrent import futures
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1 import (
    trace_service_pb2,
    trace_service_pb2_grpc,
)
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from waiting import eventually


class Span(NamedTuple):
    """A span that came, with all that came along."""

    message: trace_pb2.Span
    resource: dict[str, Any]

    @property
    def name(self) -> str:
        return self.message.name

    @property
    def attributes(self) -> dict[str, Any]:
        return to_dict(self.message.attributes)

    @property
    def nanoseconds(self) -> int:
        return self.message.end_time_unix_nano - self.message.start_time_unix_nano


def to_dict(attributes: Any) -> dict[str, Any]:
    def value(of: common_pb2.AnyValue) -> Any:
        return getattr(of, of.WhichOneof("value"))

    return {each.key: value(each.value) for each in attributes}


def has_unknown_fields(message: Message) -> bool:
    """Whether anything in it is not of the published protocol."""
    if len(UnknownFieldSet(message)) > 0:
        return True
    parts = []
    for field, value in message.ListFields():
        if field.message_type is not None:
            parts += list(value) if field.is_repeated else [value]
    return any(has_unknown_fields(part) for part in parts)


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Listens from construction to the end of the with block.

    Attributes:
        status: What calls are answered with.
        is_awake: Unless it is set, calls are not answered.
        address: Where it listens, `localhost:port`.
    """

    def __init__(self, port: int = 0) -> None:
        self.status = grpc.StatusCode.OK
        self.is_awake = threading.Event()
        self.is_awake.set()
        self.call_count = 0
        self._requests: list[trace_service_pb2.ExportTraceServiceRequest] = []
        self._server = grpc.server(
            futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)]
        )
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"localhost:{port}")
        self.address = f"localhost:{self.port}"
        self._server.start()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *unused: object) -> None:
        self.is_awake.set()
        self._server.stop(None).wait()

    def Export(  # noqa: N802  the name in the protocol
        self,
        request: trace_service_pb2.ExportTraceServiceRequest,
        context: grpc.ServicerContext,
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        self.call_count += 1
        self.is_awake.wait()
        if self.status is not grpc.StatusCode.OK:
            context.abort(self.status, "not now")
        self._requests.append(request)
        return trace_service_pb2.ExportTraceServiceResponse()

    def spans(self, rpc: str = "") -> list[Span]:
        """All that came, or those of traces with a call of that rpc."""
        found = []
        for request in list(self._requests):
            assert not has_unknown_fields(request)
            for resource in request.resource_spans:
                attributes = to_dict(resource.resource.attributes)
                for scope in resource.scope_spans:
                    found += [Span(span, attributes) for span in scope.spans]
        traces = {span.message.trace_id for span in found if span.name == rpc}
        return [span for span in found if not rpc or span.message.trace_id in traces]

    def await_spans(self, rpc: str) -> list[Span]:
        """The same, when there are any."""
        assert eventually(lambda: bool(self.spans(rpc)))
        return self.spans(rpc)
