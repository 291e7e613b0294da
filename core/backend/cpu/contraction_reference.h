// Contraction, straight from the definition.
#pragma once

#include <memory>

#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.contract.reference": supports every problem. One loop a mode, on the
/// caller's thread; floating-point sums run in float64.
std::unique_ptr<const ContractionKernel> CreateReferenceContraction();

}  // namespace tensord::core
