// SVD, EIGH and CHOLESKY by LAPACK.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/cpu/gemm/blas.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.factorize.decomposition": each matrix is copied to workspace and
/// decomposed there, on one thread; several at a time. A call cannot be
/// interrupted.
///
/// `blas` holds the library or why there is none; without LAPACK in it the
/// kernel declines, with that reason.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const FactorizationKernel> CreateLapackDecomposition(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas);

}  // namespace tensord::core
