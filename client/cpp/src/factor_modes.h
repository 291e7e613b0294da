// Subscripts of one operand and two results.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "tensord/operations.h"

namespace tensord::internal {

struct FactorModes {
  Modes a;
  Modes q;
  Modes r;

  bool operator==(const FactorModes&) const = default;
};

/// Reads `abcd->abk,kcd`. Labels are what they are for einsum, by their code
/// points; blanks do not matter.
///
/// Errors  INVALID_ARGUMENT, reason SUBSCRIPTS_MALFORMED.
absl::StatusOr<FactorModes> ParseFactorModes(std::string_view subscripts);

}  // namespace tensord::internal
