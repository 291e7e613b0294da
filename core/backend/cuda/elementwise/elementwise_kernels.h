// The element-wise kernels.
#pragma once

#include <memory>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// "cuda.elementwise.tiled": an input's fastest mode is not that of d.
std::unique_ptr<const ElementwiseKernel> CreateTiledElementwise(
    const GpuModel& model);

/// "cuda.elementwise.fused": everything below 2^31 elements; by groups of 16
/// bytes where all operands are of one type.
std::unique_ptr<const ElementwiseKernel> CreateFusedElementwise(
    const GpuModel& model);

/// "cuda.elementwise.reference": everything.
std::unique_ptr<const ElementwiseKernel> CreateReferenceElementwise(
    const GpuModel& model);

}  // namespace tensord::core::cuda
