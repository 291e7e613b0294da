#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/contraction/step.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/gemm/gemm_cost.h"
#include "core/backend/cuda/gemm/gemm_kernels.h"
#include "core/backend/cuda/gemm/input_step.h"
#include "core/backend/cuda/gemm/permuted_gemm.h"
#include "core/backend/cuda/gemm/planned_gemm.h"
#include "core/base/memo.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

// Problems whose ways are kept.
constexpr size_t kMostKnown = 1024;

/// A PermutedGemm whose every step is decided.
struct Way {
  PermutedGemm gemm;
  PlannedGemm planned;
  std::optional<InputStep> copy_a = {};
  std::optional<InputStep> copy_b = {};
  std::optional<PermutationStep> copy_d = {};
  std::optional<ElementwiseStep> merge_d = {};
  double nanoseconds = 0;
  int64_t workspace_bytes = 0;
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

  absl::Status Supports(const Problem& problem) const override {
    return WayOf(problem).status();
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    const auto way = WayOf(problem);
    return way.ok() ? (*way)->workspace_bytes : 0;
  }

  double PredictNanoseconds(const Problem& problem) const override {
    const auto way = WayOf(problem);
    return way.ok() ? (*way)->nanoseconds : 0;
  }

  absl::Status Launch(const Problem& problem,
                      const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    if (operands.alpha.IsZero()) {
      return without_terms_->Launch(problem, operands, workspace, stream);
    }
    TENSORD_ASSIGN_OR_RETURN(const std::shared_ptr<const Way> way,
                             WayOf(problem));
    const PermutedGemm& gemm = way->gemm;
    GemmOperands matrices{.a = operands.a,
                          .b = operands.b,
                          .c = operands.c,
                          .d = operands.d,
                          .alpha = operands.alpha,
                          .beta = operands.beta};
    CudaStream& queue = AsCuda(stream);
    if (way->copy_a.has_value()) {
      TENSORD_RETURN_IF_ERROR(
          way->copy_a->Launch(matrices.a, workspace, queue));
    }
    if (way->copy_b.has_value()) {
      TENSORD_RETURN_IF_ERROR(
          way->copy_b->Launch(matrices.b, workspace, queue));
    }
    if (gemm.moves_d) {
      matrices.c = nullptr;
      matrices.d = workspace.Take<std::byte>(gemm.bytes_d);
      matrices.beta = kZero;
    }
    const void* const product = matrices.d;
    if (gemm.call.swaps) std::swap(matrices.a, matrices.b);
    TENSORD_RETURN_IF_ERROR(
        way->planned.Launch(**library_, matrices, workspace, queue));
    if (!gemm.moves_d) return absl::OkStatus();
    if (operands.beta.IsZero()) {
      return way->copy_d->kernel->Launch(way->copy_d->problem,
                                         {.a = product, .d = operands.d},
                                         workspace, stream);
    }
    return way->merge_d->kernel->Launch(way->merge_d->problem,
                                        {.a = product,
                                         .c = operands.c,
                                         .d = operands.d,
                                         .gamma = operands.beta},
                                        workspace, stream);
  }

 private:
  using Ways = Memo<Problem, Way>;

  Ways::Answer WayOf(const Problem& problem) const {
    TENSORD_RETURN_IF_ERROR(library_.status());
    return ways_.Get(problem, [&] { return Decide(problem); });
  }

  Ways::Answer Decide(const Problem& problem) const {
    TENSORD_ASSIGN_OR_RETURN(PermutedGemm gemm, decide_(model_, problem));
    GemmLimits limits = LimitsOf(kGemmWorkspaceBytes, problem.alignment_bytes);
    // What is in workspace is aligned.
    const auto is_copied = [&](size_t operand) {
      return operand == 0   ? gemm.copy_a.has_value()
             : operand == 1 ? gemm.copy_b.has_value()
                            : gemm.moves_d;
    };
    for (size_t operand = 0; operand < 4; ++operand) {
      if (is_copied(operand)) {
        limits.alignment_bytes[operand] = GemmLimits::kWidestAccess;
      }
    }
    if (gemm.call.swaps) {
      std::swap(limits.alignment_bytes[0], limits.alignment_bytes[1]);
    }
    TENSORD_ASSIGN_OR_RETURN(
        PlannedGemm planned,
        PlannedGemm::Make(**library_, gemm.call, limits, 0));
    auto way = std::make_shared<Way>(Way{std::move(gemm), std::move(planned)});
    way->nanoseconds = GemmNanoseconds(model_, way->gemm.call);
    way->workspace_bytes = way->planned.workspace_bytes();
    const auto prepare = [&](const std::optional<InputCopy>& copy,
                             bool is_second, std::optional<InputStep>& step) {
      if (!copy.has_value()) return;
      step.emplace(model_, lists_, *copy, is_second);
      way->nanoseconds += step->nanoseconds();
      way->workspace_bytes += step->workspace_bytes();
    };
    prepare(way->gemm.copy_a, false, way->copy_a);
    prepare(way->gemm.copy_b, true, way->copy_b);
    if (way->gemm.moves_d) {
      way->copy_d = StepOf(lists_.permutation, way->gemm.copy_d);
      way->merge_d = StepOf(lists_.elementwise, way->gemm.merge_d);
      way->nanoseconds += way->copy_d->nanoseconds;
      way->workspace_bytes += Workspace::BytesFor(way->gemm.bytes_d) +
                              std::max(way->copy_d->workspace_bytes(),
                                       way->merge_d->workspace_bytes());
    }
    return way;
  }

  const GpuModel model_;
  const MaybeGemmLibrary& library_;
  const KernelLists& lists_;
  const absl::string_view name_;  // a literal
  const GemmDecision decide_;
  const std::unique_ptr<const ContractionKernel> without_terms_;
  mutable Ways ways_{kMostKnown};  // so that launches need not decide
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
