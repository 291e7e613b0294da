// Cumulative sums, products, maxima and minima.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.reduce.scan": every reduction along a mode that does not sort,
/// and nothing else. Floating-point sums go by levels of parts that the problem
/// fixes, so that results do not depend on the number of threads: what comes
/// before a part is what the one before ends with, and sums of numbers that are
/// not negative never decrease. Products and integers go in order.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const ReductionKernel> CreateScanReduction(ThreadPool& threads);

}  // namespace tensord::core
