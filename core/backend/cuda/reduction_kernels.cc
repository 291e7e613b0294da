#include "core/backend/cuda/reduction_kernels.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/along/along_formula.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/groups/group.h"
#include "core/backend/cuda/kernel/reduction_tasks.h"
#include "core/backend/cuda/reduction_division.h"
#include "core/backend/reference_solution.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"
#include "core/problem/along.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core::cuda {
namespace {

using Problem = ReductionProblem;

ReductionTreeTask TreeTaskOf(const Problem& problem,
                             const ReductionFormula& formula,
                             const ReductionDivision& division) {
  ReductionTreeTask task = TreeTaskOf(formula, division);
  task.kept.AddAll(KeptInOrderOfA(problem));
  if (division.reduced_items > 0) task.reduced.AddAll(problem.reduced);
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

absl::Status LaunchReference(const Problem& problem,
                             const ReductionOperands& operands,
                             Stream& stream) {
  CudaStream& queue = AsCuda(stream);
  TENSORD_RETURN_IF_ERROR(queue.device().Select());
  ReductionReferenceTask task{.formula = FormulaOf(problem, operands),
                              .along = AlongOf(problem),
                              .sorting = problem.sorting,
                              .kept = {},
                              .reduced = {}};
  task.kept.AddAll(problem.kept);
  task.reduced.AddAll(problem.reduced);
  return queue.device().Check(QueueReductionReference(task, queue.get()),
                              "launching cuda.reduce.reference");
}

double PredictReference(const GpuModel& model, const Problem& problem) {
  // Threads apart read single elements, and a lone one takes some 20 ns for
  // each.
  constexpr double kSectorBytes = 32;
  const auto kept = static_cast<double>(ElementCount(problem.kept));
  const auto along = static_cast<double>(problem.along.extent + 1);
  // Sorting compares each element with all others.
  const double reduced = static_cast<double>(ElementCount(problem.reduced)) *
                         (problem.sorts() ? along * along : along);
  return model.launch_ns + 20 * reduced +
         2 * kSectorBytes * kept * (reduced + 1) / model.copy_bytes_per_ns();
}

/// How a tree reduces one problem.
struct TreeDivisions {
  ReductionDivision all;
  ReductionDivision without_alpha;  // element by element
  ReductionDivision second;         // of what the splits leave
};

class TreeReductionSolution final : public ReductionSolution {
 public:
  TreeReductionSolution(double predicted_nanoseconds, const Problem& problem,
                        const TreeDivisions& divisions)
      : Solution(predicted_nanoseconds,
                 Workspace::BytesFor(PartialBytes(problem, divisions.all))),
        problem_(problem),
        divisions_(divisions) {}

  std::string decision() const override {
    const ReductionDivision& division = divisions_.all;
    return absl::StrCat(
        division.way == ReductionWay::kTree      ? "element by element"
        : division.way == ReductionWay::kColumns ? "groups of columns"
                                                 : "groups of rows",
        ", ", division.block_count(), " blocks of ", division.kept_threads,
        " x ", division.reduced_threads, " threads",
        division.split_count > 1 ? ", in two launches" : "");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_);
  }

  absl::Status Launch(const ReductionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    const ReductionFormula formula = FormulaOf(problem_, operands);
    if (formula.a == nullptr) {
      return Check(queue,
                   QueueReductionTree(
                       TreeTaskOf(problem_, formula, divisions_.without_alpha),
                       queue.get()));
    }
    void* const partial = workspace_bytes() == 0
                              ? nullptr
                              : workspace.Take<std::byte>(workspace_bytes());
    TENSORD_RETURN_IF_ERROR(Check(queue, QueueFirst(formula, partial, queue)));
    if (partial == nullptr) return absl::OkStatus();
    return Check(queue,
                 QueueReductionTree(Second(formula, partial), queue.get()));
  }

 private:
  static absl::Status Check(CudaStream& queue, cudaError_t queued) {
    return queue.device().Check(queued, "launching cuda.reduce.tree");
  }

  cudaError_t QueueFirst(const ReductionFormula& formula, void* partial,
                         CudaStream& queue) const {
    if (divisions_.all.way == ReductionWay::kTree) {
      ReductionTreeTask task = TreeTaskOf(problem_, formula, divisions_.all);
      task.partial = partial;
      return QueueReductionTree(task, queue.get());
    }
    ReductionGroupsTask task = GroupsTaskOf(problem_, formula, divisions_.all);
    task.partial = partial;
    return VisitElementType(problem_.type_a, [&](auto zero) {
      return QueueReductionGroups<decltype(zero)>(task, queue.get());
    });
  }

  /// Reduces what the splits leave in `partial`, and does the rest.
  ReductionTreeTask Second(const ReductionFormula& formula,
                           const void* partial) const {
    const ReductionDivision& first = divisions_.all;
    ReductionTreeTask task = TreeTaskOf(formula, divisions_.second);
    task.formula.a = partial;
    task.formula.type_a =
        IsInteger(formula.compute) ? ElementType::kInt64 : formula.compute;
    task.formula.unary_a = UnaryOperator::kIdentity;
    int64_t before = 1;
    for (const auto& mode : KeptInOrderOfA(problem_)) {
      task.kept.Add(mode.extent, {before, mode.strides[Problem::kC],
                                  mode.strides[Problem::kD]});
      before *= mode.extent;
    }
    task.reduced.Add(first.split_count, {first.kept_count});
    return task;
  }

  const Problem problem_;
  const TreeDivisions divisions_;
};

class TreeReduction final : public ReductionKernel {
 public:
  explicit TreeReduction(const GpuModel& model) : model_(model) {}

  absl::string_view name() const override { return "cuda.reduce.tree"; }

  Solved Solve(const Problem& problem) const override {
    TENSORD_RETURN_IF_ERROR(CheckAlongNothing(problem));
    const int64_t kept = ElementCount(problem.kept);
    const int64_t reduced = ElementCount(problem.reduced);
    if (std::max(kept, reduced) > kMaxIndex) {
      return Unimplemented("TOO_MANY_ELEMENTS", "it reduces ", reduced,
                           " elements each to ", kept, ", at most ", kMaxIndex,
                           " are possible of either");
    }
    TreeDivisions divisions{.all = Divide(model_, problem),
                            .without_alpha = DivideElements(model_, problem),
                            .second = {}};
    for (const ReductionDivision* division :
         {&divisions.all, &divisions.without_alpha}) {
      TENSORD_RETURN_IF_ERROR(CheckBlocks(division->block_count()));
    }
    divisions.without_alpha.split_count = 1;
    const ReductionDivision& all = divisions.all;
    divisions.second = DivideSecond(model_, all.kept_count, all.split_count);
    return std::make_unique<TreeReductionSolution>(
        PredictReduction(model_, problem, all), problem, divisions);
  }

 private:
  const GpuModel model_;
};

}  // namespace

std::unique_ptr<const ReductionKernel> CreateTreeReduction(
    const GpuModel& model) {
  return std::make_unique<TreeReduction>(model);
}

std::unique_ptr<const ReductionKernel> CreateReferenceReduction(
    const GpuModel& model) {
  return std::make_unique<SimpleReduction>(
      "cuda.reduce.reference", [model](const Problem& problem) {
        return SolveByReference<ReductionOperands>(
            PredictReference(model, problem), problem, LaunchReference);
      });
}

}  // namespace tensord::core::cuda
