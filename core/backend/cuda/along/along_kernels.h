// The kernels that reduce along a mode.
#pragma once

#include <memory>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// "cuda.reduce.scan": cumulative reductions, in one launch or three, in a
/// fixed tree, without atomics.
std::unique_ptr<const ReductionKernel> CreateScanReduction(
    const GpuModel& model);

/// "cuda.reduce.sort": indices that sort; in one launch up to 2048 elements
/// along the mode.
std::unique_ptr<const ReductionKernel> CreateSortReduction(
    const GpuModel& model);

}  // namespace tensord::core::cuda
