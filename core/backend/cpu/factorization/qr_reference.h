// QR, straight from the definition.
#pragma once

#include <memory>

#include "core/backend/kernel.h"

namespace tensord::core {

/// Householder reflections one by one, in float64, on the caller's thread.
/// Requires  a problem of QR.
std::unique_ptr<const FactorizationSolution> SolveReferenceQr(
    const FactorizationProblem& problem);

}  // namespace tensord::core
