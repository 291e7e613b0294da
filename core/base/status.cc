#include "core/base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kReasonPayload = "tensord/reason";

}  // namespace

absl::Status Error(absl::StatusCode code, absl::string_view reason,
                   absl::string_view message) {
  absl::Status status(code, message);
  status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonPayload);
  return reason ? std::string(*reason) : std::string();
}

}  // namespace tensord::core
