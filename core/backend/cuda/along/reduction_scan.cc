#include <algorithm>
#include <bit>
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

// Elements along the mode that are worth a chunk of their own.
constexpr int64_t kSmallestChunk = 8 << 10;

/// The work of one scan, dealt out.
struct Division {
  int64_t kept_count = 1;
  int64_t kept_threads = 1;
  int64_t row_threads = ScanTask::kThreads;
  bool along_is_fastest = true;
  int64_t chunk = 1;
  int64_t chunk_count = 1;

  int64_t tiles() const { return CeilDivide(kept_count, kept_threads); }
  int64_t block_count() const { return tiles() * chunk_count; }
};

int64_t PowerOfTwoFrom(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
}

Division Divide(const GpuModel& model, const Problem& problem) {
  const int64_t blocks = 4 * int64_t{model.multiprocessor_count};
  Division division{.kept_count = ElementCount(problem.kept)};
  const int64_t extent = problem.along.extent;
  const auto is_closer = [&](const LoopMode<3>& mode) {
    return mode.strides[Problem::kA] < problem.along.strides[Problem::kA];
  };
  division.along_is_fastest = std::ranges::none_of(problem.kept, is_closer);
  int64_t threads = CeilDivide(extent, ScanTask::kItems);
  if (!division.along_is_fastest) {
    // As many as it takes to keep all multiprocessors busy.
    threads = std::min(
        threads, CeilDivide(blocks * ScanTask::kThreads, division.kept_count));
  }
  division.row_threads =
      PowerOfTwoFrom(std::clamp<int64_t>(threads, 1, ScanTask::kThreads));
  division.kept_threads = ScanTask::kThreads / division.row_threads;
  const int64_t chunks = std::clamp<int64_t>(
      extent / kSmallestChunk, 1, CeilDivide(blocks, division.tiles()));
  division.chunk = RoundUp(CeilDivide(extent, chunks),
                           division.row_threads * ScanTask::kItems);
  division.chunk_count = CeilDivide(extent, division.chunk);
  return division;
}

int64_t TotalBytes(const Problem& problem, const Division& division) {
  if (division.chunk_count == 1) return 0;
  const ElementType compute = problem.compute_element();
  const int64_t bytes =
      SizeOf(IsInteger(compute) ? ElementType::kInt64 : compute);
  return Workspace::BytesFor(division.kept_count * division.chunk_count *
                             bytes);
}

double Predict(const GpuModel& model, const Problem& problem,
               const Division& division) {
  const double elements = static_cast<double>(division.kept_count) *
                          static_cast<double>(problem.along.extent);
  const int64_t read = SizeOf(problem.type_a), written = SizeOf(problem.type_d);
  const bool is_twice = division.chunk_count > 1;
  const auto bytes = static_cast<double>((is_twice ? 2 : 1) * read + written);
  return (is_twice ? 3 : 1) * model.launch_ns +
         elements * bytes / model.copy_bytes_per_ns();
}

class ScanSolution final : public ReductionSolution {
 public:
  ScanSolution(const GpuModel& model, const Problem& problem,
               const Division& division)
      : Solution(Predict(model, problem, division),
                 TotalBytes(problem, division)),
        problem_(problem),
        division_(division) {}

  std::string decision() const override {
    return absl::StrCat(division_.block_count(), " blocks of ",
                        division_.kept_threads, " x ", division_.row_threads,
                        " threads",
                        division_.chunk_count > 1 ? ", in three launches" : "");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_);
  }

  absl::Status Launch(const ReductionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    const auto check = [&](cudaError_t queued) {
      return queue.device().Check(queued, "launching cuda.reduce.scan");
    };
    ScanTask task = TaskOf(operands);
    if (workspace_bytes() > 0 && task.formula.a != nullptr) {
      task.totals = workspace.Take<std::byte>(workspace_bytes());
      task.finds_totals = true;
      TENSORD_RETURN_IF_ERROR(check(QueueScan(task, queue.get())));
      task.finds_totals = false;
      const JoinTotalsTask join{
          .formula = task.formula,
          .kept_count = static_cast<uint32_t>(division_.kept_count),
          .chunk_count = task.chunk_count,
          .totals = task.totals};
      TENSORD_RETURN_IF_ERROR(check(QueueJoinTotals(join, queue.get())));
    }
    return check(QueueScan(task, queue.get()));
  }

 private:
  ScanTask TaskOf(const ReductionOperands& operands) const {
    ScanTask task{.formula = FormulaOf(problem_, operands),
                  .along = AlongOf(problem_),
                  .kept_threads = static_cast<uint32_t>(division_.kept_threads),
                  .row_threads = static_cast<uint32_t>(division_.row_threads),
                  .along_is_fastest = division_.along_is_fastest,
                  .chunk_count = static_cast<uint32_t>(division_.chunk_count),
                  .chunk = division_.chunk,
                  .kept = {}};
    task.kept.AddAll(problem_.kept);
    return task;
  }

  const Problem problem_;
  const Division division_;
};

}  // namespace

std::unique_ptr<const ReductionKernel> CreateScanReduction(
    const GpuModel& model) {
  return std::make_unique<SimpleReduction>(
      "cuda.reduce.scan",
      [model](const Problem& problem) -> ReductionKernel::Solved {
        TENSORD_RETURN_IF_ERROR(CheckScans(problem));
        TENSORD_RETURN_IF_ERROR(CheckKept(problem));
        const Division division = Divide(model, problem);
        TENSORD_RETURN_IF_ERROR(CheckBlocks(division.block_count()));
        return std::make_unique<ScanSolution>(model, problem, division);
      });
}

}  // namespace tensord::core::cuda
