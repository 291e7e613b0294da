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

/// A copy of an input in workspace.
struct InputCopy {
  PermutationProblem problem;  // to the first parts, of a copy in parts
  /// Elements from one part of an element to the next (split_task.h); 0: they
  /// are whole.
  int64_t part_stride = 0;
  int64_t bytes = 0;
};

/// Inputs that have a copy are copied to workspace first; then they are
/// multiplied. With `moves_d`, alpha times the product also goes to workspace,
/// and from there to d.
///
/// Copies change the order of modes, the type where no GEMM takes it, and
/// conjugate.
/// Threads  immutable value; share freely.
struct PermutedGemm {
  std::optional<InputCopy> copy_a;
  std::optional<InputCopy> copy_b;
  bool moves_d = false;
  PermutationProblem copy_d;   // without c
  ElementwiseProblem merge_d;  // d = product + beta * c
  /// Its a and b are the problem's unless `call.swaps`.
  GemmCall call;
  int64_t bytes_d = 0;  // of the product in workspace
};

/// The way with the least predicted time, over all choices of what to copy. A
/// copied operand has the group of its fastest mode first; operands that stay
/// in place say in which order the modes of a group lie.
///
/// A function of the problem and the model: addresses and factors change
/// nothing.
/// Errors  UNIMPLEMENTED: integers; modes of one input only; nothing to sum; a
///         product of matrices as it is; extents beyond kMaxGemmExtent.
absl::StatusOr<PermutedGemm> PermutedGemmOf(const GpuModel& model,
                                            const ContractionProblem& problem);

/// The same for a product in 3xTF32, as one in TF32: both inputs are copied in
/// three parts for each element, so that there are three times the terms.
///
/// Errors  UNIMPLEMENTED: another compute type; operands of other types;
///         inputs of more than 2^31 - 1 elements; as above.
absl::StatusOr<PermutedGemm> SplitGemmOf(const GpuModel& model,
                                         const ContractionProblem& problem);

}  // namespace tensord::core::cuda
