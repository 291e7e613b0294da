#include <algorithm>
#include <string>

#include "core/backend/cuda/elementwise/elementwise_formula.h"
#include "core/backend/cuda/elementwise/elementwise_kernels.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core::cuda {
namespace {

using Problem = ElementwiseProblem;

constexpr size_t kD = Problem::kD;
// Divisions of 64 bits, one a mode, beside whole sectors for single elements.
constexpr double kSlowness = 2;

constexpr absl::string_view kName = "cuda.elementwise.reference";

class ReferenceElementwiseSolution final : public CudaElementwiseSolution {
 public:
  using CudaElementwiseSolution::CudaElementwiseSolution;

  std::string decision() const override { return "element by element"; }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem());
  }

 private:
  cudaError_t Queue(const Expression& expression,
                    cudaStream_t stream) const override {
    ElementwiseReferenceTask task{.expression = expression, .loops = {}};
    task.loops.AddAll(problem().modes);
    return QueueElementwiseReference(task, stream);
  }
};

double PredictNanoseconds(const Problem& problem, const GpuModel& model) {
  double bytes = 0;
  for (size_t i = 0; i <= kD; ++i) {
    if (i == kD || IsInput(problem, i)) bytes += BytesInRuns(problem, i, 1);
  }
  return MovingNanoseconds(model, kSlowness * bytes);
}

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateReferenceElementwise(
    const GpuModel& model) {
  return std::make_unique<SimpleElementwise>(
      std::string(kName),
      [model](const Problem& problem) -> ElementwiseKernel::Solved {
        if (problem.is_take()) {
          return SolveTake(kName, problem, /*by_words=*/false, model);
        }
        return std::make_unique<ReferenceElementwiseSolution>(
            PredictNanoseconds(problem, model), kName, problem);
      });
}

}  // namespace tensord::core::cuda
