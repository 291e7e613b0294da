#include "server/rpc/tracing/tracing.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"

namespace tensord::rpc {
namespace {

constexpr char kParentKey[] = "traceparent";
constexpr char kStateKey[] = "tracestate";
// Of one stream; more of them would leave no room for other calls.
constexpr int64_t kMostOperations = 128;

/// What the caller says the call is part of.
server::TraceContext ContextOf(const WireCall& call) {
  int parents = 0;
  absl::string_view parent;
  call.ForEach(kParentKey, [&](absl::string_view value) {
    ++parents;
    parent = value;
  });
  if (parents != 1) return {};
  std::string state;
  call.ForEach(kStateKey, [&](absl::string_view value) {
    absl::StrAppend(&state, state.empty() ? "" : ",", value);
  });
  return server::ParseTraceContext(parent, state)
      .value_or(server::TraceContext());
}

server::Activity ActivityOf(const CallRecord& record,
                            const absl::Status& status) {
  server::Activity activity;
  activity.trace = record.trace;
  activity.rpc = std::string(record.rpc->name);
  if (record.operation != nullptr) {
    activity.operation = record.operation->name();
  } else if (record.rpc->transfer != nullptr) {
    activity.operation =
        record.rpc->name == "UploadTensor" ? "upload" : "download";
  }
  activity.kernel = std::string(record.kernel);
  if (record.session != nullptr) {
    activity.device = record.session->device().info().name;
    activity.session = record.session->number();
  }
  if (record.identity != nullptr) activity.tenant = record.identity->tenant();
  activity.request_id = record.request_id;
  activity.code = status.code();
  activity.reason = core::ReasonOf(status);
  activity.begun = absl::Now() - record.took;
  activity.took = record.took;
  activity.phases = record.phases;
  return activity;
}

}  // namespace

absl::Status Tracing::StartCall(const WireCall& call, CallRecord& record) {
  server::TraceContext& trace = record.trace;
  trace = ContextOf(call);
  if (export_.queue == nullptr) return absl::OkStatus();
  if (!trace.has_trace() && server::IsChosen(export_.ratio)) {
    trace.trace_id = {server::NewSpanId(), server::NewSpanId()};
    trace.is_sampled = true;
  }
  if (trace.is_sampled) trace.span = server::NewSpanId();
  return absl::OkStatus();
}

void Tracing::CallCompleted(const WireCall&, const CallRecord& record,
                            const absl::Status& status) {
  Take(record, status, /*is_of_stream=*/false);
}

void Tracing::OperationCompleted(const CallRecord& record,
                                 const absl::Status& status) {
  Take(record, status, /*is_of_stream=*/true);
}

void Tracing::Take(const CallRecord& record, const absl::Status& status,
                   bool is_of_stream) {
  // Strangers, who do nothing, are counted, and neither traced nor recorded.
  if (record.identity == nullptr) return;
  const bool is_too_many =
      is_of_stream && record.ended_operations > kMostOperations;
  const bool is_exported = record.trace.span != 0 && !is_too_many;
  const bool is_recorded = timelines_.is_recording();
  if (!is_exported && !is_recorded) return;
  server::Activity activity = ActivityOf(record, status);
  activity.is_of_stream = is_of_stream;
  if (is_of_stream) {
    activity.trace.parent_span = activity.trace.span;
    activity.trace.span = server::NewSpanId();
  }
  if (is_recorded) timelines_.Add(activity);
  if (!is_exported) return;
  const int64_t spans = server::SpanCount(activity);
  if (!export_.queue->Add(std::move(activity))) {
    metrics_.CountSpans("dropped", spans);
  }
}

}  // namespace tensord::rpc
