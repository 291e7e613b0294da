// A GemmCall with the algorithm that was decided on.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/cuda/gemm/gemm_library.h"
#include "core/memory/workspace.h"

namespace tensord::core::cuda {

/// What algorithms may take, unless the user's limit is lower: what cuBLAS's
/// documentation recommends from compute capability 9.0 on.
inline constexpr int64_t kGemmWorkspaceBytes = int64_t{32} << 20;

/// Threads  immutable value; share freely.
class PlannedGemm {
 public:
  /// Decides on the algorithm of that `rank`, from 0, of those that the library
  /// proposes for addresses that are multiples of `alignment_bytes`.
  ///
  /// Errors  UNIMPLEMENTED: there are not so many. Others as
  ///         GemmLibrary::Propose().
  static absl::StatusOr<PlannedGemm> Make(const GemmLibrary& library,
                                          const GemmCall& call,
                                          int64_t alignment_bytes,
                                          int64_t workspace_limit_bytes,
                                          int rank);

  const GemmCall& call() const { return call_; }
  /// What Launch() takes from a workspace, exactly.
  int64_t workspace_bytes() const {
    return Workspace::BytesFor(algorithm_.workspace_bytes);
  }

  /// Queues it. Where addresses are aligned worse than was planned with, or
  /// beta is 0 and c lies otherwise than d, an algorithm is asked for anew,
  /// with no more workspace.
  ///
  /// Requires  operands.alpha is not 0.
  /// Errors    as GemmLibrary::Launch(). INTERNAL also: no algorithm takes
  ///           addresses aligned so badly.
  absl::Status Launch(const GemmLibrary& library, const GemmOperands& operands,
                      Workspace& workspace, CudaStream& stream) const;

 private:
  PlannedGemm(const GemmCall& call, const GemmLimits& limits,
              const GemmAlgorithm& algorithm)
      : call_(call), limits_(limits), algorithm_(algorithm) {}

  GemmCall call_;
  GemmLimits limits_;
  GemmAlgorithm algorithm_;
};

}  // namespace tensord::core::cuda
