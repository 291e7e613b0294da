#include <algorithm>
#include <vector>

#include "core/backend/cuda/elementwise/elementwise_formula.h"
#include "core/backend/cuda/elementwise/elementwise_kernels.h"
#include "core/backend/cuda/kernel/groups/group.h"

namespace tensord::core::cuda {
namespace {

using Problem = ElementwiseProblem;

constexpr size_t kD = Problem::kD;

class FusedElementwise final : public CudaElementwise {
 public:
  using CudaElementwise::CudaElementwise;
  absl::string_view name() const override { return "cuda.elementwise.fused"; }
  absl::Status Supports(const Problem& problem) const override {
    return CheckCount(problem);
  }
  double PredictNanoseconds(const Problem& problem) const override {
    const std::vector<size_t> order = OrderBy(problem.modes, kD);
    const Parts whole = WholeOf(problem.modes);
    double bytes = 0;
    for (size_t i = 0; i <= kD; ++i) {
      if (i != kD && !IsInput(problem, i)) continue;
      bytes += BytesInRuns(problem, i, RunAlong(problem, i, order, whole));
    }
    return Nanoseconds(bytes);
  }

 private:
  cudaError_t Queue(const Problem& problem, const Expression& expression,
                    cudaStream_t stream) const override {
    ElementwiseFusedTask task{
        .expression = expression,
        .is_grouped = expression.is_uniform &&
                      (expression.is_plain || !IsInteger(problem.types[kD])),
        .modes = {}};
    if (!task.is_grouped) {
      for (const auto& mode : problem.modes) {
        task.modes.Add(mode.extent, mode.strides);
      }
      return QueueElementwiseMixed(task, stream);
    }
    AddGroups(problem, task);
    return VisitElementType(problem.types[kD], [&](auto zero) {
      return QueueElementwiseGroups<decltype(zero)>(task, stream);
    });
  }

  static void AddGroups(const Problem& problem, ElementwiseFusedTask& task) {
    const int64_t width = kGroupBytes / SizeOf(problem.types[kD]);
    LoopModes<4> modes = problem.modes;
    if (modes.empty()) modes.push_back({.extent = 1, .strides = {}});
    auto& [run, strides] = modes[0];
    task.run = static_cast<uint32_t>(run);
    std::copy(strides.begin(), strides.end(), task.run_strides);
    const bool is_whole =
        reinterpret_cast<uintptr_t>(task.expression.d) % kGroupBytes == 0 &&
        std::all_of(modes.begin() + 1, modes.end(), [&](const auto& mode) {
          return mode.strides[kD] % width == 0;
        });
    // Of short runs more would be gained by nothing.
    task.is_shifted = !is_whole && strides[kD] == 1 && run >= 4 * width;
    if (task.is_shifted) run += width - 1;
    run = (run + width - 1) / width;
    for (int64_t& stride : strides) stride *= width;
    for (const auto& mode : modes) task.modes.Add(mode.extent, mode.strides);
  }
};

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateFusedElementwise(
    const GpuModel& model) {
  return std::make_unique<FusedElementwise>(model);
}

}  // namespace tensord::core::cuda
