// Factorizations, straight from the definition.
#pragma once

#include <memory>

#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.factorize.reference": QR of every matrix, decompositions of those
/// with a shorter side of up to 2048, in float64.
///
/// Lifetime  `threads` must outlive the kernel.
std::unique_ptr<const FactorizationKernel> CreateReferenceFactorization(
    ThreadPool& threads);

}  // namespace tensord::core
