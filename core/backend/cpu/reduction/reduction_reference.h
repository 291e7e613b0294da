// Reduction, element by element.
#pragma once

#include <memory>

#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.reduce.reference": one thread, pairwise order; takes every
/// problem.
std::unique_ptr<const ReductionKernel> CreateReferenceReduction();

}  // namespace tensord::core
