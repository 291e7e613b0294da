// Indices that sort.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.reduce.sort": every reduction that sorts, and nothing else.
/// Pairs of an element and its index, which all differ, are sorted by the
/// library Highway; of long modes in chunks, which are merged, and of short
/// ones by a network.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const ReductionKernel> CreateSortReduction(ThreadPool& threads);

}  // namespace tensord::core
