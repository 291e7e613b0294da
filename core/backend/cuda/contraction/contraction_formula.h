// Problem and operands of a contraction, for device code.
#pragma once

#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// Without operands. With `swaps`, a and b trade places.
ContractionFormula FormulaOf(const ContractionProblem& problem,
                             bool swaps = false);

/// `formula` with its operands; those whose factor is zero are null. `swaps` is
/// what it was made with.
ContractionFormula WithOperands(ContractionFormula formula,
                                const ContractionOperands& operands,
                                bool swaps = false);

/// Calls `visit` with a zero of `type`, one that direct kernels take.
template <typename Visitor>
cudaError_t VisitDirectType(ElementType type, Visitor&& visit) {
  return VisitElementType(type, [&](auto zero) {
    if constexpr (std::is_same_v<decltype(zero), bool>) {
      return cudaErrorInvalidValue;
    } else {
      return visit(zero);
    }
  });
}

}  // namespace tensord::core::cuda
