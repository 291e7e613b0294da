#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/along/along_formula.h"
#include "core/backend/cuda/along/along_kernels.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/along/along_tasks.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/problem/along.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core::cuda {
namespace {

using Problem = ReductionProblem;

// Of kept elements that are sorted by several launches so many pairs together.
constexpr int64_t kMostPairs = 4 << 20;

/// Elements that are sorted together: all along the mode where they fit.
int64_t RunOf(const Problem& problem) {
  const int64_t most =
      std::min<int64_t>(problem.along.extent, SortTask::kBlock);
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most)));
}
bool IsOneRun(const Problem& problem) {
  return problem.along.extent <= SortTask::kBlock;
}

/// Kept elements that are sorted by the same launches.
int64_t Together(const Problem& problem) {
  const int64_t kept = ElementCount(problem.kept);
  if (IsOneRun(problem)) return kept;
  return std::clamp<int64_t>(kMostPairs / problem.along.extent, 1, kept);
}

int64_t PairBytes(const Problem& problem) {
  return Workspace::BytesFor(Together(problem) * problem.along.extent *
                             static_cast<int64_t>(sizeof(SortPair)));
}

double Predict(const GpuModel& model, const Problem& problem) {
  const auto kept = static_cast<double>(ElementCount(problem.kept));
  const auto extent = static_cast<double>(problem.along.extent);
  const auto bytes =
      static_cast<double>(SizeOf(problem.type_a) + SizeOf(problem.type_d));
  // A network of log2(n)^2 / 2 steps, each of which reads and writes shared
  // memory, at some four times the rate of memory.
  const double steps = std::log2(static_cast<double>(RunOf(problem))) + 1;
  double per_element = bytes + 12 * steps * steps / 4;
  double launches = 1;
  if (!IsOneRun(problem)) {
    const double passes = std::ceil(std::log2(extent / SortTask::kBlock));
    launches =
        (2 + passes) * std::ceil(kept / static_cast<double>(Together(problem)));
    // Looking for a place reads a sector at most steps.
    per_element += passes * (2 * sizeof(SortPair) + 64.0);
  }
  return launches * model.launch_ns +
         kept * extent * per_element / model.copy_bytes_per_ns();
}

class SortSolution final : public ReductionSolution {
 public:
  SortSolution(const GpuModel& model, const Problem& problem)
      : Solution(Predict(model, problem),
                 IsOneRun(problem) ? 0 : 2 * PairBytes(problem)),
        problem_(problem) {}

  std::string decision() const override {
    return IsOneRun(problem_)
               ? absl::StrCat("in runs of ", RunOf(problem_))
               : absl::StrCat("in runs of ", RunOf(problem_),
                              " that are merged, ", Together(problem_),
                              " kept elements at a time");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_);
  }

  absl::Status Launch(const ReductionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    SortTask task{.formula = FormulaOf(problem_, operands),
                  .sorting = problem_.sorting,
                  .along = AlongOf(problem_),
                  .run = static_cast<uint32_t>(RunOf(problem_)),
                  .kept = {}};
    task.kept.AddAll(problem_.kept);
    const auto kept = static_cast<uint32_t>(ElementCount(problem_.kept));
    if (task.formula.a == nullptr || IsOneRun(problem_)) {
      task.kept_count = kept;
      return Check(queue, task.formula.a == nullptr
                              ? QueueStoreIndices(task, queue.get())
                              : QueueSortRuns(task, queue.get()));
    }
    const int64_t pairs = PairBytes(problem_) / sizeof(SortPair);
    SortPair* const one = workspace.Take<SortPair>(pairs);
    SortPair* const other = workspace.Take<SortPair>(pairs);
    const auto together = static_cast<uint32_t>(Together(problem_));
    for (; task.first < kept; task.first += together) {
      task.kept_count = std::min(together, kept - task.first);
      TENSORD_RETURN_IF_ERROR(Merge(task, one, other, queue));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Check(CudaStream& queue, cudaError_t queued) {
    return queue.device().Check(queued, "launching cuda.reduce.sort");
  }

  absl::Status Merge(SortTask task, SortPair* from, SortPair* to,
                     CudaStream& queue) const {
    task.to = from;
    TENSORD_RETURN_IF_ERROR(Check(queue, QueueSortRuns(task, queue.get())));
    for (int64_t run = task.run; run < task.along.extent; run *= 2) {
      task.from = from;
      task.to = to;
      TENSORD_RETURN_IF_ERROR(
          Check(queue, QueueMergeRuns(task, run, queue.get())));
      std::swap(from, to);
    }
    task.from = from;
    return Check(queue, QueueStoreIndices(task, queue.get()));
  }

  const Problem problem_;
};

}  // namespace

std::unique_ptr<const ReductionKernel> CreateSortReduction(
    const GpuModel& model) {
  return std::make_unique<SimpleReduction>(
      "cuda.reduce.sort",
      [model](const Problem& problem) -> ReductionKernel::Solved {
        TENSORD_RETURN_IF_ERROR(CheckSorts(problem));
        TENSORD_RETURN_IF_ERROR(CheckKept(problem));
        const int64_t each = SortTask::kBlock / RunOf(problem);
        const int64_t runs = Together(problem) *
                             CeilDivide(problem.along.extent, RunOf(problem));
        TENSORD_RETURN_IF_ERROR(CheckBlocks(CeilDivide(runs, each)));
        return std::make_unique<SortSolution>(model, problem);
      });
}

}  // namespace tensord::core::cuda
