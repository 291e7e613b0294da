// Runs plans.
#pragma once

#include <variant>

#include "absl/status/status.h"
#include "core/memory/memory_resource.h"
#include "core/plan/plan.h"

namespace tensord::core {

using AnyOperands = std::variant<PermutationOperands, ElementwiseOperands,
                                 ReductionOperands, ContractionOperands,
                                 FactorizationOperands, LinearSolveOperands>;

/// Queues what `plan` does on `stream`.
///
/// Requires  `operands` are those of the plan's operation and passed
///           CheckAliasing(); `scratch` has the plan's workspace_bytes.
/// Lifetime  operands and `scratch` must outlive the work on `stream`, also
///           when an error is returned: a part may have been queued before.
/// Errors    the kernel's; CANCELLED: the stream's interruption has cut it.
///           d is undefined then.
absl::Status Execute(const Plan& plan, const AnyOperands& operands,
                     const Buffer& scratch, Stream& stream);

}  // namespace tensord::core
