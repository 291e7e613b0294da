#include "server/rpc/status.h"

#include <array>
#include <string>

#include "core/base/status.h"
#include "tensord/v1/error.pb.h"

namespace tensord::rpc {
namespace {

// Peers limit headers to 8 KiB, in which gRPC writes a byte that is not ASCII
// as three.
constexpr size_t kMaxMessageBytes = 2000;

/// The beginning of `message`, cut between two UTF-8 characters.
absl::string_view Bounded(absl::string_view message) {
  if (message.size() <= kMaxMessageBytes) return message;
  size_t end = kMaxMessageBytes;
  while (end > 0 && (static_cast<uint8_t>(message[end]) & 0xc0) == 0x80) --end;
  return message.substr(0, end);
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

absl::string_view NameOf(absl::StatusCode code) {
  static constexpr std::array<absl::string_view, 17> kNames = {
      "OK",
      "CANCELLED",
      "UNKNOWN",
      "INVALID_ARGUMENT",
      "DEADLINE_EXCEEDED",
      "NOT_FOUND",
      "ALREADY_EXISTS",
      "PERMISSION_DENIED",
      "RESOURCE_EXHAUSTED",
      "FAILED_PRECONDITION",
      "ABORTED",
      "OUT_OF_RANGE",
      "UNIMPLEMENTED",
      "INTERNAL",
      "UNAVAILABLE",
      "DATA_LOSS",
      "UNAUTHENTICATED"};
  return kNames[static_cast<size_t>(code)];
}

grpc::Status ToGrpc(const absl::Status& status, grpc::ServerContext& context) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorDetail detail;
  detail.set_reason(core::ReasonOf(status));
  detail.set_domain("tensord");
  detail.set_cutensor_status(core::ReasonOf(status) == "WORKSPACE_LIMIT"
                                 ? "INSUFFICIENT_WORKSPACE"
                                 : std::string(CutensorStatus(status.code())));
  context.AddTrailingMetadata("tensord-error-bin", detail.SerializeAsString());
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(Bounded(status.message()))};
}

}  // namespace tensord::rpc
