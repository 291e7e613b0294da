#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/contraction/contraction_division.h"
#include "core/backend/cuda/contraction/contraction_formula.h"
#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/contraction/threads_division.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;
using Division = ThreadsDivision;

class ThreadsContractionSolution final : public ContractionSolution {
 public:
  ThreadsContractionSolution(const Problem& problem, const Division& division,
                             absl::string_view kernel)
      : Solution(division.nanoseconds),
        division_(division),
        formula_(FormulaOf(problem, division.swaps)),
        modes_(*DirectModesOf(problem, division.swaps, TermOrder::kAsInA)),
        kernel_(kernel) {}

  std::string decision() const override {
    return absl::StrCat(division_.thread_count(), " threads, ",
                        1 << division_.log_sharers, " to a sum",
                        division_.swaps ? ", rows from b" : ", rows from a",
                        division_.batch_first ? ", batches first" : "");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + modes_.heap_bytes();
  }

  absl::Status Launch(const ContractionOperands& operands, Workspace&,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    const ContractionThreadsTask task = TaskOf(operands);
    const cudaError_t queued = VisitDirectType(formula_.type_d, [&](auto zero) {
      return QueueContractionThreads<decltype(zero)>(task, queue.get());
    });
    return queue.device().Check(queued, absl::StrCat("launching ", kernel_));
  }

 private:
  ContractionThreadsTask TaskOf(const ContractionOperands& operands) const {
    ContractionThreadsTask task{
        .formula = WithOperands(formula_, operands, division_.swaps),
        .micro = static_cast<uint32_t>(division_.micro),
        .log_sharers = division_.log_sharers,
        .batch_first = division_.batch_first,
        .tiles_m = FastDivisor(static_cast<uint32_t>(division_.tiles_m)),
        .tiles_n = FastDivisor(static_cast<uint32_t>(division_.tiles_n)),
        .batch_count =
            FastDivisor(static_cast<uint32_t>(division_.batch_count)),
        .k_count = 0,
        .m = {},
        .n = {},
        .k = {},
        .batch = {}};
    task.m.AddAll(modes_.m);
    task.n.AddAll(modes_.n);
    task.batch.AddAll(modes_.batch);
    if (task.formula.a != nullptr && ElementCount(modes_.k) > 0) {
      task.k.AddAll(modes_.k);
      task.k_count = task.k.count;
    }
    return task;
  }

  const Division division_;
  const ContractionFormula formula_;
  const DirectModes modes_;
  const absl::string_view kernel_;
};

class ThreadsContraction final : public ContractionKernel {
 public:
  ThreadsContraction(const GpuModel& model, int64_t micro)
      : model_(model),
        micro_(micro),
        name_(absl::StrCat("cuda.contract.threads_", micro, "x", micro)) {}

  absl::string_view name() const override { return name_; }

  Solved Solve(const Problem& problem) const override {
    TENSORD_RETURN_IF_ERROR(CheckDirect(problem));
    const Division division = DivideByThreads(model_, problem, micro_);
    const int64_t threads = division.thread_count();
    if (threads > kMostThreads) {
      return Unimplemented("TOO_MANY_ELEMENTS", "it needs ", threads,
                           " threads, at most ", kMostThreads, " are possible");
    }
    return std::make_unique<ThreadsContractionSolution>(problem, division,
                                                        name_);
  }

 private:
  const GpuModel model_;
  const int64_t micro_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateThreadsContraction(
    const GpuModel& model, int64_t micro) {
  return std::make_unique<ThreadsContraction>(model, micro);
}

}  // namespace tensord::core::cuda
