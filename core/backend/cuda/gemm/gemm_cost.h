// How long a GEMM, and what it is made ready by, should take.
#pragma once

#include "core/backend/cuda/gemm/gemm_call.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/problem/permutation_problem.h"

namespace tensord::core::cuda {

/// Time of `call` by a good library, in nanoseconds: the longer of arithmetic,
/// in tiles, at the peak of the unit that does it, and of reading and writing
/// each matrix once. c is not counted, and algorithms are not told apart. More
/// batches than a call of the library takes are several calls.
double GemmNanoseconds(const GpuModel& model, const GemmCall& call);

/// Time to split what `copy` reads in whole lines in parts of TF32, in
/// nanoseconds.
double SplitNanoseconds(const GpuModel& model, const PermutationProblem& copy);

}  // namespace tensord::core::cuda
