// QR by LAPACK.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/cpu/gemm/blas.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.factorize.lapack": each matrix is copied to workspace and factorized
/// there, on one thread; several at a time.
///
/// `blas` holds the library or why there is none; without LAPACK in it the
/// kernel declines, with that reason.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const FactorizationKernel> CreateLapackQr(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas);

}  // namespace tensord::core
