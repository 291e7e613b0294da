// A GemmCall with the algorithm that was decided on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/cuda/gemm/gemm_library.h"
#include "core/memory/workspace.h"

namespace tensord::core::cuda {

/// What algorithms may take: what cuBLAS's documentation recommends from
/// compute capability 9.0 on.
inline constexpr int64_t kGemmWorkspaceBytes = int64_t{32} << 20;

/// The limits for a call on a problem's operands, whose addresses are multiples
/// of `alignment_bytes`.
GemmLimits LimitsOf(int64_t workspace_bytes, int64_t alignment_bytes);

/// One call of the library or, of more batches than it takes, several.
///
/// Threads  immutable value; share freely.
class PlannedGemm {
 public:
  /// Decides on the algorithm of that `rank`, from 0, of those that the library
  /// proposes within `limits`.
  ///
  /// Errors  UNIMPLEMENTED: there are not so many. Others as
  ///         GemmLibrary::Propose().
  static absl::StatusOr<PlannedGemm> Make(const GemmLibrary& library,
                                          const GemmCall& call,
                                          const GemmLimits& limits, int rank);

  const GemmCall& call() const { return call_; }
  /// What Launch() takes from a workspace, at most.
  int64_t workspace_bytes() const;

  /// Queues it. Where addresses are aligned worse than was planned with, or
  /// beta is 0 and c lies otherwise than d, the best algorithm is taken that
  /// then does with the workspace there is, whatever the rank.
  ///
  /// Requires  operands.alpha is not 0.
  /// Errors    as GemmLibrary::Launch(). INTERNAL also: no algorithm takes
  ///           addresses aligned so badly.
  absl::Status Launch(const GemmLibrary& library, const GemmOperands& operands,
                      Workspace& workspace, CudaStream& stream) const;

 private:
  /// A call of the library.
  struct Part {
    GemmCall call;
    std::shared_ptr<const GemmProposal> proposal;
    const GemmAlgorithm* algorithm;  // one of its
  };

  PlannedGemm(const GemmCall& call, const GemmLimits& limits, Part part)
      : call_(call), limits_(limits), part_(std::move(part)) {}

  static absl::StatusOr<Part> PartOf(const GemmLibrary& library, GemmCall call,
                                     int64_t batch_count,
                                     const GemmLimits& limits, int rank);
  absl::Status LaunchPart(const GemmLibrary& library, const Part& part,
                          const GemmOperands& operands, Workspace& workspace,
                          CudaStream& stream) const;

  GemmCall call_;
  GemmLimits limits_;
  Part part_;                 // all parts but perhaps the last are as large
  std::optional<Part> last_;  // when it is smaller
};

}  // namespace tensord::core::cuda
