// What kernels share that reduce along a mode.
#pragma once

#include "absl/status/status.h"
#include "core/problem/reduction_problem.h"

namespace tensord::core {

/// OK unless the reduction goes along a mode, which other kernels carry out.
absl::Status CheckAlongNothing(const ReductionProblem& problem);
/// OK where it goes along a mode and does not sort.
absl::Status CheckScans(const ReductionProblem& problem);
/// OK where it sorts.
absl::Status CheckSorts(const ReductionProblem& problem);

}  // namespace tensord::core
