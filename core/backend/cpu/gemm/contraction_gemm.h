// Contraction as matrix products.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/backend/cpu/gemm/blas.h"
#include "core/backend/cpu/gemm/gemm_strategy.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// The rates that are usual for OpenBLAS's kernels of `core_type`, see
/// Blas::core_type(), on each of `thread_count` threads.
GemmRates GemmRatesOf(absl::string_view core_type, int thread_count);

/// "cpu.contract.gemm": operands are used in place where their modes fold to
/// matrices, and copied where that is cheaper; products are looped over the
/// modes that do not fold (ChooseGemmStrategy()). They run on all threads.
///
/// `blas` holds the library or why there is none; without it the kernel refuses
/// every problem that is not of integers, with that reason.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const ContractionKernel> CreateGemmContraction(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas,
    const GemmRates& rates);

}  // namespace tensord::core
