// Names that nobody guesses.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

/// `prefix` and 128 random bits: who does not know the name cannot guess it.
/// Errors  INTERNAL, reason NO_RANDOMNESS.
absl::StatusOr<std::string> RandomName(absl::string_view prefix);

}  // namespace tensord::server
