// Any reduction, a thread an element of d.
#include <algorithm>

#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/reduction_formula.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr int64_t kMaxBlocks = 1 << 16;
constexpr int kLevels = 60;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Reference(const ReductionReferenceTask __grid_constant__ task) {
  const ReductionFormula& formula = task.formula;
  const Arithmetic sums = SumArithmetic(formula);
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       index < task.kept_count; index += step) {
    int64_t rest = index;
    int64_t base[3] = {};
    for (int m = 0; m < task.kept_mode_count; ++m) {
      const auto& mode = task.modes[m];
      const int64_t next = rest / mode.extent;
      for (int i = 0; i < 3; ++i) {
        base[i] += (rest - next * mode.extent) * mode.strides[i];
      }
      rest = next;
    }
    // Combines in pairs, pairs of pairs and so on.
    T levels[kLevels];
    const int64_t count = formula.a == nullptr ? 0 : task.reduced_count;
    for (int64_t r = 0; r < count; ++r) {
      int64_t at = base[0];
      rest = r;
      for (int m = 0; m < task.reduced_mode_count; ++m) {
        const auto& mode = task.modes[task.kept_mode_count + m];
        const int64_t next = rest / mode.extent;
        at += (rest - next * mode.extent) * mode.strides[0];
        rest = next;
      }
      T x = TermAt<T>(formula, at);
      int level = 0;
      for (int64_t ones = r; ones & 1; ones >>= 1) {
        x = ApplyBinary(sums, formula.op, levels[level++], x);
      }
      levels[level] = x;
    }
    T result = IdentityOf<T>(formula.op, formula.type_d);
    for (int level = 0; level < kLevels; ++level) {
      if (count >> level & 1) {
        result = ApplyBinary(sums, formula.op, levels[level], result);
      }
    }
    Conclude<true>(formula, formula.type_d, result, base[1], base[2]);
  }
}

}  // namespace

cudaError_t QueueReductionReference(const ReductionReferenceTask& task,
                                    cudaStream_t stream) {
  const Grid grid{.blocks = static_cast<uint32_t>(std::min(
                      (task.kept_count + kThreads - 1) / kThreads, kMaxBlocks)),
                  .threads = kThreads};
  return VisitArithmetic(task.formula.compute, [&](auto zero) {
    return Launch(grid, stream, &Reference<decltype(zero)>, task);
  });
}

}  // namespace tensord::core::cuda
