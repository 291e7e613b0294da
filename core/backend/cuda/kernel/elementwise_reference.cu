// Any element-wise operation, a thread an element of d.
#include <algorithm>

#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 16;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Reference(const ElementwiseReferenceTask __grid_constant__ task) {
  const Expression& expression = task.expression;
  const Arithmetic arithmetic =
      ArithmeticOf(expression.types[3], expression.compute_type);
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       index < task.element_count; index += step) {
    int64_t rest = index;
    int64_t offsets[4] = {};
    for (int m = 0; m < task.mode_count; ++m) {
      const auto& mode = task.modes[m];
      const int64_t next = rest / mode.extent;
      const int64_t place = rest - next * mode.extent;
      for (int i = 0; i < 4; ++i) offsets[i] += place * mode.strides[i];
      rest = next;
    }
    T terms[3] = {};
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr) continue;
      const T x =
          Load<T>(expression.inputs[i], expression.types[i], offsets[i]);
      terms[i] = TermOf(expression, arithmetic, i, x);
    }
    Store(expression.d, expression.types[3], offsets[3],
          Combine(expression, arithmetic, terms[0], terms[1], terms[2]));
  }
}

}  // namespace

cudaError_t QueueElementwiseReference(const ElementwiseReferenceTask& task,
                                      cudaStream_t stream) {
  const Grid grid{
      .blocks = static_cast<uint32_t>(
          std::min((task.element_count + kThreads - 1) / kThreads, kMaxBlocks)),
      .threads = kThreads};
  return VisitArithmetic(task.expression.compute, [&](auto zero) {
    return Launch(grid, stream, &Reference<decltype(zero)>, task);
  });
}

}  // namespace tensord::core::cuda
