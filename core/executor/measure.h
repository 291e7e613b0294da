// Planning by measurement.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/backend/backend.h"
#include "core/executor/executor.h"
#include "core/memory/memory_resource.h"
#include "core/plan/plan.h"

namespace tensord::core {

/// Time of a run of `plan`, after one that warms up: the least of a few spans',
/// each of as many runs as take `least_span` together, so that waiting for
/// their end counts little; 50 at most. Nothing is under way afterwards.
///
/// Requires  as Execute().
/// Errors    a kernel's.
absl::StatusOr<absl::Duration> MeasureTime(const Plan& plan,
                                           const AnyOperands& operands,
                                           const Buffer& scratch,
                                           Stream& stream,
                                           absl::Duration least_span);

struct MeasuredPlan {
  Plan plan;
  /// False when a kernel was left out for lack of memory: with more memory the
  /// choice may differ.
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
