// Refusals of operations, as expectations.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/base/status.h"
#include "gmock/gmock.h"

namespace tensord::test {

/// Matches a status by code, reason and a part of its message.
inline auto IsRefusal(absl::StatusCode code, const std::string& reason,
                      const std::string& message) {
  using absl::Status;
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::ResultOf;
  return AllOf(
      ResultOf(
          "code", [](const Status& s) { return s.code(); }, code),
      ResultOf(
          "reason", [](const Status& s) { return core::ReasonOf(s); }, reason),
      ResultOf(
          "message", [](const Status& s) { return std::string(s.message()); },
          HasSubstr(message)));
}

inline auto IsInvalid(const std::string& reason, const std::string& message) {
  return IsRefusal(absl::StatusCode::kInvalidArgument, reason, message);
}

inline auto IsUnsupported(const std::string& message) {
  return IsRefusal(absl::StatusCode::kUnimplemented, "TYPES_NOT_SUPPORTED",
                   message);
}

}  // namespace tensord::test
