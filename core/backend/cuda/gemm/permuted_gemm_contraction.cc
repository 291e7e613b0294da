#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/contraction/step.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/gemm/gemm_cost.h"
#include "core/backend/cuda/gemm/gemm_kernels.h"
#include "core/backend/cuda/gemm/input_step.h"
#include "core/backend/cuda/gemm/permuted_gemm.h"
#include "core/backend/cuda/gemm/planned_gemm.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

/// A PermutedGemm whose every step is decided.
struct Way {
  PlannedGemm gemm;
  std::optional<InputStep> copy_a = {};
  std::optional<InputStep> copy_b = {};
  /// What the product, of so many bytes in workspace, becomes d by: without c
  /// and with it. None: it goes to d itself.
  int64_t bytes_d = 0;
  std::unique_ptr<const PermutationSolution> copy_d = nullptr;
  std::unique_ptr<const ElementwiseSolution> merge_d = nullptr;
  std::unique_ptr<const ContractionSolution> without_terms = nullptr;
  double nanoseconds = 0;
  int64_t workspace_bytes = 0;
};

class PermutedGemmSolution final : public ContractionSolution {
 public:
  /// Lifetime  `library` outlives *this.
  PermutedGemmSolution(const GemmLibrary& library, Way way)
      : Solution(way.nanoseconds, way.workspace_bytes),
        library_(library),
        way_(std::move(way)) {}

  std::string decision() const override {
    std::string text = way_.gemm.call().Text();
    if (way_.copy_a) {
      absl::StrAppend(&text, ", a ", way_.copy_a->decision(), " first");
    }
    if (way_.copy_b) {
      absl::StrAppend(&text, ", b ", way_.copy_b->decision(), " first");
    }
    if (way_.copy_d != nullptr) absl::StrAppend(&text, ", d copied last");
    return text;
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + way_.gemm.heap_bytes() +
           (way_.copy_a ? way_.copy_a->heap_bytes() : 0) +
           (way_.copy_b ? way_.copy_b->heap_bytes() : 0) +
           HeapBytes(way_.copy_d) + HeapBytes(way_.merge_d) +
           HeapBytes(way_.without_terms);
  }

  absl::Status Launch(const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    if (operands.alpha.IsZero()) {
      return way_.without_terms->Launch(operands, workspace, stream);
    }
    GemmOperands matrices = OperandsOf(operands);
    CudaStream& queue = AsCuda(stream);
    if (way_.copy_a) {
      TENSORD_RETURN_IF_ERROR(
          way_.copy_a->Launch(matrices.a, workspace, queue));
    }
    if (way_.copy_b) {
      TENSORD_RETURN_IF_ERROR(
          way_.copy_b->Launch(matrices.b, workspace, queue));
    }
    const bool moves_d = way_.copy_d != nullptr;
    if (moves_d) {
      matrices.c = nullptr;
      matrices.d = workspace.Take<std::byte>(way_.bytes_d);
      matrices.beta = kZero;
    }
    const void* const product = matrices.d;
    if (way_.gemm.call().swaps) std::swap(matrices.a, matrices.b);
    TENSORD_RETURN_IF_ERROR(
        way_.gemm.Launch(library_, matrices, workspace, queue));
    if (!moves_d) return absl::OkStatus();
    if (operands.beta.IsZero()) {
      return way_.copy_d->Launch({.a = product, .d = operands.d}, workspace,
                                 stream);
    }
    return way_.merge_d->Launch({.a = product,
                                 .c = operands.c,
                                 .d = operands.d,
                                 .gamma = operands.beta},
                                workspace, stream);
  }

 private:
  const GemmLibrary& library_;
  const Way way_;
};

/// Decides on a PermutedGemm: PermutedGemmOf() or SplitGemmOf().
using GemmDecision = absl::StatusOr<PermutedGemm> (*)(const GpuModel&,
                                                      const Problem&);

class PermutedGemmContraction final : public ContractionKernel {
 public:
  PermutedGemmContraction(const GpuModel& model,
                          const MaybeGemmLibrary& library,
                          const KernelLists& lists, absl::string_view name,
                          GemmDecision decide)
      : model_(model),
        library_(library),
        lists_(lists),
        name_(name),
        decide_(decide),
        without_terms_(CreateReferenceContraction(model)) {}

  absl::string_view name() const override { return name_; }

  Solved Solve(const Problem& problem) const override {
    TENSORD_RETURN_IF_ERROR(library_.status());
    TENSORD_ASSIGN_OR_RETURN(const PermutedGemm gemm, decide_(model_, problem));
    TENSORD_ASSIGN_OR_RETURN(
        PlannedGemm planned,
        PlannedGemm::Make(**library_, gemm.call,
                          LimitsFor(gemm, problem.alignment_bytes), 0));
    Way way{std::move(planned)};
    TENSORD_ASSIGN_OR_RETURN(way.without_terms, without_terms_->Solve(problem));
    way.nanoseconds = GemmNanoseconds(model_, gemm.call);
    way.workspace_bytes = way.gemm.workspace_bytes();
    const auto prepare = [&](const std::optional<InputCopy>& copy,
                             bool is_second, std::optional<InputStep>& step) {
      if (!copy.has_value()) return;
      step.emplace(model_, lists_, *copy, is_second);
      way.nanoseconds += step->nanoseconds();
      way.workspace_bytes += step->workspace_bytes();
    };
    prepare(gemm.copy_a, false, way.copy_a);
    prepare(gemm.copy_b, true, way.copy_b);
    if (gemm.moves_d) {
      way.bytes_d = gemm.bytes_d;
      way.copy_d = StepOf(lists_.permutation, gemm.copy_d);
      way.merge_d = StepOf(lists_.elementwise, gemm.merge_d);
      way.nanoseconds += way.copy_d->predicted_nanoseconds();
      way.workspace_bytes += Workspace::BytesFor(gemm.bytes_d) +
                             std::max(way.copy_d->workspace_bytes(),
                                      way.merge_d->workspace_bytes());
    }
    return std::make_unique<PermutedGemmSolution>(**library_, std::move(way));
  }

 private:
  /// What is in workspace is aligned.
  static GemmLimits LimitsFor(const PermutedGemm& gemm,
                              int64_t alignment_bytes) {
    GemmLimits limits = LimitsOf(kGemmWorkspaceBytes, alignment_bytes);
    auto& [a, b, c, d] = limits.alignment_bytes;
    if (gemm.copy_a.has_value()) a = GemmLimits::kWidestAccess;
    if (gemm.copy_b.has_value()) b = GemmLimits::kWidestAccess;
    if (gemm.moves_d) c = d = GemmLimits::kWidestAccess;
    if (gemm.call.swaps) std::swap(a, b);
    return limits;
  }

  const GpuModel model_;
  const MaybeGemmLibrary& library_;
  const KernelLists& lists_;
  const absl::string_view name_;  // a literal
  const GemmDecision decide_;
  const std::unique_ptr<const ContractionKernel> without_terms_;
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreatePermutedGemmContraction(
    const GpuModel& model, const MaybeGemmLibrary& library,
    const KernelLists& lists) {
  return std::make_unique<PermutedGemmContraction>(
      model, library, lists, "cuda.contract.permuted_gemm", PermutedGemmOf);
}

std::unique_ptr<const ContractionKernel> CreateSplitGemmContraction(
    const GpuModel& model, const MaybeGemmLibrary& library,
    const KernelLists& lists) {
  return std::make_unique<PermutedGemmContraction>(
      model, library, lists, "cuda.contract.gemm_3xtf32", SplitGemmOf);
}

}  // namespace tensord::core::cuda
