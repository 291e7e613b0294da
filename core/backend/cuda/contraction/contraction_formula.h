// Problem and operands of a contraction, for device code.
#pragma once

#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// Inputs whose factor is zero are left out. With `swaps`, a and b trade
/// places.
ContractionFormula FormulaOf(const ContractionProblem& problem,
                             const ContractionOperands& operands,
                             bool swaps = false);

}  // namespace tensord::core::cuda
