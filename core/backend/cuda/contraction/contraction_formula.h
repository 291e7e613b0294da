// Problem and operands of a contraction, for device code.
#pragma once

#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// Inputs whose factor is zero are left out.
ContractionFormula FormulaOf(const ContractionProblem& problem,
                             const ContractionOperands& operands);

}  // namespace tensord::core::cuda
