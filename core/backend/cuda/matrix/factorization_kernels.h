// The kernels that factorize matrices, by cuSOLVER.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "core/backend/cuda/matrix/solver_library.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

// Lifetime, of all: `library` and the kernels of `lists` outlive the kernel.

/// "cuda.factorize.qr": geqrf and orgqr, one matrix after the other.
std::unique_ptr<const FactorizationKernel> CreateQr(
    const MaybeSolverLibrary& library, const KernelLists& lists);

/// "cuda.factorize.svd": gesvd, one matrix after the other.
std::unique_ptr<const FactorizationKernel> CreateSvd(
    const MaybeSolverLibrary& library, const KernelLists& lists);

/// "cuda.factorize.svd_jacobi": gesvdj, one matrix after the other; where sides
/// are short, gesvdjBatched. When that does not converge, gesvd.
std::unique_ptr<const FactorizationKernel> CreateJacobiSvd(
    const MaybeSolverLibrary& library, const KernelLists& lists);

/// "cuda.factorize.eigh": syevd, one matrix after the other.
std::unique_ptr<const FactorizationKernel> CreateEigh(
    const MaybeSolverLibrary& library, const KernelLists& lists);

/// "cuda.factorize.eigh_jacobi": syevjBatched, of short sides.
std::unique_ptr<const FactorizationKernel> CreateJacobiEigh(
    const MaybeSolverLibrary& library, const KernelLists& lists);

/// "cuda.factorize.cholesky": potrf, or potrfBatched of several matrices.
std::unique_ptr<const FactorizationKernel> CreateCholesky(
    const MaybeSolverLibrary& library, const KernelLists& lists);

}  // namespace tensord::core::cuda
