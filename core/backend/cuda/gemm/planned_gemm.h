// A GemmCall with the algorithm that was decided on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/cuda/gemm/gemm_library.h"
#include "core/memory/workspace.h"

namespace tensord::core::cuda {

/// Most workspace of an algorithm: what cuBLAS's documentation recommends from
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
  /// proposes within `limits`; where c lies otherwise than d, also on the best
  /// one without c.
  ///
  /// Errors  UNIMPLEMENTED: there are not so many. Others as
  ///         GemmLibrary::Propose().
  static absl::StatusOr<PlannedGemm> Make(const GemmLibrary& library,
                                          const GemmCall& call,
                                          const GemmLimits& limits, int rank);

  const GemmCall& call() const { return call_; }
  /// What Launch() takes from a workspace, at most.
  int64_t workspace_bytes() const;

  /// Bytes of memory beyond itself.
  int64_t heap_bytes() const;

  /// Queues it. Where addresses are aligned worse than was planned for, takes
  /// the best algorithm for these addresses and this workspace, whatever the
  /// rank.
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
  struct Parts {
    Part part;                 // all parts but perhaps the last are as large
    std::optional<Part> last;  // when it is smaller
  };

  PlannedGemm(const GemmCall& call, const GemmLimits& limits, Parts parts,
              std::vector<Parts> without_c)
      : call_(call),
        limits_(limits),
        parts_(std::move(parts)),
        without_c_(std::move(without_c)) {}

  static absl::StatusOr<Parts> PartsOf(const GemmLibrary& library,
                                       const GemmCall& call,
                                       const GemmLimits& limits, int rank);
  static absl::StatusOr<Part> PartOf(const GemmLibrary& library, GemmCall call,
                                     int64_t batch_count,
                                     const GemmLimits& limits, int rank);
  absl::Status LaunchPart(const GemmLibrary& library, const Part& part,
                          const GemmOperands& operands, Workspace& workspace,
                          CudaStream& stream) const;

  GemmCall call_;
  GemmLimits limits_;
  Parts parts_;
  std::vector<Parts> without_c_;  // one when c lies otherwise than d, or none

  /// Calls visit(part) for every part that was decided on.
  template <typename Visitor>
  void ForEachPart(Visitor visit) const {
    const auto visit_all = [&](const Parts& parts) {
      visit(parts.part);
      if (parts.last) visit(*parts.last);
    };
    visit_all(parts_);
    for (const Parts& parts : without_c_) visit_all(parts);
  }
};

}  // namespace tensord::core::cuda
