#include "core/backend/cuda/reduction_kernels.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/reduction_tasks.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ReductionProblem;

constexpr int64_t kThreads = ReductionTreeTask::kThreads;
// Blocks for each multiprocessor that keep it busy.
constexpr int64_t kBlocksPerMultiprocessor = 8;
// Fewer elements a thread are not worth another block.
constexpr int64_t kLeastPerThread = 8;

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

template <size_t operand_count>
int64_t LeastStride(const LoopModes<operand_count>& modes) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& mode : modes) {
    if (mode.strides[0] != 0) least = std::min(least, mode.strides[0]);
  }
  return least;
}

/// The kept modes in the order of a: reading it matters most.
LoopModes<3> KeptInOrderOfA(const Problem& problem) {
  LoopModes<3> kept = problem.kept;
  std::stable_sort(kept.begin(), kept.end(), [](const auto& x, const auto& y) {
    return x.strides[Problem::kA] < y.strides[Problem::kA];
  });
  return kept;
}

int64_t CeilDivide(int64_t x, int64_t y) { return (x + y - 1) / y; }

int64_t PowerOfTwoFrom(int64_t x) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x)));
}

/// How the threads of a launch share the work.
struct Division {
  int64_t kept_count;
  int64_t reduced_count;
  bool reduced_is_fastest;
  int64_t reduced_threads;  // of a block's kThreads, for one element of d
  int64_t split_count;
  int64_t part;  // elements that one split reduces

  int64_t kept_threads() const { return kThreads / reduced_threads; }
  int64_t tiles() const { return CeilDivide(kept_count, kept_threads()); }
};

Division Divide(const GpuModel& model, int64_t kept_count,
                int64_t reduced_count, bool reduced_is_fastest) {
  Division division{.kept_count = kept_count,
                    .reduced_count = reduced_count,
                    .reduced_is_fastest = reduced_is_fastest};
  if (reduced_is_fastest) {
    // Whole lines of a for a warp, and not many idle threads.
    division.reduced_threads = std::clamp<int64_t>(
        PowerOfTwoFrom(CeilDivide(reduced_count, kLeastPerThread)),
        std::min<int64_t>(PowerOfTwoFrom(std::max<int64_t>(reduced_count, 1)),
                          32),
        kThreads);
  } else {
    division.reduced_threads =
        kThreads / std::min<int64_t>(PowerOfTwoFrom(kept_count), 64);
  }
  const int64_t wanted = CeilDivide(
      kBlocksPerMultiprocessor * model.multiprocessor_count, division.tiles());
  const int64_t useful =
      CeilDivide(reduced_count, division.reduced_threads * kLeastPerThread);
  const int64_t needed =
      CeilDivide(reduced_count, division.reduced_threads *
                                    int64_t{ReductionTreeTask::kMostPerThread});
  division.split_count =
      std::max<int64_t>({1, needed, std::min(wanted, useful)});
  division.part = CeilDivide(reduced_count, division.split_count);
  return division;
}

Division DivisionOf(const GpuModel& model, const Problem& problem) {
  return Divide(model, ElementCount(problem.kept),
                ElementCount(problem.reduced),
                LeastStride(problem.reduced) < LeastStride(problem.kept));
}

int64_t PartialBytes(const Problem& problem, const Division& division) {
  if (division.split_count == 1) return 0;
  const ElementType element =
      ComputeElement(problem.type_a, problem.type_d, problem.compute_type);
  const int64_t element_bytes = IsInteger(element)
                                    ? static_cast<int64_t>(sizeof(int64_t))
                                    : SizeOf(element);
  return division.split_count * division.kept_count * element_bytes;
}

void Apply(const Division& division, ReductionTreeTask& task) {
  task.kept_threads = static_cast<uint32_t>(division.kept_threads());
  task.reduced_threads = static_cast<uint32_t>(division.reduced_threads);
  task.reduced_is_fastest = division.reduced_is_fastest;
  task.split_count = static_cast<uint32_t>(division.split_count);
  task.part = static_cast<uint32_t>(division.part);
  task.reduced_count = static_cast<uint32_t>(division.reduced_count);
}

class CudaReduction : public ReductionKernel {
 public:
  explicit CudaReduction(const GpuModel& model) : model_(model) {}

 protected:
  const GpuModel& model() const { return model_; }

  /// Time to read a once, in runs of `run` elements.
  double Nanoseconds(const Problem& problem, double run) const {
    const double each =
        SectorBytes(run * static_cast<double>(SizeOf(problem.type_a))) / run;
    const auto kept = static_cast<double>(ElementCount(problem.kept));
    const auto reduced = static_cast<double>(ElementCount(problem.reduced));
    return model_.launch_ns +
           (kept * reduced * each +
            2 * kept * static_cast<double>(SizeOf(problem.type_d))) /
               model_.copy_bytes_per_ns();
  }

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
    // A lone thread takes some 20 ns an element.
    return 2 * Nanoseconds(problem, 1) +
           20 * static_cast<double>(ElementCount(problem.reduced));
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
    const Division division = DivisionOf(model(), problem);
    if (division.tiles() * division.split_count > kMaxIndex) {
      return Unimplemented("TOO_MANY_ELEMENTS", "it needs ", division.tiles(),
                           " x ", division.split_count,
                           " blocks of threads, at most ", kMaxIndex,
                           " are possible");
    }
    return absl::OkStatus();
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    return Workspace::BytesFor(
        PartialBytes(problem, DivisionOf(model(), problem)));
  }

  double PredictNanoseconds(const Problem& problem) const override {
    const Division division = DivisionOf(model(), problem);
    const bool is_contiguous =
        std::min(LeastStride(problem.kept), LeastStride(problem.reduced)) == 1;
    const auto run = is_contiguous
                         ? static_cast<double>(division.reduced_is_fastest
                                                   ? division.reduced_count
                                                   : division.kept_count)
                         : 1.0;
    return Nanoseconds(problem, std::max(run, 1.0)) +
           (division.split_count > 1 ? model().launch_ns : 0);
  }

  absl::Status Launch(const Problem& problem, const ReductionOperands& operands,
                      Workspace& workspace, Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    const Division division = DivisionOf(model(), problem);
    ReductionTreeTask task{
        .formula = FormulaOf(problem, operands), .kept = {}, .reduced = {}};
    Apply(division, task);
    for (const auto& mode : KeptInOrderOfA(problem)) {
      task.kept.Add(mode.extent, mode.strides);
    }
    if (division.reduced_count > 0) {
      for (const auto& mode : problem.reduced) {
        task.reduced.Add(mode.extent, mode.strides);
      }
    }
    if (task.formula.a == nullptr) task.split_count = 1;
    if (task.split_count == 1) {
      return queue.device().Check(QueueReductionTree(task, queue.get()),
                                  "launching cuda.reduce.tree");
    }
    task.partial = workspace.Take<std::byte>(PartialBytes(problem, division));
    TENSORD_RETURN_IF_ERROR(queue.device().Check(
        QueueReductionTree(task, queue.get()), "launching cuda.reduce.tree"));
    return queue.device().Check(
        QueueReductionTree(Second(problem, task, division), queue.get()),
        "launching the second part of cuda.reduce.tree");
  }

 private:
  /// Reduces what the splits of `first` leave, and does the rest.
  ReductionTreeTask Second(const Problem& problem,
                           const ReductionTreeTask& first,
                           const Division& division) const {
    ReductionTreeTask task{.formula = first.formula, .kept = {}, .reduced = {}};
    Division second = Divide(model(), division.kept_count, division.split_count,
                             division.kept_count == 1);
    // One launch: there are few enough to be taken by one block each.
    second.split_count = 1;
    second.part = second.reduced_count;
    Apply(second, task);
    task.formula.a = first.partial;
    task.formula.type_a = IsInteger(first.formula.compute)
                              ? ElementType::kInt64
                              : first.formula.compute;
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
