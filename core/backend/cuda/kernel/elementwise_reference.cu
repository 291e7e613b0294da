// Any element-wise operation, a thread an element of d.
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Reference(const ElementwiseReferenceTask __grid_constant__ task) {
  const Expression& expression = task.expression;
  const Arithmetic arithmetic =
      ArithmeticOf(expression.types[2], expression.compute_type);
  ForEachIndex(task.loops.count, [&](int64_t index) {
    const Offsets<4> offsets = OffsetsOf(task.loops, index);
    T terms[3] = {};
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr) continue;
      const T x =
          Load<T>(expression.inputs[i], expression.types[i], offsets.at[i]);
      terms[i] = TermOf(expression, arithmetic, i, x);
    }
    Store(expression.d, expression.types[3], offsets.at[3],
          Combine(expression, arithmetic, terms[0], terms[1], terms[2]));
  });
}

}  // namespace

cudaError_t QueueElementwiseReference(const ElementwiseReferenceTask& task,
                                      cudaStream_t stream) {
  const Grid grid = GridOf(task.loops.count, kThreads);
  return VisitArithmetic(task.expression.compute, [&](auto zero) {
    return Launch(grid, stream, &Reference<decltype(zero)>, task);
  });
}

}  // namespace tensord::core::cuda
