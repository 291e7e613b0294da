// Planning by measurement.
#pragma once

#include "absl/status/statusor.h"
#include "core/backend/backend.h"
#include "core/executor/executor.h"
#include "core/memory/memory_resource.h"
#include "core/plan/plan.h"

namespace tensord::core {

struct MeasuredPlan {
  Plan plan;
  /// False when a kernel was left out for lack of memory: the choice is no good
  /// for those who have more.
  bool is_complete = true;
};

/// The plan of the kernel that takes least time: runs those that could, each a
/// few times, and waits for them. Kernels whose cost model predicts more than
/// 50 times the least of the predictions are not tried.
///
/// d is written again and again: let it be scratch memory. Workspace comes from
/// `memory`; a kernel for which that does not suffice is left out.
///
/// Requires  `operands` are those of the key's problem, alpha included.
/// Errors    those of MakePlan; a kernel's; RESOURCE_EXHAUSTED: there is no
///           workspace for any.
absl::StatusOr<MeasuredPlan> MeasurePlan(const Backend& backend,
                                         const PlanKey& key,
                                         const AnyOperands& operands,
                                         MemoryResource& memory,
                                         Stream& stream);

}  // namespace tensord::core
