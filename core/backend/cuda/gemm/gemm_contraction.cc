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

class GemmContractionSolution final : public ContractionSolution {
 public:
  /// Lifetime  `library` outlives *this.
  GemmContractionSolution(double predicted_nanoseconds,
                          const GemmLibrary& library, PlannedGemm gemm,
                          std::unique_ptr<const ContractionSolution> no_terms)
      : Solution(predicted_nanoseconds, gemm.workspace_bytes()),
        library_(library),
        gemm_(std::move(gemm)),
        without_terms_(std::move(no_terms)) {}

  std::string decision() const override { return gemm_.call().Text(); }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + gemm_.heap_bytes() +
           HeapBytes(without_terms_);
  }

  absl::Status Launch(const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    if (operands.alpha.IsZero()) {
      return without_terms_->Launch(operands, workspace, stream);
    }
    GemmOperands matrices = OperandsOf(operands);
    if (gemm_.call().swaps) std::swap(matrices.a, matrices.b);
    return gemm_.Launch(library_, matrices, workspace, AsCuda(stream));
  }

 private:
  const GemmLibrary& library_;
  const PlannedGemm gemm_;
  const std::unique_ptr<const ContractionSolution> without_terms_;
};

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

  Solved Solve(const Problem& problem) const override {
    TENSORD_RETURN_IF_ERROR(library_.status());
    TENSORD_ASSIGN_OR_RETURN(const GemmCall call, GemmCallOf(problem));
    const auto plan = [&](int64_t workspace_bytes) {
      return PlannedGemm::Make(
          **library_, call, LimitsOf(workspace_bytes, problem.alignment_bytes),
          rank_);
    };
    if (workspace_limit_bytes_ == 0) {
      const auto best = plan(kGemmWorkspaceBytes);
      if (best.ok() && best->workspace_bytes() == 0) {
        return Unimplemented("NO_WORKSPACE_NEEDED",
                             "the best algorithm needs none either");
      }
    }
    TENSORD_ASSIGN_OR_RETURN(PlannedGemm gemm, plan(workspace_limit_bytes_));
    TENSORD_ASSIGN_OR_RETURN(auto without_terms,
                             without_terms_->Solve(problem));
    return std::make_unique<GemmContractionSolution>(
        GemmNanoseconds(model_, call), **library_, std::move(gemm),
        std::move(without_terms));
  }

 private:
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
