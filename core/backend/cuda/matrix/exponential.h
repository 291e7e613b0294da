// Exponentials of matrices on GPUs.
#pragma once

#include "core/backend/backend.h"
#include "core/backend/cuda/matrix/solver_library.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// As ExponentialChoice says, with products by cuBLAS. All matrices have the
/// degree that one of them needs, and each as many squarings as it needs; the
/// host decides when it has norms, so it waits in between.
///
/// Requires  problem.is_exponential().
/// Errors    as Elimination::Make().
/// Lifetime  `library` and the kernels of `lists` outlive the solution.
SimpleLinearSolve::Solved SolveExponential(const LinearSolveProblem& problem,
                                           const SolverLibrary& library,
                                           const KernelLists& lists,
                                           bool is_batched);

}  // namespace tensord::core::cuda
