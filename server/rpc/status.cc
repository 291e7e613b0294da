#include "server/rpc/status.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "google_rpc/status.pb.h"
#include "server/engine/quota.h"
#include "server/rpc/convert.h"

namespace tensord::rpc {
namespace {

// Peers limit headers to 8 KiB, in which gRPC writes a byte that is not ASCII
// as three.
constexpr size_t kMaxMessageBytes = 2000;

/// Bytes of the UTF-8 character that `text` begins with; 0: it does not.
size_t CharacterBytes(absl::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const size_t bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead < 0xc0 || lead >= 0xf8 || text.size() < bytes) return 0;
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[bytes] || code > 0x10ffff || is_surrogate ? 0 : bytes;
}

/// The beginning of `message`, in whole UTF-8 characters. What a request had
/// that is none, and the message quotes, becomes '?'.
std::string Bounded(absl::string_view message) {
  std::string text;
  while (!message.empty()) {
    const size_t bytes = CharacterBytes(message);
    const size_t taken = std::max(bytes, size_t{1});
    if (text.size() + taken > kMaxMessageBytes) break;
    absl::StrAppend(&text, bytes == 0 ? "?" : message.substr(0, bytes));
    message.remove_prefix(taken);
  }
  return text;
}

v1::ErrorDetail DetailOf(const absl::Status& status,
                         absl::string_view request_id) {
  v1::ErrorDetail detail;
  detail.set_reason(core::ReasonOf(status));
  detail.set_domain("tensord");
  detail.set_cutensor_status(core::ReasonOf(status) == "WORKSPACE_LIMIT"
                                 ? "INSUFFICIENT_WORKSPACE"
                                 : std::string(CutensorStatus(status.code())));
  detail.set_request_id(std::string(request_id));
  if (const auto quota = server::QuotaOf(status)) {
    detail.mutable_quota()->set_name(quota->quota);
    detail.mutable_quota()->set_limit(quota->limit);
    detail.mutable_quota()->set_used(quota->used);
    if (quota->retry_after) {
      *detail.mutable_retry_after() = ToProto(*quota->retry_after);
    }
  }
  return detail;
}

/// The google.rpc.Status that says it, on the wire.
std::string WhenToRetry(int32_t code, const std::string& message,
                        const google::protobuf::Duration& retry_after) {
  google_rpc::RetryInfo info;
  *info.mutable_retry_delay() = retry_after;
  google_rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  google::protobuf::Any& detail = *status.add_details();
  detail.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  detail.set_value(info.SerializeAsString());
  return status.SerializeAsString();
}

}  // namespace

absl::string_view CutensorStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk: return "SUCCESS";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange: return "INVALID_VALUE";
    case absl::StatusCode::kUnimplemented: return "NOT_SUPPORTED";
    case absl::StatusCode::kResourceExhausted: return "ALLOC_FAILED";
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable: return "NOT_INITIALIZED";
    case absl::StatusCode::kDataLoss: return "IO_ERROR";
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted: return "EXECUTION_FAILED";
    default: return "INTERNAL_ERROR";
  }
}

grpc::Status ToGrpc(const absl::Status& status, WireCall& call,
                    absl::string_view request_id) {
  if (status.ok()) return grpc::Status::OK;
  const v1::ErrorDetail detail = DetailOf(status, request_id);
  call.AddTrailingMetadata("tensord-error-bin", detail.SerializeAsString());
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message = Bounded(status.message());
  if (!detail.has_retry_after()) return {code, message};
  return {code, message, WhenToRetry(code, message, detail.retry_after())};
}

v1::Error ToProto(const absl::Status& status, absl::string_view request_id) {
  v1::Error error;
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(Bounded(status.message()));
  *error.mutable_detail() = DetailOf(status, request_id);
  return error;
}

}  // namespace tensord::rpc
