// Any reduction, a thread an element of d.
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/reduction_formula.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr int kLevels = 60;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Reference(const ReductionReferenceTask __grid_constant__ task) {
  const ReductionFormula& formula = task.formula;
  const Arithmetic sums = SumArithmetic(formula);
  ForEachIndex(task.kept.count, [&](int64_t index) {
    const Offsets<3> base = OffsetsOf(task.kept, index);
    // Combines in pairs, pairs of pairs and so on.
    T levels[kLevels];
    const int64_t count = formula.a == nullptr ? 0 : task.reduced.count;
    for (int64_t r = 0; r < count; ++r) {
      T x = TermAt<T>(formula, base.at[0] + OffsetsOf(task.reduced, r).at[0]);
      int level = 0;
      for (int64_t ones = r; ones & 1; ones >>= 1) {
        x = ApplyReducing(sums, formula.op, levels[level++], x);
      }
      levels[level] = x;
    }
    T result = IdentityOf<T>(formula.op, formula.type_d);
    for (int level = 0; level < kLevels; ++level) {
      if (count >> level & 1) {
        result = ApplyReducing(sums, formula.op, levels[level], result);
      }
    }
    Conclude<true>(formula, formula.type_d, result, base.at[1], base.at[2]);
  });
}

}  // namespace

cudaError_t QueueReductionReference(const ReductionReferenceTask& task,
                                    cudaStream_t stream) {
  const Grid grid = GridOf(task.kept.count, kThreads);
  return VisitArithmetic(task.formula.compute, [&](auto zero) {
    return Launch(grid, stream, &Reference<decltype(zero)>, task);
  });
}

}  // namespace tensord::core::cuda
