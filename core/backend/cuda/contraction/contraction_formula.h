// Problem and operands of a contraction, for device code.
#pragma once

#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// Without operands. With `swaps`, a and b trade places.
ContractionFormula FormulaOf(const ContractionProblem& problem,
                             bool swaps = false);

/// The formula with its operands, of which those whose factor is zero are left
/// out. `swaps` as it was made with.
ContractionFormula WithOperands(ContractionFormula formula,
                                const ContractionOperands& operands,
                                bool swaps = false);

}  // namespace tensord::core::cuda
