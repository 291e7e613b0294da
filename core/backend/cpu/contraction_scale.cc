#include "core/backend/cpu/contraction_scale.h"

#include <utility>

#include "core/backend/cpu/gemm/gemm_strategy.h"

namespace tensord::core {

ResultCopy ScalingOf(const ContractionProblem& p) {
  LoopModes<3> modes;
  for (const auto& [extent, strides] : KeptModesOf(p)) {
    modes.push_back({extent, {0, strides[2], strides[3]}});  // of c and d
  }
  return {.from = GemmTypeOf(p),
          .to = p.type_d,
          .conj_c = p.conj_c,
          .modes = Canonical(std::move(modes), ResultCopy::kD)};
}

void ScaleResult(ThreadPool& threads, const ResultCopy& scaling,
                 const ContractionOperands& operands) {
  CopyResult(threads, scaling, operands.beta, nullptr, operands.c, operands.d);
}

}  // namespace tensord::core
