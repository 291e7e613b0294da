// Linear equations, straight from the definition.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.solve.reference": elimination row by row, in float64.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const LinearSolveKernel> CreateReferenceLinearSolve(
    ThreadPool& threads);

}  // namespace tensord::core
