// Element-wise operations with inputs whose fastest mode is not that of d:
// tiles of such an input are turned in shared memory.
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kSide = ElementwiseTiledTask::kSide;
constexpr uint32_t kThreads = 256;
constexpr uint32_t kRowsAtOnce = kThreads / kSide;
constexpr uint32_t kTurns = kSide / kRowsAtOnce;
// One more than needed, so that a column's elements lie in different banks.
constexpr uint32_t kColumn = kSide + 1;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Tiled(const __grid_constant__ ElementwiseTiledTask task) {
  const Expression& expression = task.expression;
  const Arithmetic arithmetic =
      ArithmeticOf(expression.types[3], expression.compute_type);
  const uint32_t rest = Quotient(blockIdx.x, task.tiles_out);
  const uint32_t outer = Quotient(rest, task.tiles_in);
  const uint32_t first_out =
      (blockIdx.x - rest * task.tiles_out.divisor) * kSide;
  const uint32_t first_in = (rest - outer * task.tiles_in.divisor) * kSide;
  const Offsets<4> base = WarpOffsetsOf(task.outer, outer);
  const uint32_t along = threadIdx.x % kSide;
  const uint32_t across = threadIdx.x / kSide;
  const auto offset = [&](int i, uint32_t in, uint32_t out) {
    return base.at[i] + in * task.strides_in[i] + out * task.strides_out[i];
  };

  T* const tiles = static_cast<T*>(SharedMemory());  // (turned input, in, out)
  int turned = 0;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (!task.is_turned[i]) continue;
    const uint32_t in = first_in + along;
    T loaded[kTurns] = {};
#pragma unroll
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const uint32_t out = first_out + turn * kRowsAtOnce + across;
      if (in < task.extent_in && out < task.extent_out) {
        loaded[turn] = Load<T>(expression.inputs[i], expression.types[i],
                               offset(i, in, out));
      }
    }
    T* const tile = tiles + turned * kSide * kColumn;
#pragma unroll
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      tile[along * kColumn + turn * kRowsAtOnce + across] = loaded[turn];
    }
    ++turned;
  }
  __syncthreads();

  const uint32_t out = first_out + along;
  if (out >= task.extent_out) return;
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    const uint32_t row = turn * kRowsAtOnce + across;
    const uint32_t in = first_in + row;
    if (in >= task.extent_in) continue;
    T terms[3] = {};
    turned = 0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr) continue;
      T x;
      if (task.is_turned[i]) {
        x = tiles[turned * kSide * kColumn + row * kColumn + along];
        ++turned;
      } else {
        x = Load<T>(expression.inputs[i], expression.types[i],
                    offset(i, in, out));
      }
      terms[i] = TermOf(expression, arithmetic, i, x);
    }
    Store(expression.d, expression.types[3], offset(3, in, out),
          Combine(expression, arithmetic, terms[0], terms[1], terms[2]));
  }
}

}  // namespace

cudaError_t QueueElementwiseTiled(const ElementwiseTiledTask& task,
                                  cudaStream_t stream) {
  int turned = 0;
  for (const bool is_turned : task.is_turned) turned += is_turned;
  return VisitArithmetic(task.expression.compute, [&](auto zero) {
    using T = decltype(zero);
    const Grid grid{.blocks = task.tile_count,
                    .threads = kThreads,
                    .shared_bytes = turned * int64_t{kSide} * kColumn *
                                    static_cast<int64_t>(sizeof(T))};
    return Launch(grid, stream, &Tiled<T>, task);
  });
}

}  // namespace tensord::core::cuda
