// What a failed call says to programs.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tensord {

/// Why a call failed, in UPPER_SNAKE_CASE, e.g. `MODE_EXTENT_MISMATCH`. "" when
/// nobody said, as for an unreachable server.
std::string ReasonOf(const absl::Status& status);

/// The status that cuTENSOR would have returned, e.g. `INVALID_VALUE`, or "".
std::string CutensorStatusOf(const absl::Status& status);

/// The id of the call in the server's log, or "" when no server answered.
std::string RequestIdOf(const absl::Status& status);

/// After how long the same call may do better, where the server knows: a quota
/// of the tenant is used up that comes back by itself.
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

}  // namespace tensord
