// Which labels may stand where in a statement.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "core/notation/syntax.h"

namespace tensord::core {

/// Checks a statement's labels and fills in what follows from them: the labels
/// of its sums, which of its terms are NCON's, and the output's labels when it
/// was written `[:]`, with the colon at `colon`.
///
/// Errors  INVALID_ARGUMENT, as ParseProgram() has them.
absl::Status ApplyLabelRules(std::optional<TextPosition> colon,
                             const NotationLimits& limits,
                             Statement& statement);

}  // namespace tensord::core
