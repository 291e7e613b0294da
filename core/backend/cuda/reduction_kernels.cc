#include "core/backend/cuda/reduction_kernels.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/groups/group.h"
#include "core/backend/cuda/kernel/reduction_tasks.h"
#include "core/backend/cuda/reduction_division.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ReductionProblem;

ReductionFormula FormulaOf(const Problem& problem,
                           const ReductionOperands& operands) {
  return {.a = operands.alpha.IsZero() ? nullptr : operands.a,
          .c = operands.beta.IsZero() ? nullptr : operands.c,
          .d = operands.d,
          .type_a = problem.type_a,
          .type_d = problem.type_d,
          .compute = ComputeElement(problem.type_a, problem.type_d,
                                    problem.compute_type),
          .compute_type = problem.compute_type,
          .op = problem.op,
          .unary_a = problem.unary_a,
          .unary_c = problem.unary_c,
          .alpha = {operands.alpha.real, operands.alpha.imaginary},
          .beta = {operands.beta.real, operands.beta.imaginary}};
}

ReductionTreeTask TreeTaskOf(const ReductionFormula& formula,
                             const ReductionDivision& division) {
  return {.formula = formula,
          .kept_threads = static_cast<uint32_t>(division.kept_threads),
          .reduced_threads = static_cast<uint32_t>(division.reduced_threads),
          .reduced_is_fastest = division.reduced_is_fastest,
          .split_count = static_cast<uint32_t>(division.split_count),
          .part = static_cast<uint32_t>(division.part),
          .reduced_count = static_cast<uint32_t>(division.reduced_items),
          .kept = {},
          .reduced = {}};
}

ReductionTreeTask TreeTaskOf(const Problem& problem,
                             const ReductionFormula& formula,
                             const ReductionDivision& division) {
  ReductionTreeTask task = TreeTaskOf(formula, division);
  for (const auto& mode : KeptInOrderOfA(problem)) {
    task.kept.Add(mode.extent, mode.strides);
  }
  if (division.reduced_items > 0) {
    for (const auto& mode : problem.reduced) {
      task.reduced.Add(mode.extent, mode.strides);
    }
  }
  return task;
}

/// Adds `modes`, the first of them in groups of `width` elements.
template <size_t operand_count, int space_operand_count>
void AddGroups(const LoopModes<operand_count>& modes, int64_t width,
               IndexSpace<space_operand_count>& space) {
  for (size_t m = 0; m < modes.size(); ++m) {
    auto [extent, strides] = modes[m];
    if (m == 0) {
      extent = (extent + width - 1) / width;
      for (int64_t& stride : strides) stride *= width;
    }
    space.Add(extent, strides);
  }
}

ReductionGroupsTask GroupsTaskOf(const Problem& problem,
                                 const ReductionFormula& formula,
                                 const ReductionDivision& division) {
  const bool is_columns = division.way == ReductionWay::kColumns;
  const int64_t width = division.group_width;
  const LoopModes<3> kept = KeptInOrderOfA(problem);
  ReductionGroupsTask task{
      .formula = formula,
      .way = division.way,
      .is_plain = formula.alpha[0] == 1 && formula.alpha[1] == 0 &&
                  formula.c == nullptr,
      .thread_bits =
          static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(
              is_columns ? division.kept_threads : division.reduced_threads))),
      .split_count = FastDivisor(static_cast<uint32_t>(division.split_count)),
      .part = static_cast<uint32_t>(division.part),
      .kept_count = static_cast<uint32_t>(division.kept_count),
      .kept = {},
      .reduced = {}};
  AddGroups(kept, is_columns ? width : 1, task.kept);
  AddGroups(problem.reduced, is_columns ? 1 : width, task.reduced);
  if (is_columns) {
    task.run = static_cast<uint32_t>(kept[0].extent);
    std::copy(kept[0].strides.begin(), kept[0].strides.end(), task.run_strides);
  } else {
    task.run = static_cast<uint32_t>(problem.reduced[0].extent);
  }
  task.is_aligned = reinterpret_cast<uintptr_t>(formula.a) % kGroupBytes == 0 &&
                    division.has_whole_groups;
  return task;
}

class CudaReduction : public ReductionKernel {
 public:
  explicit CudaReduction(const GpuModel& model) : model_(model) {}

 protected:
  const GpuModel& model() const { return model_; }

 private:
  const GpuModel model_;
};

class ReferenceReduction final : public CudaReduction {
 public:
  using CudaReduction::CudaReduction;
  absl::string_view name() const override { return "cuda.reduce.reference"; }
  absl::Status Supports(const Problem&) const override {
    return absl::OkStatus();
  }
  int64_t WorkspaceBytes(const Problem&) const override { return 0; }
  double PredictNanoseconds(const Problem& problem) const override {
    // Threads apart read single elements, and a lone one takes some 20 ns for
    // each.
    constexpr double kSectorBytes = 32;
    const auto kept = static_cast<double>(ElementCount(problem.kept));
    const auto reduced = static_cast<double>(ElementCount(problem.reduced));
    return model().launch_ns + 20 * reduced +
           2 * kSectorBytes * kept * (reduced + 1) /
               model().copy_bytes_per_ns();
  }

  absl::Status Launch(const Problem& problem, const ReductionOperands& operands,
                      Workspace&, Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    ReductionReferenceTask task{
        .formula = FormulaOf(problem, operands),
        .kept_count = ElementCount(problem.kept),
        .reduced_count = ElementCount(problem.reduced),
        .kept_mode_count = static_cast<int>(problem.kept.size()),
        .reduced_mode_count = static_cast<int>(problem.reduced.size()),
        .modes = {}};
    auto* to = task.modes;
    for (const auto& mode : problem.kept) {
      *to++ = {mode.extent,
               {mode.strides[Problem::kA], mode.strides[Problem::kC],
                mode.strides[Problem::kD]}};
    }
    for (const auto& mode : problem.reduced) {
      *to++ = {mode.extent, {mode.strides[0], 0, 0}};
    }
    return queue.device().Check(QueueReductionReference(task, queue.get()),
                                "launching cuda.reduce.reference");
  }
};

class TreeReduction final : public CudaReduction {
 public:
  using CudaReduction::CudaReduction;
  absl::string_view name() const override { return "cuda.reduce.tree"; }

  absl::Status Supports(const Problem& problem) const override {
    const int64_t kept = ElementCount(problem.kept);
    const int64_t reduced = ElementCount(problem.reduced);
    if (std::max(kept, reduced) > kMaxIndex) {
      return Unimplemented("TOO_MANY_ELEMENTS", "it reduces ", reduced,
                           " elements each to ", kept, ", at most ", kMaxIndex,
                           " are possible of either");
    }
    // Without alpha all go element by element.
    for (const ReductionDivision& division :
         {Divide(model(), problem), DivideElements(model(), problem)}) {
      if (division.block_count() > kMaxIndex) {
        return Unimplemented(
            "TOO_MANY_ELEMENTS", "it needs ", division.block_count(),
            " blocks of threads, at most ", kMaxIndex, " are possible");
      }
    }
    return absl::OkStatus();
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    return Workspace::BytesFor(PartialBytes(problem, Divide(model(), problem)));
  }

  double PredictNanoseconds(const Problem& problem) const override {
    return PredictReduction(model(), problem, Divide(model(), problem));
  }

  absl::Status Launch(const Problem& problem, const ReductionOperands& operands,
                      Workspace& workspace, Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    const ReductionFormula formula = FormulaOf(problem, operands);
    if (formula.a == nullptr) {
      ReductionDivision division = DivideElements(model(), problem);
      division.split_count = 1;
      return Check(queue,
                   QueueReductionTree(TreeTaskOf(problem, formula, division),
                                      queue.get()));
    }
    const ReductionDivision division = Divide(model(), problem);
    void* partial = nullptr;
    if (division.split_count > 1) {
      partial = workspace.Take<std::byte>(PartialBytes(problem, division));
    }
    TENSORD_RETURN_IF_ERROR(
        Check(queue, QueueFirst(problem, formula, division, partial, queue)));
    if (partial == nullptr) return absl::OkStatus();
    return Check(queue,
                 QueueReductionTree(Second(problem, formula, division, partial),
                                    queue.get()));
  }

 private:
  static absl::Status Check(CudaStream& queue, cudaError_t queued) {
    return queue.device().Check(queued, "launching cuda.reduce.tree");
  }

  static cudaError_t QueueFirst(const Problem& problem,
                                const ReductionFormula& formula,
                                const ReductionDivision& division,
                                void* partial, CudaStream& queue) {
    if (division.way == ReductionWay::kTree) {
      ReductionTreeTask task = TreeTaskOf(problem, formula, division);
      task.partial = partial;
      return QueueReductionTree(task, queue.get());
    }
    ReductionGroupsTask task = GroupsTaskOf(problem, formula, division);
    task.partial = partial;
    return VisitElementType(problem.type_a, [&](auto zero) {
      return QueueReductionGroups<decltype(zero)>(task, queue.get());
    });
  }

  /// Reduces what the splits leave in `partial`, and does the rest.
  ReductionTreeTask Second(const Problem& problem,
                           const ReductionFormula& formula,
                           const ReductionDivision& division,
                           const void* partial) const {
    ReductionDivision second =
        DivideElements(model(), division.kept_count, division.split_count,
                       division.kept_count == 1);
    // One launch: there are few enough to be taken by one block each.
    second.split_count = 1;
    second.part = second.reduced_items;
    ReductionTreeTask task = TreeTaskOf(formula, second);
    task.formula.a = partial;
    task.formula.type_a =
        IsInteger(formula.compute) ? ElementType::kInt64 : formula.compute;
    task.formula.unary_a = UnaryOperator::kIdentity;
    int64_t before = 1;
    for (const auto& mode : KeptInOrderOfA(problem)) {
      task.kept.Add(mode.extent, {before, mode.strides[Problem::kC],
                                  mode.strides[Problem::kD]});
      before *= mode.extent;
    }
    task.reduced.Add(division.split_count, {division.kept_count});
    return task;
  }
};

}  // namespace

std::unique_ptr<const ReductionKernel> CreateTreeReduction(
    const GpuModel& model) {
  return std::make_unique<TreeReduction>(model);
}

std::unique_ptr<const ReductionKernel> CreateReferenceReduction(
    const GpuModel& model) {
  return std::make_unique<ReferenceReduction>(model);
}

}  // namespace tensord::core::cuda
