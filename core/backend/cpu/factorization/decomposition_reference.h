// SVD, EIGH and CHOLESKY, straight from the definition.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// Rotations of Jacobi, one by one, and sums, in float64.
/// Requires  a problem of SVD, EIGH or CHOLESKY.
std::unique_ptr<const FactorizationSolution> SolveReferenceDecomposition(
    const FactorizationProblem& problem, ThreadPool& threads);

}  // namespace tensord::core
