"""The trace that calls are part of."""

from __future__ import annotations

import sys
from typing import Any


def current_trace() -> tuple[tuple[str, str], ...]:
    """Returns the current span of OpenTelemetry as metadata, W3C's; () without one.

    A program with a span has imported the package, so that nobody else waits for it.
    """
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return ()
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return ()
    parent = f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
    state = span.trace_state.to_header()
    return (("traceparent", parent), *([("tracestate", state)] if state else []))
