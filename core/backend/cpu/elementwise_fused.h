// Element-wise operations in one pass over the operands.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.elementwise.fused": loads, operators and factors are applied to
/// tiles that stay in the first-level cache. Takes every problem
/// that is no TAKE.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const ElementwiseKernel> CreateFusedElementwise(
    ThreadPool& threads);

}  // namespace tensord::core
