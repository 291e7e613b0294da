// A contraction as copies around one product of matrices.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/backend/cuda/gemm/gemm_call.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/problem/contraction_problem.h"
#include "core/problem/elementwise_problem.h"
#include "core/problem/permutation_problem.h"

namespace tensord::core::cuda {

/// The inputs that have one are copied to workspace first; then they are
/// multiplied. With `moves_d` the product, times alpha, goes to workspace, too,
/// and from there to d.
///
/// Copies change the order of modes, the type where no GEMM takes it, and
/// conjugate.
/// Threads  immutable value; share freely.
struct PermutedGemm {
  std::optional<PermutationProblem> copy_a;
  std::optional<PermutationProblem> copy_b;
  bool moves_d = false;
  PermutationProblem copy_d;   // without c
  ElementwiseProblem merge_d;  // d = product + beta * c
  /// Of the problem's a and b, until `call.swaps`.
  GemmCall call;
  // Of the copies in workspace; 0 without one.
  int64_t bytes_a = 0;
  int64_t bytes_b = 0;
  int64_t bytes_d = 0;
};

/// The way that is predicted to take least, of all choices of what to copy. The
/// fastest mode of what is copied stays in its fastest group, and modes that
/// stay where they are say in which order the others follow.
///
/// A function of the problem and the model: addresses and factors change
/// nothing.
/// Errors  UNIMPLEMENTED: integers; modes of one input only; nothing to sum; a
///         product of matrices as it is; extents beyond kMaxGemmExtent.
absl::StatusOr<PermutedGemm> PermutedGemmOf(const GpuModel& model,
                                            const ContractionProblem& problem);

}  // namespace tensord::core::cuda
