#include "server/telemetry/otlp_exporter.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace tensord::server {
namespace {

constexpr size_t kBatch = 512;
constexpr absl::Duration kInterval = absl::Seconds(1);  // of smaller ones
constexpr absl::Duration kTimeout = absl::Seconds(10);  // of a call
constexpr absl::Duration kPause = absl::Seconds(1);     // after one that failed
// So that a collector which comes back is found soon.
constexpr int kReconnectMilliseconds = 1000;
// Of a span's flags.
constexpr uint32_t kSampled = 1;
constexpr uint32_t kParentIsKnown = 1 << 8;
constexpr uint32_t kParentIsRemote = 1 << 9;

std::string Bytes(uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(number >> (8 * (bytes.size() - 1 - i)));
  }
  return bytes;
}

uint64_t Nanoseconds(absl::Time time) {
  return static_cast<uint64_t>(absl::ToUnixNanos(time));
}

template <typename Message>
void AddText(Message& message, absl::string_view key, absl::string_view text) {
  if (text.empty()) return;
  otlp::KeyValue& attribute = *message.add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_value()->set_string_value(std::string(text));
}

void AddNumber(otlp::Span& span, absl::string_view key, int64_t number) {
  otlp::KeyValue& attribute = *span.add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_value()->set_int_value(number);
}

/// Whether the server, and not who called, is to blame, as OpenTelemetry's
/// conventions for gRPC have it.
bool IsServersFault(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss: return true;
    default: return false;
  }
}

otlp::Span& AddSpan(otlp::ScopeSpans& spans, const TraceContext& trace,
                    uint64_t id, uint64_t parent) {
  otlp::Span& span = *spans.add_spans();
  span.set_trace_id(Bytes(trace.trace_id[0]) + Bytes(trace.trace_id[1]));
  span.set_span_id(Bytes(id));
  if (parent != 0) span.set_parent_span_id(Bytes(parent));
  span.set_trace_state(trace.state);
  span.set_kind(otlp::Span::SPAN_KIND_INTERNAL);
  span.set_flags(kSampled | kParentIsKnown);
  return span;
}

void AddSpans(otlp::ScopeSpans& spans, const Activity& activity) {
  const TraceContext& trace = activity.trace;
  otlp::Span& own = AddSpan(spans, trace, trace.span, trace.parent_span);
  own.set_name(activity.is_of_stream ? activity.operation : activity.rpc);
  if (!activity.is_of_stream) {
    own.set_kind(otlp::Span::SPAN_KIND_SERVER);
    if (trace.parent_span != 0) own.set_flags(own.flags() | kParentIsRemote);
    AddText(own, "rpc.system", "grpc");
    AddText(own, "rpc.method", activity.rpc);
  }
  AddNumber(own, "rpc.grpc.status_code", static_cast<int64_t>(activity.code));
  AddText(own, "tensord.operation", activity.operation);
  AddText(own, "tensord.kernel", activity.kernel);
  AddText(own, "tensord.device", activity.device);
  AddText(own, "tensord.tenant", activity.tenant);
  if (activity.session != 0) {
    AddNumber(own, "tensord.session", static_cast<int64_t>(activity.session));
  }
  AddText(own, "tensord.request_id", activity.request_id);
  if (activity.code != absl::StatusCode::kOk) {
    const std::string code = absl::StatusCodeToString(activity.code);
    AddText(own, "error.type",
            activity.reason.empty() ? code : activity.reason);
    if (IsServersFault(activity.code)) {
      own.mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
      own.mutable_status()->set_message(code);
    }
  }
  own.set_start_time_unix_nano(Nanoseconds(activity.begun));
  own.set_end_time_unix_nano(Nanoseconds(activity.begun + activity.took));
  absl::Time at = activity.begun;
  for (int i = 0; i < kPhaseCount; ++i) {
    if (!activity.phases[i]) continue;
    otlp::Span& span = AddSpan(spans, trace, NewSpanId(), trace.span);
    span.set_name(std::string(NameOf(static_cast<Phase>(i))));
    span.set_start_time_unix_nano(Nanoseconds(at));
    at += *activity.phases[i];
    span.set_end_time_unix_nano(Nanoseconds(at));
  }
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "";
}

std::unique_ptr<otlp::TraceService::Stub> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  for (const char* const argument :
       {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
        GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS}) {
    arguments.SetInt(argument, kReconnectMilliseconds);
  }
  return otlp::TraceService::NewStub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments));
}

/// Whether the same may be sent again, as OTLP has it.
bool IsForNowOnly(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss: return true;
    default: return false;
  }
}

/// Spans of `activities`: one of each, and one of each of its phases.
/// `version` is the server's, `instance` names this process.
otlp::ExportTraceServiceRequest ToExportRequest(
    const std::vector<Activity>& activities, const std::string& version,
    const std::string& instance) {
  otlp::ExportTraceServiceRequest request;
  otlp::ResourceSpans& sent = *request.add_resource_spans();
  AddText(*sent.mutable_resource(), "service.name", "tensord");
  AddText(*sent.mutable_resource(), "service.version", version);
  AddText(*sent.mutable_resource(), "service.instance.id", instance);
  AddText(*sent.mutable_resource(), "host.name", HostName());
  otlp::ScopeSpans& spans = *sent.add_scope_spans();
  spans.mutable_scope()->set_name("tensord");
  spans.mutable_scope()->set_version(version);
  for (const Activity& activity : activities) AddSpans(spans, activity);
  return request;
}

}  // namespace

OtlpExporter::OtlpExporter(const std::string& address, std::string version,
                           Metrics& metrics,
                           std::function<void(const absl::Status&)> tell)
    : version_(std::move(version)),
      instance_(absl::StrCat(absl::Hex(NewSpanId(), absl::kZeroPad16))),
      metrics_(metrics),
      tell_(std::move(tell)),
      collector_(Connect(address)),
      thread_([this] { Run(); }) {}

OtlpExporter::~OtlpExporter() {
  Flush(absl::ZeroDuration());
  thread_.join();
}

void OtlpExporter::Flush(absl::Duration most) {
  queue_.Close();
  const auto has_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return has_ended_;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&has_ended), most);
  is_stopping_ = true;
  if (call_ != nullptr) call_->TryCancel();
}

void OtlpExporter::Run() {
  while (true) {
    const bool is_last = queue_.is_closed();
    const auto batch = queue_.Take(kBatch, kInterval);
    if (batch.empty()) {
      if (is_last) break;
      continue;
    }
    const Request request = ToExportRequest(batch, version_, instance_);
    Send(request, request.resource_spans(0).scope_spans(0).spans_size());
  }
  absl::MutexLock lock(&mutex_);
  has_ended_ = true;
}

void OtlpExporter::Send(const Request& request, int64_t spans) {
  const auto is_stopping = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_stopping_;
  };
  while (true) {
    int64_t refused = 0;
    const absl::Status sent = Try(request, &refused);
    Tell(sent);
    if (sent.ok() || !IsForNowOnly(sent)) {
      if (!sent.ok()) refused = spans;
      if (refused > 0) metrics_.CountSpans("refused", refused);
      if (refused < spans) metrics_.CountSpans("sent", spans - refused);
      return;
    }
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&is_stopping), kPause)) {
      metrics_.CountSpans("dropped", spans);
      return;
    }
  }
}

absl::Status OtlpExporter::Try(const Request& request, int64_t* refused) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  {
    absl::MutexLock lock(&mutex_);
    if (is_stopping_) return absl::CancelledError("the server stops");
    call_ = &context;
  }
  otlp::ExportTraceServiceResponse response;
  const grpc::Status status = collector_->Export(&context, request, &response);
  absl::MutexLock lock(&mutex_);
  call_ = nullptr;
  *refused = response.partial_success().rejected_spans();
  return {static_cast<absl::StatusCode>(status.error_code()),
          status.error_message()};
}

void OtlpExporter::Tell(const absl::Status& status) {
  if (status.ok() != told_.ok()) tell_(status);
  told_ = status;
}

}  // namespace tensord::server
