// Contractions that are other operations, or several in a row.
#pragma once

#include <memory>
#include <utility>

#include "core/backend/backend.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// The solution of the kernel that is predicted to take least and, of equals,
/// comes first. The last of `kernels` solves every problem.
template <typename Problem, typename Operands>
std::unique_ptr<const Solution<Operands>> StepOf(
    const KernelList<Kernel<Problem, Operands>>& kernels,
    const Problem& problem) {
  std::unique_ptr<const Solution<Operands>> least;
  for (const auto& kernel : kernels) {
    auto solution = kernel->Solve(problem);
    if (solution.ok() &&
        (least == nullptr || (*solution)->predicted_nanoseconds() <
                                 least->predicted_nanoseconds())) {
      least = *std::move(solution);
    }
  }
  return least;
}

}  // namespace tensord::core::cuda
