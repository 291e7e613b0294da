// Which trace a call is part of, as W3C Trace Context says it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

struct TraceContext {
  std::array<uint64_t, 2> trace_id = {};  // higher half first; 0: no trace
  uint64_t parent_span = 0;               // the caller's; 0: there is none
  uint64_t span = 0;                      // the call's own; 0: it is not traced
  bool is_sampled = false;
  std::string state;  // tracestate, as it came

  bool has_trace() const { return (trace_id[0] | trace_id[1]) != 0; }
  /// 32 hexadecimal digits; "": there is none.
  std::string trace_id_text() const;
};

/// What the headers `traceparent` and `tracestate` say; a state that is
/// malformed is left out. Nothing: `traceparent` is malformed.
std::optional<TraceContext> ParseTraceContext(absl::string_view traceparent,
                                              absl::string_view tracestate);

/// A random id, never 0.
uint64_t NewSpanId();

/// True for a share of `ratio` of the times it is asked.
bool IsChosen(double ratio);

}  // namespace tensord::server
