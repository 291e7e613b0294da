// The contraction kernels.
#pragma once

#include <memory>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// "cuda.contract.reference": everything, in float64 arithmetic.
std::unique_ptr<const ContractionKernel> CreateReferenceContraction(
    const GpuModel& model);

}  // namespace tensord::core::cuda
