// The kernels that solve linear equations, by cuSOLVER and cuBLAS.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "core/backend/cuda/matrix/solver_library.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

// Of both: general and Hermitian matrices are factorized with pivots, positive
// definite ones by Cholesky's method, triangles as they are.
// Lifetime  `library` and the kernels of `lists` outlive the kernel.

/// "cuda.solve.one_by_one": one matrix after the other.
std::unique_ptr<const LinearSolveKernel> CreateSolve(
    const MaybeSolverLibrary& library, const KernelLists& lists);

/// "cuda.solve.batched": several matrices, together.
std::unique_ptr<const LinearSolveKernel> CreateBatchedSolve(
    const MaybeSolverLibrary& library, const KernelLists& lists);

}  // namespace tensord::core::cuda
