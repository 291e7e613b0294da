// The reduction kernels.
#pragma once

#include <memory>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// "cuda.reduce.tree": in a fixed tree, in one launch or two, without atomics.
/// Operands with a contiguous mode whose elements are reduced as they are go by
/// groups of 16 bytes, others element by element (reduction_division.h).
std::unique_ptr<const ReductionKernel> CreateTreeReduction(
    const GpuModel& model);

/// "cuda.reduce.reference": everything.
std::unique_ptr<const ReductionKernel> CreateReferenceReduction(
    const GpuModel& model);

}  // namespace tensord::core::cuda
