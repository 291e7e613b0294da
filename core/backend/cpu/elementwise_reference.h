// Element-wise operations, element by element.
#pragma once

#include <memory>

#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.elementwise.reference": one thread; takes every problem.
std::unique_ptr<const ElementwiseKernel> CreateReferenceElementwise();

}  // namespace tensord::core
