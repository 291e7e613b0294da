// Labels of modes in text.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensord/operations.h"

namespace tensord::internal {

/// Reads `ij,jk->ik`: the terms of each side of the arrows, of which there may
/// be any number. Labels are what they are for einsum, by their code points;
/// blanks do not matter.
///
/// Errors  INVALID_ARGUMENT, reason SUBSCRIPTS_MALFORMED.
absl::StatusOr<std::vector<std::vector<Modes>>> ParseSubscripts(
    std::string_view subscripts);

struct FactorModes {
  Modes a;
  std::vector<Modes> results;

  bool operator==(const FactorModes&) const = default;
};

/// Reads subscripts of one operand and any number of results, `abcd->abk,kcd`.
///
/// Errors  as ParseSubscripts().
absl::StatusOr<FactorModes> ParseFactorModes(std::string_view subscripts);

}  // namespace tensord::internal
