// Elements that are taken by indices.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.elementwise.take": every TAKE, and nothing else. Runs along
/// which the index is the same are copied as wholes where nothing changes the
/// elements.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const ElementwiseKernel> CreateTakeElementwise(
    ThreadPool& threads);

}  // namespace tensord::core
