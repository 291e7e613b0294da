// Element-wise operations whose operands are of several types.
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/groups/mixed_operands.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;
// Of a thread, whose reads are under way at once.
template <typename T>
constexpr int kElements = sizeof(T) > 8 ? 2 : 4;

/// Operands of any types that arithmetic in T can read.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    FusedMixed(const ElementwiseFusedTask __grid_constant__ task) {
  constexpr int count = kElements<T>;
  const Expression& expression = task.expression;
  const uint32_t first = blockIdx.x * (kThreads * count) + threadIdx.x;
  int64_t offsets[4][count];
  Mask mask = 0;
#pragma unroll
  for (int e = 0; e < count; ++e) {
    const uint32_t index = first + static_cast<uint32_t>(e) * kThreads;
    mask |= Mask{index < task.modes.count} << e;
    const Offsets<4> of_element =
        OffsetsOf(task.modes, min(index, task.modes.count - 1));
#pragma unroll
    for (int i = 0; i < 4; ++i) offsets[i][e] = of_element.at[i];
  }
  typename Mixed<T>::Held held[3][count] = {};
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (expression.inputs[i] == nullptr) continue;
    Mixed<T>::LoadInput(expression, i, 0, offsets[i], mask, held[i]);
  }
  const auto offset_of = [&](int e) { return offsets[3][e]; };
  Mixed<T>::Finish(expression, held, 0, offset_of, mask);
}

}  // namespace

cudaError_t QueueElementwiseMixed(const ElementwiseFusedTask& task,
                                  cudaStream_t stream) {
  return VisitArithmetic(task.expression.compute, [&](auto zero) {
    using T = decltype(zero);
    constexpr uint32_t kBlockElements = kThreads * kElements<T>;
    const Grid grid{
        .blocks = (task.modes.count + kBlockElements - 1) / kBlockElements,
        .threads = kThreads};
    return Launch(grid, stream, &FusedMixed<T>, task);
  });
}

}  // namespace tensord::core::cuda
