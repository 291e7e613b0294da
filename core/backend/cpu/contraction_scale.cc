#include "core/backend/cpu/contraction_scale.h"

#include <utility>

#include "core/backend/cpu/gemm/gemm_strategy.h"

namespace tensord::core {

ResultCopy ScalingOf(const ContractionProblem& p) {
  using P = ContractionProblem;
  LoopModes<3> modes;
  for (const auto& mode : p.batch) {
    modes.push_back(
        {mode.extent, {0, mode.strides[P::kBatchC], mode.strides[P::kBatchD]}});
  }
  for (const auto* group : {&p.m, &p.n}) {
    for (const auto& mode : *group) {
      modes.push_back(
          {mode.extent, {0, mode.strides[P::kFreeC], mode.strides[P::kFreeD]}});
    }
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
