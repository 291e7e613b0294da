// Cumulative sums, products, maxima and minima.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.reduce.scan": every reduction along a mode that does not sort,
/// and nothing else. Short runs are combined in order, and joined in trees that
/// are fixed by the problem: results do not depend on the number of threads.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const ReductionKernel> CreateScanReduction(ThreadPool& threads);

}  // namespace tensord::core
