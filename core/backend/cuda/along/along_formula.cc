#include "core/backend/cuda/along/along_formula.h"

#include <algorithm>

#include "core/backend/cuda/kernel/index_space.h"
#include "core/base/status.h"

namespace tensord::core::cuda {

ReductionFormula FormulaOf(const ReductionProblem& problem,
                           const ReductionOperands& operands) {
  return {.a = operands.alpha.IsZero() ? nullptr : operands.a,
          .c = operands.beta.IsZero() ? nullptr : operands.c,
          .d = operands.d,
          .type_a = problem.type_a,
          .type_d = problem.type_d,
          .compute = problem.compute_element(),
          .compute_type = problem.compute_type,
          .op = problem.op,
          .unary_a = problem.unary_a,
          .unary_c = problem.unary_c,
          .alpha = {operands.alpha.real, operands.alpha.imaginary},
          .beta = {operands.beta.real, operands.beta.imaginary}};
}

AlongMode AlongOf(const ReductionProblem& problem) {
  AlongMode along{.extent = problem.along.extent};
  std::ranges::copy(problem.along.strides, along.strides);
  return along;
}

absl::Status CheckKept(const ReductionProblem& problem) {
  const int64_t kept = ElementCount(problem.kept);
  if (kept <= kMaxIndex) return absl::OkStatus();
  return Unimplemented("TOO_MANY_ELEMENTS", "it keeps ", kept,
                       " elements, at most ", kMaxIndex, " are possible");
}

absl::Status CheckBlocks(int64_t count) {
  if (count <= kMaxIndex) return absl::OkStatus();
  return Unimplemented("TOO_MANY_ELEMENTS", "it needs ", count,
                       " blocks of threads, at most ", kMaxIndex,
                       " are possible");
}

}  // namespace tensord::core::cuda
