// Copies between tensors and matrices in workspace, loop by loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "core/backend/backend.h"
#include "core/backend/cuda/contraction/step.h"
#include "core/backend/kernel.h"
#include "core/base/element_type.h"
#include "core/memory/workspace.h"
#include "core/problem/loop_modes.h"
#include "core/problem/permutation_problem.h"

namespace tensord::core::cuda {

/// The modes of a copy that is about to be made.
class CopyModes {
 public:
  static constexpr size_t kFrom = PermutationProblem::kA,
                          kTo = PermutationProblem::kD;

  /// `tensor` is which operand the tensor is: kFrom or kTo.
  explicit CopyModes(size_t tensor) : tensor_(tensor) {}

  void Add(int64_t extent, int64_t of_tensor, int64_t of_workspace) {
    LoopMode<2> mode{extent, {of_workspace, of_workspace}};
    mode.strides[tensor_] = of_tensor;
    modes_.push_back(mode);
  }
  /// Loops, fastest first, that count evenly in workspace.
  template <size_t operand_count>
  void Add(const LoopModes<operand_count>& loops, size_t operand,
           int64_t stride) {
    for (const auto& loop : loops) {
      Add(loop.extent, loop.strides[operand], stride);
      stride *= loop.extent;
    }
  }

  /// The copy, by the kernel that is predicted to take least.
  std::unique_ptr<const PermutationSolution> Solve(const KernelLists& lists,
                                                   ElementType type,
                                                   bool conjugates = false) && {
    return StepOf(
        lists.permutation,
        PermutationProblem{.type_a = type,
                           .type_d = type,
                           .compute_type = DefaultComputeType(type),
                           .unary = conjugates ? UnaryOperator::kConj
                                               : UnaryOperator::kIdentity,
                           .is_move = !conjugates,
                           .alignment_bytes = conjugates ? 1 : SizeOf(type),
                           .modes = Canonical(std::move(modes_), kTo)});
  }

 private:
  const size_t tensor_;
  LoopModes<2> modes_;
};

/// Queues it; what it takes of the workspace is free again for the next.
inline absl::Status LaunchCopy(const PermutationSolution& copy,
                               const void* from, void* to, Workspace workspace,
                               Stream& stream) {
  return copy.Launch({.a = from, .d = to}, workspace, stream);
}

}  // namespace tensord::core::cuda
