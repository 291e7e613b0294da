// Contractions that are other operations, or several in a row.
#pragma once

#include <cstdint>
#include <limits>

#include "core/backend/backend.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// One of a plan's steps: a problem and the kernel that solves it.
template <typename Kernel, typename Problem>
struct Step {
  Problem problem;
  const Kernel* kernel = nullptr;
  double nanoseconds = 0;  // predicted

  int64_t workspace_bytes() const { return kernel->WorkspaceBytes(problem); }
};

using PermutationStep = Step<PermutationKernel, PermutationProblem>;
using ElementwiseStep = Step<ElementwiseKernel, ElementwiseProblem>;

/// By the kernel that is predicted to take least and, of equals, comes first.
/// The last of `kernels` supports every problem.
template <typename Kernel, typename Problem>
Step<Kernel, Problem> StepOf(const KernelList<Kernel>& kernels,
                             const Problem& problem) {
  Step<Kernel, Problem> step{.problem = problem};
  step.nanoseconds = std::numeric_limits<double>::infinity();
  for (const auto& kernel : kernels) {
    if (!kernel->Supports(problem).ok()) continue;
    const double nanoseconds = kernel->PredictNanoseconds(problem);
    if (step.kernel != nullptr && nanoseconds >= step.nanoseconds) continue;
    step.kernel = kernel.get();
    step.nanoseconds = nanoseconds;
  }
  return step;
}

}  // namespace tensord::core::cuda
