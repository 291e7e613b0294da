// Reduction as a tree over blocks.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.reduce.pairwise": the tree is fixed by the problem, so results
/// do not depend on the number of threads. Takes every problem along no mode.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const ReductionKernel> CreatePairwiseReduction(
    ThreadPool& threads);

}  // namespace tensord::core
