// What the reduction kernels are given, from problem and operands.
#pragma once

#include "absl/status/status.h"
#include "core/backend/cuda/kernel/reduction_tasks.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

ReductionFormula FormulaOf(const ReductionProblem& problem,
                           const ReductionOperands& operands);

AlongMode AlongOf(const ReductionProblem& problem);

/// OK when a linear index can count the kept elements, and that many blocks.
/// Errors  UNIMPLEMENTED, reason TOO_MANY_ELEMENTS.
absl::Status CheckKept(const ReductionProblem& problem);
absl::Status CheckBlocks(int64_t count);

}  // namespace tensord::core::cuda
