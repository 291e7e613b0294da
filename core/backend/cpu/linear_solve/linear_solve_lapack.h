// Linear equations by way of OpenBLAS.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/cpu/gemm/blas.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.solve.lapack": eliminates by panels, as LAPACK's getrf and potrf; what
/// is right of a panel, right sides among it, in slabs on all threads. A
/// Hermitian matrix is treated as a general one, made whole first. Declines
/// where the library is missing.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const LinearSolveKernel> CreateLapackLinearSolve(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas);

}  // namespace tensord::core
