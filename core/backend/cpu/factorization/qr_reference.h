// QR, straight from the definition.
#pragma once

#include <memory>

#include "core/backend/kernel.h"

namespace tensord::core {

/// "cpu.factorize.reference": supports every problem. Householder reflections
/// one by one, in float64, on the caller's thread.
std::unique_ptr<const FactorizationKernel> CreateReferenceQr();

}  // namespace tensord::core
