// Permutation in tiles that are transposed in registers.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.permute.blocked": moves whole cache lines on all threads, past
/// the cache when d is larger than it. With a factor, an operator or a
/// conversion it works on tiles in the compute type. Takes every problem.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const PermutationKernel> CreateBlockedPermutation(
    ThreadPool& threads);

}  // namespace tensord::core
