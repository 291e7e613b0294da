#include "client/cpp/src/errors.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/types/optional.h"
#include "tensord/status.h"
#include "tensord/v1/error.pb.h"

namespace tensord {
namespace {

constexpr char kPayloadType[] = "type.googleapis.com/tensord.v1.ErrorDetail";
constexpr char kMetadataKey[] = "tensord-error-bin";

v1::ErrorDetail DetailOf(const absl::Status& status) {
  v1::ErrorDetail detail;
  if (const auto payload = status.GetPayload(kPayloadType)) {
    // One that does not parse says nothing.
    if (!detail.ParseFromString(std::string(*payload))) detail.Clear();
  }
  return detail;
}

}  // namespace

std::string ReasonOf(const absl::Status& status) {
  return DetailOf(status).reason();
}

std::string CutensorStatusOf(const absl::Status& status) {
  return DetailOf(status).cutensor_status();
}

std::string RequestIdOf(const absl::Status& status) {
  return DetailOf(status).request_id();
}

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const v1::ErrorDetail detail = DetailOf(status);
  if (!detail.has_retry_after()) return std::nullopt;
  return absl::Seconds(detail.retry_after().seconds()) +
         absl::Nanoseconds(detail.retry_after().nanos());
}

namespace internal {

absl::Status Error(absl::StatusCode code, std::string_view reason,
                   std::string_view message) {
  absl::Status status(code, absl::string_view(message.data(), message.size()));
  v1::ErrorDetail detail;
  detail.set_reason(std::string(reason));
  detail.set_domain("tensord");
  status.SetPayload(kPayloadType, absl::Cord(detail.SerializeAsString()));
  return status;
}

absl::Status FromProto(const v1::Error& error) {
  absl::Status result(static_cast<absl::StatusCode>(error.code()),
                      error.message());
  result.SetPayload(kPayloadType,
                    absl::Cord(error.detail().SerializeAsString()));
  return result;
}

absl::Status FromGrpc(const grpc::Status& status,
                      const grpc::ClientContext& context) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  const auto& metadata = context.GetServerTrailingMetadata();
  if (const auto entry = metadata.find(kMetadataKey); entry != metadata.end()) {
    result.SetPayload(kPayloadType,
                      absl::Cord(absl::string_view(entry->second.data(),
                                                   entry->second.size())));
  }
  return result;
}

}  // namespace internal
}  // namespace tensord
