// Element-wise operations whose operands are of several types, an element a
// thread.
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;

/// Operands of any types that arithmetic in T can read.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    FusedMixed(const __grid_constant__ ElementwiseFusedTask task) {
  const Expression& expression = task.expression;
  const Arithmetic arithmetic =
      ArithmeticOf(expression.types[3], expression.compute_type);
  const uint32_t index = blockIdx.x * kThreads + threadIdx.x;
  if (index >= task.modes.count) return;
  const Offsets<4> offsets = OffsetsOf(task.modes, index);
  T terms[3] = {};
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (expression.inputs[i] == nullptr) continue;
    const T x =
        Load<T>(expression.inputs[i], expression.types[i], offsets.at[i]);
    terms[i] = TermOf(expression, arithmetic, i, x);
  }
  Store(expression.d, expression.types[3], offsets.at[3],
        Combine(expression, arithmetic, terms[0], terms[1], terms[2]));
}

}  // namespace

cudaError_t QueueElementwiseMixed(const ElementwiseFusedTask& task,
                                  cudaStream_t stream) {
  const Grid grid{.blocks = (task.modes.count + kThreads - 1) / kThreads,
                  .threads = kThreads};
  return VisitArithmetic(task.expression.compute, [&](auto zero) {
    return Launch(grid, stream, &FusedMixed<decltype(zero)>, task);
  });
}

}  // namespace tensord::core::cuda
