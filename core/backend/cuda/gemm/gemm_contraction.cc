#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/gemm/gemm_cost.h"
#include "core/backend/cuda/gemm/gemm_kernels.h"
#include "core/backend/cuda/gemm/planned_gemm.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

class GemmContraction final : public ContractionKernel {
 public:
  GemmContraction(const GpuModel& model, const MaybeGemmLibrary& library,
                  int rank, int64_t workspace_limit_bytes, std::string name)
      : model_(model),
        library_(library),
        rank_(rank),
        workspace_limit_bytes_(workspace_limit_bytes),
        name_(std::move(name)),
        without_terms_(CreateReferenceContraction(model)) {}

  absl::string_view name() const override { return name_; }

  absl::Status Supports(const Problem& problem) const override {
    TENSORD_RETURN_IF_ERROR(library_.status());
    TENSORD_ASSIGN_OR_RETURN(const PlannedGemm gemm, Plan(problem));
    if (workspace_limit_bytes_ == 0) {
      const auto best = PlannedGemm::Make(
          **library_, gemm.call(),
          LimitsOf(kGemmWorkspaceBytes, problem.alignment_bytes), 0);
      if (best.ok() && best->workspace_bytes() == 0) {
        return Unimplemented("NO_WORKSPACE_NEEDED",
                             "the best algorithm needs none either");
      }
    }
    return absl::OkStatus();
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    const auto gemm = Plan(problem);
    return gemm.ok() ? gemm->workspace_bytes() : 0;
  }

  double PredictNanoseconds(const Problem& problem) const override {
    const auto call = GemmCallOf(problem);
    return call.ok() ? GemmNanoseconds(model_, *call) : 0;
  }

  absl::Status Launch(const Problem& problem,
                      const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    if (operands.alpha.IsZero()) {
      return without_terms_->Launch(problem, operands, workspace, stream);
    }
    TENSORD_ASSIGN_OR_RETURN(const PlannedGemm gemm, Plan(problem));
    GemmOperands matrices{.a = operands.a,
                          .b = operands.b,
                          .c = operands.c,
                          .d = operands.d,
                          .alpha = operands.alpha,
                          .beta = operands.beta};
    if (gemm.call().swaps) std::swap(matrices.a, matrices.b);
    return gemm.Launch(**library_, matrices, workspace, AsCuda(stream));
  }

 private:
  absl::StatusOr<PlannedGemm> Plan(const Problem& problem) const {
    TENSORD_ASSIGN_OR_RETURN(const GemmCall call, GemmCallOf(problem));
    return PlannedGemm::Make(
        **library_, call,
        LimitsOf(workspace_limit_bytes_, problem.alignment_bytes), rank_);
  }

  const GpuModel model_;
  const MaybeGemmLibrary& library_;
  const int rank_;
  const int64_t workspace_limit_bytes_;
  const std::string name_;
  const std::unique_ptr<const ContractionKernel> without_terms_;
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateGemmContraction(
    const GpuModel& model, const MaybeGemmLibrary& library, int rank) {
  return std::make_unique<GemmContraction>(
      model, library, rank, kGemmWorkspaceBytes,
      rank == 0 ? "cuda.contract.gemm"
                : absl::StrCat("cuda.contract.gemm_", rank + 1));
}

std::unique_ptr<const ContractionKernel> CreateGemmWithoutWorkspace(
    const GpuModel& model, const MaybeGemmLibrary& library) {
  return std::make_unique<GemmContraction>(model, library, 0, 0,
                                           "cuda.contract.gemm_no_workspace");
}

}  // namespace tensord::core::cuda
