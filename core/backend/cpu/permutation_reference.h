// Permutation, element by element.
#pragma once

#include <memory>

#include "core/backend/kernel.h"

namespace tensord::core {

/// Kernel "cpu.permute.reference": one thread, no blocking; takes every
/// problem.
std::unique_ptr<const PermutationKernel> CreateReferencePermutation();

}  // namespace tensord::core
