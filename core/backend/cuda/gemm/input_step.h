// How an input of a product gets to workspace.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/backend/backend.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/gemm/permuted_gemm.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/split/split_task.h"
#include "core/memory/workspace.h"

namespace tensord::core::cuda {

/// An InputCopy whose kernels are decided: a permutation, a splitting, or both
/// in a row where splitting alone would read scattered elements.
///
/// Threads  immutable; share freely.
class InputStep {
 public:
  /// Requires  a copy in parts has at most kMaxIndex elements.
  InputStep(const GpuModel& model, const KernelLists& lists,
            const InputCopy& copy, bool is_second);

  double nanoseconds() const { return nanoseconds_; }
  /// "copied" or "split in parts".
  absl::string_view decision() const {
    return split_ ? "split in parts" : "copied";
  }
  /// Bytes of memory beyond itself.
  int64_t heap_bytes() const {
    return HeapBytes(move_) + (split_ ? HeapBlockBytes(sizeof(SplitTask)) : 0);
  }
  /// What Launch() takes, exactly.
  int64_t workspace_bytes() const;

  /// Queues it and has `operand` point to the copy.
  ///
  /// Errors  UNAVAILABLE: the device is lost. INTERNAL: a launch failed.
  absl::Status Launch(const void*& operand, Workspace& workspace,
                      CudaStream& stream) const;

 private:
  int64_t bytes_;
  std::unique_ptr<const PermutationSolution> move_;
  std::unique_ptr<const SplitTask> split_;  // without addresses
  double nanoseconds_ = 0;
};

}  // namespace tensord::core::cuda
