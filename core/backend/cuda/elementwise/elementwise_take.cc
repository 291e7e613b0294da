#include <string>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/elementwise/elementwise_formula.h"
#include "core/backend/cuda/elementwise/elementwise_kernels.h"
#include "core/base/status.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/taking.h"

namespace tensord::core::cuda {
namespace {

using Problem = ElementwiseProblem;

constexpr size_t kA = Problem::kA, kB = Problem::kB, kD = Problem::kD;

constexpr absl::string_view kName = "cuda.elementwise.take";

class TakeElementwiseSolution final : public ElementwiseSolution {
 public:
  TakeElementwiseSolution(double predicted_nanoseconds,
                          absl::string_view kernel, const Problem& problem,
                          bool by_words)
      : Solution(predicted_nanoseconds,
                 Workspace::BytesFor(sizeof(RefusedIndices))),
        kernel_(kernel),
        problem_(problem),
        by_words_(by_words) {}

  std::string decision() const override {
    return absl::StrCat("element by element, by indices below ",
                        problem_.taken.extent);
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_);
  }

  absl::Status Launch(const ElementwiseOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    RefusedIndices* refused = nullptr;
    if (operands.gamma.IsZero()) {
      refused = workspace.Take<RefusedIndices>(1);
      TENSORD_RETURN_IF_ERROR(queue.device().Check(
          cudaMemsetAsync(refused, 0, sizeof *refused, queue.get()),
          "clearing what is known of indices"));
    }
    TENSORD_RETURN_IF_ERROR(
        queue.device().Check(Queue(operands, refused, queue.get()),
                             absl::StrCat("launching ", kernel_)));
    if (refused == nullptr) return absl::OkStatus();
    RefusedIndices known;
    TENSORD_RETURN_IF_ERROR(queue.Await(&known, refused, sizeof known));
    if (known.is_any == 0) return absl::OkStatus();
    return IndexOutOfRange(problem_.taken, known.lowest, known.highest);
  }

 private:
  template <typename Space>
  TakeTask<Space> TaskOf(const ElementwiseOperands& operands,
                         RefusedIndices* refused) const {
    TakeTask<Space> task{.expression = ExpressionOf(problem_, operands),
                         .extent = problem_.taken.extent,
                         .stride = problem_.taken.strides[0],
                         .space = {},
                         .refused = refused};
    task.space.AddAll(problem_.modes);
    return task;
  }
  cudaError_t Queue(const ElementwiseOperands& operands,
                    RefusedIndices* refused, cudaStream_t stream) const {
    if (by_words_ && TakesBits(problem_) && operands.alpha.IsOne() &&
        operands.gamma.IsZero()) {
      return QueueTakeWords(TaskOf<IndexSpace<4>>(operands, refused),
                            static_cast<int>(SizeOf(problem_.types[kD])),
                            stream);
    }
    return QueueTakeTerms(TaskOf<Loops<4>>(operands, refused), stream);
  }

  const absl::string_view kernel_;
  const Problem problem_;
  const bool by_words_;
};

/// Elements of a come from anywhere: a sector for each, unless runs of them
/// have one index.
double PredictNanoseconds(const Problem& problem, const GpuModel& model) {
  double bytes = 0;
  for (size_t i = kB; i <= kD; ++i) bytes += BytesInRuns(problem, i, 1);
  const bool has_runs =
      !problem.modes.empty() && problem.modes[0].strides[kB] == 0;
  const auto size = static_cast<double>(SizeOf(problem.types[kA]));
  bytes += static_cast<double>(ElementCount(problem.modes)) *
           (has_runs ? size : SectorBytes(size));
  return MovingNanoseconds(model, bytes);
}

}  // namespace

std::unique_ptr<const ElementwiseSolution> SolveTake(absl::string_view kernel,
                                                     const Problem& problem,
                                                     bool by_words,
                                                     const GpuModel& model) {
  // Divisions of 64 bits, one a mode.
  const double slowness = by_words ? 1 : 2;
  return std::make_unique<TakeElementwiseSolution>(
      slowness * PredictNanoseconds(problem, model), kernel, problem, by_words);
}

std::unique_ptr<const ElementwiseKernel> CreateTakeElementwise(
    const GpuModel& model) {
  return std::make_unique<SimpleElementwise>(
      std::string(kName),
      [model](const Problem& problem) -> ElementwiseKernel::Solved {
        if (!problem.is_take()) {
          return Unimplemented("NOTHING_TO_TAKE", "it is for TAKE alone");
        }
        TENSORD_RETURN_IF_ERROR(CheckCount(problem));
        return SolveTake(kName, problem, /*by_words=*/true, model);
      });
}

}  // namespace tensord::core::cuda
