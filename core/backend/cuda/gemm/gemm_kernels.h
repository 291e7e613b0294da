// The contraction kernels that multiply matrices with cuBLASLt.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/backend.h"
#include "core/backend/cuda/gemm/gemm_library.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/kernel.h"

namespace tensord::core::cuda {

/// The library, or UNIMPLEMENTED with the reason why there is none: every
/// kernel then refuses with it.
using MaybeGemmLibrary = absl::StatusOr<std::unique_ptr<GemmLibrary>>;

/// "cuda.contract.gemm", "cuda.contract.gemm_2" and so on: operands that are
/// matrices as they lie, by the algorithm of that `rank`, from 0, among those
/// that the library proposes.
///
/// Lifetime  `library` outlives the kernel.
std::unique_ptr<const ContractionKernel> CreateGemmContraction(
    const GpuModel& model, const MaybeGemmLibrary& library, int rank);

/// "cuda.contract.gemm_no_workspace": likewise, by the best algorithm that
/// needs no workspace, where the best one needs some.
std::unique_ptr<const ContractionKernel> CreateGemmWithoutWorkspace(
    const GpuModel& model, const MaybeGemmLibrary& library);

/// "cuda.contract.permuted_gemm": any contraction of floating point, whose
/// operands are permuted, converted and conjugated where they are no matrices
/// that can be multiplied (permuted_gemm.h).
///
/// Lifetime  `library` and the kernels of `lists` outlive the kernel.
std::unique_ptr<const ContractionKernel> CreatePermutedGemmContraction(
    const GpuModel& model, const MaybeGemmLibrary& library,
    const KernelLists& lists);

/// "cuda.contract.gemm_3xtf32": contractions in 3xTF32 by tensor cores, as one
/// product in TF32 of parts of the inputs' elements (SplitGemmOf()). Infinity
/// times a number is infinity, except for numbers that are 0 in TF32
/// (split_task.h).
///
/// Lifetime  `library` and the kernels of `lists` outlive the kernel.
std::unique_ptr<const ContractionKernel> CreateSplitGemmContraction(
    const GpuModel& model, const MaybeGemmLibrary& library,
    const KernelLists& lists);

}  // namespace tensord::core::cuda
