// How long a GEMM, and what prepares it, should take.
#pragma once

#include "core/backend/cuda/gemm/gemm_call.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/problem/permutation_problem.h"

namespace tensord::core::cuda {

/// Nanoseconds that a good library takes for `call`: the longer of arithmetic,
/// in tiles at the peak of its unit, and of reading and writing each matrix
/// once. c is not counted, and all algorithms cost the same. More batches than
/// a call of the library takes are several calls.
double GemmNanoseconds(const GpuModel& model, const GemmCall& call);

/// Nanoseconds to split in parts of TF32 what `copy` reads, in whole lines.
double SplitNanoseconds(const GpuModel& model, const PermutationProblem& copy);

}  // namespace tensord::core::cuda
