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
    ElementwiseReferenceTask task{
        .expression = expression,
        .element_count = ElementCount(problem().modes),
        .mode_count = static_cast<int>(problem().modes.size()),
        .modes = {}};
    for (size_t m = 0; m < problem().modes.size(); ++m) {
      const auto& mode = problem().modes[m];
      task.modes[m].extent = mode.extent;
      std::copy(mode.strides.begin(), mode.strides.end(),
                task.modes[m].strides);
    }
    return QueueElementwiseReference(task, stream);
  }
};

class ReferenceElementwise final : public ElementwiseKernel {
 public:
  explicit ReferenceElementwise(const GpuModel& model) : model_(model) {}

  absl::string_view name() const override { return kName; }
  Solved Solve(const Problem& problem) const override {
    double bytes = 0;
    for (size_t i = 0; i <= kD; ++i) {
      if (i == kD || IsInput(problem, i)) bytes += BytesInRuns(problem, i, 1);
    }
    return std::make_unique<ReferenceElementwiseSolution>(
        MovingNanoseconds(model_, kSlowness * bytes), kName, problem);
  }

 private:
  const GpuModel model_;
};

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateReferenceElementwise(
    const GpuModel& model) {
  return std::make_unique<ReferenceElementwise>(model);
}

}  // namespace tensord::core::cuda
