// Runs plans.
#pragma once

#include <variant>

#include "absl/status/status.h"
#include "core/memory/memory_resource.h"
#include "core/plan/plan.h"

namespace tensord::core {

using AnyOperands = std::variant<PermutationOperands, ElementwiseOperands,
                                 ReductionOperands, ContractionOperands>;

/// Runs `plan` on `stream` and waits for it.
///
/// Requires  `operands` are those of the plan's operation and passed
///           CheckAliasing(); `scratch` has the plan's workspace_bytes.
/// Errors    the kernel's; d is undefined then.
absl::Status Execute(const Plan& plan, const AnyOperands& operands,
                     const Buffer& scratch, Stream& stream);

}  // namespace tensord::core
