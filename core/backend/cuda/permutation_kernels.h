// The permutation kernels: those of A. Hynninen, D. Lyakh, "cuTT: a
// high-performance tensor transpose library for CUDA compatible GPUs" (2017),
// with wider words, more bytes in flight, any strides and any element type.
#pragma once

#include <memory>

#include "core/backend/cuda/cuda_device.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// "cuda.permute.trivial": one copy, where nothing is permuted.
std::unique_ptr<const PermutationKernel> CreateTrivialPermutation(
    const GpuModel& model);

/// "cuda.permute.tiled_copy": the fastest mode of a is that of d.
std::unique_ptr<const PermutationKernel> CreateTiledCopyPermutation(
    const GpuModel& model);

/// "cuda.permute.runs": the fastest mode of a is that of d, contiguous in both;
/// by 16 bytes where words are narrower, because runs begin anywhere or
/// elements are scaled or converted.
std::unique_ptr<const PermutationKernel> CreateRunsPermutation(
    const GpuModel& model);

/// "cuda.permute.tiled": tiles of a's fastest mode by d's.
std::unique_ptr<const PermutationKernel> CreateTiledPermutation(
    const GpuModel& model);

/// "cuda.permute.packed": tiles of whole modes. `device` says how many blocks
/// it holds; null: nothing is to be launched.
///
/// Lifetime  `device` outlives the kernel; here as in the next.
std::unique_ptr<const PermutationKernel> CreatePackedPermutation(
    const GpuModel& model, CudaDevice* device);

/// "cuda.permute.packed_split": tiles of whole modes and parts of one or two.
std::unique_ptr<const PermutationKernel> CreatePackedSplitPermutation(
    const GpuModel& model, CudaDevice* device);

/// "cuda.permute.reference": everything.
std::unique_ptr<const PermutationKernel> CreateReferencePermutation(
    const GpuModel& model);

}  // namespace tensord::core::cuda
