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
#include "core/base/memo.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;
using Division = ThreadsDivision;

// Problems whose divisions are kept.
constexpr size_t kMostKnown = 1024;

ContractionThreadsTask TaskOf(const Problem& problem,
                              const ContractionOperands& operands,
                              const Division& division) {
  const DirectModes modes =
      *DirectModesOf(problem, division.swaps, TermOrder::kAsInA);
  ContractionThreadsTask task{
      .formula = FormulaOf(problem, operands, division.swaps),
      .micro = static_cast<uint32_t>(division.micro),
      .log_sharers = division.log_sharers,
      .batch_first = division.batch_first,
      .tiles_m = FastDivisor(static_cast<uint32_t>(division.tiles_m)),
      .tiles_n = FastDivisor(static_cast<uint32_t>(division.tiles_n)),
      .batch_count = FastDivisor(static_cast<uint32_t>(division.batch_count)),
      .k_count = 0,
      .m = {},
      .n = {},
      .k = {},
      .batch = {}};
  const auto add = [](auto& space, const auto& group) {
    for (const auto& mode : group) space.Add(mode.extent, mode.strides);
  };
  add(task.m, modes.m);
  add(task.n, modes.n);
  add(task.batch, modes.batch);
  if (task.formula.a != nullptr && ElementCount(modes.k) > 0) {
    add(task.k, modes.k);
    task.k_count = task.k.count;
  }
  return task;
}

class ThreadsContraction final : public ContractionKernel {
 public:
  ThreadsContraction(const GpuModel& model, int64_t micro)
      : model_(model),
        micro_(micro),
        name_(absl::StrCat("cuda.contract.threads_", micro, "x", micro)) {}

  absl::string_view name() const override { return name_; }

  absl::Status Supports(const Problem& problem) const override {
    TENSORD_RETURN_IF_ERROR(CheckDirect(problem));
    const int64_t threads = DivisionOf(problem).thread_count();
    if (threads > kMostThreads) {
      return Unimplemented("TOO_MANY_ELEMENTS", "it needs ", threads,
                           " threads, at most ", kMostThreads, " are possible");
    }
    return absl::OkStatus();
  }

  int64_t WorkspaceBytes(const Problem&) const override { return 0; }

  double PredictNanoseconds(const Problem& problem) const override {
    return DivisionOf(problem).nanoseconds;
  }

  absl::Status Launch(const Problem& problem,
                      const ContractionOperands& operands, Workspace&,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    const ContractionThreadsTask task =
        TaskOf(problem, operands, DivisionOf(problem));
    const cudaError_t queued = VisitElementType(problem.type_d, [&](auto zero) {
      using Stored = decltype(zero);
      if constexpr (std::is_same_v<Stored, bool>) {
        return cudaErrorInvalidValue;  // not supported
      } else {
        return QueueContractionThreads<Stored>(task, queue.get());
      }
    });
    return queue.device().Check(queued, absl::StrCat("launching ", name()));
  }

 private:
  Division DivisionOf(const Problem& problem) const {
    const auto division = divisions_.Get(problem, [&] {
      return std::make_shared<const Division>(
          DivideByThreads(model_, problem, micro_));
    });
    return **division;  // there always is one
  }

  const GpuModel model_;
  const int64_t micro_;
  const std::string name_;
  /// So that launches need not decide.
  mutable Memo<Problem, Division> divisions_{kMostKnown};
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateThreadsContraction(
    const GpuModel& model, int64_t micro) {
  return std::make_unique<ThreadsContraction>(model, micro);
}

}  // namespace tensord::core::cuda
