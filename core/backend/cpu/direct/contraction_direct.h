// Contraction straight from where operands lie, without copies in workspace.
#pragma once

#include <memory>

#include "core/backend/cpu/gemm/gemm_strategy.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.contract.direct": blocks of both inputs are packed through their
/// strides and multiplied in registers, as P. Springer, P. Bientinesi, "Design
/// of a high-performance GEMM-like tensor-tensor multiplication" (2016), do; d
/// is written once for each block of terms (ChooseDirectWay()). Of float32 and
/// float64.
///
/// Each element of d is summed in an order that the problem, the number of
/// threads and the CPU's vectors decide: repeating gives the same bits.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const ContractionKernel> CreateDirectContraction(
    ThreadPool& threads, const GemmRates& rates);

}  // namespace tensord::core
