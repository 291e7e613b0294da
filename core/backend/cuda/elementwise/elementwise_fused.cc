#include <algorithm>
#include <string>
#include <vector>

#include "core/backend/cuda/elementwise/elementwise_formula.h"
#include "core/backend/cuda/elementwise/elementwise_kernels.h"
#include "core/backend/cuda/kernel/groups/group.h"
#include "core/base/status.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core::cuda {
namespace {

using Problem = ElementwiseProblem;

constexpr size_t kD = Problem::kD;

constexpr absl::string_view kName = "cuda.elementwise.fused";

class FusedElementwiseSolution final : public CudaElementwiseSolution {
 public:
  using CudaElementwiseSolution::CudaElementwiseSolution;

  std::string decision() const override {
    return "in d's order, by groups of 16 bytes where types are equal";
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem());
  }

 private:
  cudaError_t Queue(const Expression& expression,
                    cudaStream_t stream) const override {
    const ElementType type_d = problem().types[kD];
    ElementwiseFusedTask task{
        .expression = expression,
        .is_grouped = expression.is_uniform &&
                      (expression.is_plain || !IsInteger(type_d)),
        .modes = {}};
    if (!task.is_grouped) {
      task.modes.AddAll(problem().modes);
      return QueueElementwiseMixed(task, stream);
    }
    AddGroups(task);
    return VisitElementType(type_d, [&](auto zero) {
      return QueueElementwiseGroups<decltype(zero)>(task, stream);
    });
  }

  void AddGroups(ElementwiseFusedTask& task) const {
    const int64_t width = kGroupBytes / SizeOf(problem().types[kD]);
    LoopModes<4> modes = problem().modes;
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
    task.modes.AddAll(modes);
  }
};

ElementwiseKernel::Solved Solve(const Problem& problem, const GpuModel& model) {
  TENSORD_RETURN_IF_ERROR(CheckComputes(problem));
  const std::vector<size_t> order = OrderBy(problem.modes, kD);
  const Parts whole = WholeOf(problem.modes);
  double bytes = 0;
  for (size_t i = 0; i <= kD; ++i) {
    if (i != kD && !IsInput(problem, i)) continue;
    bytes += BytesInRuns(problem, i, RunAlong(problem, i, order, whole));
  }
  return std::make_unique<FusedElementwiseSolution>(
      MovingNanoseconds(model, bytes), kName, problem);
}

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateFusedElementwise(
    const GpuModel& model) {
  return std::make_unique<SimpleElementwise>(
      std::string(kName),
      [model](const Problem& problem) { return Solve(problem, model); });
}

}  // namespace tensord::core::cuda
