// Whether symbolic costs go with a program.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/notation/program/lower.h"

namespace tensord::core {

/// OK when `options` has no costs, or well-formed ones that go with the rest.
///
/// Errors  INVALID_ARGUMENT, reasons COST_MALFORMED, COST_CONFLICT.
absl::Status CheckCosts(const LoweringOptions& options);

/// OK when every label that the costs name is among `labels`, which may repeat.
///
/// Requires  CheckCosts(options).ok().
/// Errors    INVALID_ARGUMENT, reason COST_LABEL_UNKNOWN.
absl::Status CheckCostLabels(const LoweringOptions& options,
                             absl::Span<const std::string> labels);

}  // namespace tensord::core
