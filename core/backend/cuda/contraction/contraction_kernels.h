// The contraction kernels.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// "cuda.contract.direct_128x128" and so on: by tiles of d, without copies.
/// With `splits`, "..._split_k": the sum is dealt out to several blocks, whose
/// results a second launch adds in a fixed order.
std::unique_ptr<const ContractionKernel> CreateDirectContraction(
    const GpuModel& model, DirectTile tile, bool splits);

/// "cuda.contract.threads_1x1" and "..._4x4": a thread computes so many
/// elements and reads through the caches. For small products of many batches.
///
/// Requires  micro is 1 or 4.
std::unique_ptr<const ContractionKernel> CreateThreadsContraction(
    const GpuModel& model, int64_t micro);

/// "cuda.contract.elementwise": products without a sum, as element-wise
/// operations.
///
/// Lifetime  the kernels of `lists` outlive the kernel.
std::unique_ptr<const ContractionKernel> CreateElementwiseContraction(
    const KernelLists& lists);

/// "cuda.contract.reference": everything, in float64 arithmetic.
std::unique_ptr<const ContractionKernel> CreateReferenceContraction(
    const GpuModel& model);

}  // namespace tensord::core::cuda
