// SVD by way of a random sample.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/cpu/gemm/blas.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.factorize.sampled_svd": the largest values of a matrix by what its
/// products with random columns span, see Sampling. A single matrix on all
/// threads, else several at a time. Declines problems without a sample, and all
/// where the library lacks LAPACK.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const FactorizationKernel> CreateSampledSvd(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas);

}  // namespace tensord::core
