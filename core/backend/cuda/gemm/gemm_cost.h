// How long a GEMM should take.
#pragma once

#include "core/backend/cuda/gemm/gemm_call.h"
#include "core/backend/cuda/gpu_model.h"

namespace tensord::core::cuda {

/// Time of `call` by a good library, in nanoseconds: the longer of arithmetic,
/// in tiles, at the peak of the unit that does it, and of reading and writing
/// each matrix once. c is not counted, and algorithms are not told apart.
double GemmNanoseconds(const GpuModel& model, const GemmCall& call);

}  // namespace tensord::core::cuda
