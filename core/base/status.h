// Statuses with a machine-readable reason, and the two macros that pass them
// on.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tensord::core {

/// A status of `code` that says `message` to a person and `reason`, in
/// UPPER_SNAKE_CASE, to a program. The rpc layer sends both.
///
/// Requires  code != kOk. The message says what, where, got, wanted.
absl::Status Error(absl::StatusCode code, absl::string_view reason,
                   absl::string_view message);

/// The reason that Error() attached, or "" when there is none.
std::string ReasonOf(const absl::Status& status);

template <typename... Parts>
absl::Status InvalidArgument(absl::string_view reason, const Parts&... parts) {
  return Error(absl::StatusCode::kInvalidArgument, reason,
               absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status Unimplemented(absl::string_view reason, const Parts&... parts) {
  return Error(absl::StatusCode::kUnimplemented, reason,
               absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status ResourceExhausted(absl::string_view reason,
                               const Parts&... parts) {
  return Error(absl::StatusCode::kResourceExhausted, reason,
               absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status FailedPrecondition(absl::string_view reason,
                                const Parts&... parts) {
  return Error(absl::StatusCode::kFailedPrecondition, reason,
               absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status NotFound(absl::string_view reason, const Parts&... parts) {
  return Error(absl::StatusCode::kNotFound, reason, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status Internal(absl::string_view reason, const Parts&... parts) {
  return Error(absl::StatusCode::kInternal, reason, absl::StrCat(parts...));
}

}  // namespace tensord::core

#define TENSORD_RETURN_IF_ERROR(expression)                               \
  do {                                                                    \
    if (absl::Status tensord_status = (expression); !tensord_status.ok()) \
      return tensord_status;                                              \
  } while (false)

#define TENSORD_CONCAT_INNER(x, y) x##y
#define TENSORD_CONCAT(x, y) TENSORD_CONCAT_INNER(x, y)
#define TENSORD_ASSIGN_OR_RETURN(left, expression)                            \
  TENSORD_ASSIGN_OR_RETURN_NAMED(TENSORD_CONCAT(tensord_statusor_, __LINE__), \
                                 left, expression)
#define TENSORD_ASSIGN_OR_RETURN_NAMED(name, left, expression) \
  auto name = (expression);                                    \
  if (!name.ok()) return std::move(name).status();             \
  left = *std::move(name)
