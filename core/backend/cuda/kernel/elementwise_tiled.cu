// Element-wise operations with inputs that lie in another order than d: tiles
// of such an input are read in its own order and turned in shared memory.
#include "core/backend/cuda/kernel/groups/mixed_operands.cuh"
#include "core/backend/cuda/kernel/groups/uniform_arithmetic.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/permutation_tasks.h"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {
namespace {

using Task = ElementwiseTiledTask;

/// Where an element of the tile lies.
struct Place {
  int32_t offset = 0;  // from the tile's first one, in an operand
  uint32_t in_d_order = 0;
};

/// The `index`-th element in the order in which operand `i` is walked.
__device__ __forceinline__ Place PlaceOf(const Task& task, int i,
                                         uint32_t index) {
  const bool is_turned = i < 3 && task.is_turned[i];
  Place place;
  for (int m = 0; m < task.tile_mode_count; ++m) {
    const Task::TileMode& mode = task.modes[is_turned ? task.orders[i][m] : m];
    const uint32_t rest = Quotient(index, mode.extent);
    const uint32_t at = index - rest * mode.extent.divisor;
    place.offset += static_cast<int32_t>(at) * mode.strides[i];
    place.in_d_order += at * mode.weight;
    index = rest;
  }
  return place;
}

/// Elements that the `number`-th tile has along a split mode.
__device__ __forceinline__ uint32_t LengthOf(const Task::Split& split,
                                             uint32_t number) {
  const uint32_t part = Remainder(Quotient(number, split.before), split.parts);
  return min(split.extent - part * split.part, split.part);
}

__device__ __forceinline__ bool IsWhole(const Task& task, uint32_t number) {
  bool is_whole = true;
  for (int s = 0; s < task.split_count; ++s) {
    is_whole &= LengthOf(task.splits[s], number) == task.splits[s].part;
  }
  return is_whole;
}

/// Whether the `number`-th tile has the element that a whole one has at
/// `in_d_order`.
__device__ __forceinline__ bool HasElement(const Task& task, uint32_t number,
                                           uint32_t in_d_order) {
  for (int m = 0; m < task.tile_mode_count; ++m) {
    const Task::TileMode& mode = task.modes[m];
    const uint32_t rest = Quotient(in_d_order, mode.extent);
    const uint32_t at = in_d_order - rest * mode.extent.divisor;
    if (mode.split >= 0 && at >= LengthOf(task.splits[mode.split], number)) {
      return false;
    }
    in_d_order = rest;
  }
  return true;
}

/// Operands of one type, of which nothing but multiples are combined, with no
/// more rounding than arithmetic does by itself.
template <typename Stored>
struct Uniform {
  using Held = WordOf<Stored>;
  static constexpr bool kHasCalls = false;

  template <int count>
  static __device__ __forceinline__ void LoadInput(
      const Expression& expression, int i, int64_t base,
      const int32_t (&offsets)[count], Mask mask, Held (&held)[count]) {
    LoadWords(expression.inputs[i], base, offsets, mask, held);
  }

  template <typename OffsetOf, int count>
  static __device__ __forceinline__ void Finish(const Expression& expression,
                                                const Held (&held)[3][count],
                                                int64_t base,
                                                OffsetOf&& offset_of,
                                                Mask mask) {
    using T = ComputedIn<Stored>;
    const auto read = [&](int i, T(&x)[count]) {
#pragma unroll
      for (int e = 0; e < count; ++e) {
        x[e] = ElementAs<T, Stored>(held[i][e]);
      }
    };
    T result[count];
    Evaluate<Stored, Needs{}>(expression, read, result);
    Held* const to = static_cast<Held*>(expression.d) + base;
#pragma unroll
    for (int e = 0; e < count; ++e) {
      if (mask >> e & 1) {
        to[offset_of(e)] = std::bit_cast<Held>(Convert<Stored>(result[e]));
      }
    }
  }
};

/// Threads of a block, at most.
template <typename Operands>
constexpr int kMaxThreads = Task::MaxThreads(sizeof(typename Operands::Held));
/// Blocks of that size that a multiprocessor holds, at least, where registers
/// allow it without spilling.
template <typename Operands>
constexpr int kLeastBlocks = 1;
template <typename Stored>
constexpr int kLeastBlocks<Uniform<Stored>> = sizeof(Stored) <= 4 ? 3 : 1;

/// Places are worked out once and kept in registers for all of a block's tiles;
/// those in d are not where calls leave too few registers.
template <typename Operands>
__global__ void __launch_bounds__(kMaxThreads<Operands>, kLeastBlocks<Operands>)
    Tiled(const Task __grid_constant__ task) {
  using Held = typename Operands::Held;
  constexpr int kPerThread = Task::ElementsPerThread(sizeof(Held));
  const Expression& expression = task.expression;
  Held* const shared =
      static_cast<Held*>(SharedMemory());  // (turned input, slot)
  const auto index_of = [](int e) { return e * blockDim.x + threadIdx.x; };

  int32_t offsets[3][kPerThread];  // of inputs
  uint32_t places[3][kPerThread];  // of inputs, in d's order
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (expression.inputs[i] == nullptr) continue;
#pragma unroll
    for (int e = 0; e < kPerThread; ++e) {
      const Place place = PlaceOf(task, i, index_of(e));
      offsets[i][e] = place.offset;
      places[i][e] = place.in_d_order;
    }
  }
  int32_t d_offsets[kPerThread];
#pragma unroll
  for (int e = 0; e < kPerThread; ++e) {
    if (Operands::kHasCalls) continue;
    d_offsets[e] = PlaceOf(task, 3, index_of(e)).offset;
  }
  const auto d_offset_of = [&](int e) {
    return Operands::kHasCalls ? PlaceOf(task, 3, index_of(e)).offset
                               : d_offsets[e];
  };
  const auto is_in_tile = [&](int e) {
    return index_of(e) < task.tile_elements;
  };

  for (uint32_t number = blockIdx.x; number < task.outer.count;
       number += gridDim.x) {
    // A lane has that of one operand, until a warp needs it.
    const int64_t first = OffsetOf(task.outer, number, threadIdx.x % 4);
    const auto base = [&](int i) { return __shfl_sync(~0u, first, i); };
    const bool is_whole = IsWhole(task, number);
    /// Those of a thread that the tile has, of which the `place(e)`-th in d's
    /// order would be the `e`-th.
    const auto there = [&](auto&& place) {
      Mask mask = 0;
#pragma unroll
      for (int e = 0; e < kPerThread; ++e) {
        const bool is_there =
            is_in_tile(e) && (is_whole || HasElement(task, number, place(e)));
        mask |= Mask{is_there} << e;
      }
      return mask;
    };
    Held held[3][kPerThread];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr) continue;
      const Mask mask = there([&](int e) { return places[i][e]; });
      Operands::LoadInput(expression, i, base(i), offsets[i], mask, held[i]);
    }
    Held* tile = shared;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (!task.is_turned[i]) continue;
#pragma unroll
      for (int e = 0; e < kPerThread; ++e) {
        if (is_in_tile(e)) tile[PackedSlot(places[i][e])] = held[i][e];
      }
      tile += task.slot_count;
    }
    __syncthreads();
    tile = shared;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (!task.is_turned[i]) continue;
#pragma unroll
      for (int e = 0; e < kPerThread; ++e) {
        if (is_in_tile(e)) held[i][e] = tile[PackedSlot(index_of(e))];
      }
      tile += task.slot_count;
    }
    Operands::Finish(expression, held, base(3), d_offset_of, there(index_of));
    __syncthreads();
  }
}

template <typename Operands>
cudaError_t Queue(const Task& task, cudaStream_t stream) {
  using Held = typename Operands::Held;
  constexpr uint32_t kWarpElements = 32 * Task::ElementsPerThread(sizeof(Held));
  int turned = 0;
  for (const bool is_turned : task.is_turned) turned += is_turned;
  const Grid grid{
      .blocks = task.block_count,
      .threads = (task.tile_elements + kWarpElements - 1) / kWarpElements * 32,
      .shared_bytes = turned * int64_t{task.slot_count} *
                      static_cast<int64_t>(sizeof(Held))};
  return Launch(grid, stream, &Tiled<Operands>, task);
}

}  // namespace

cudaError_t QueueElementwiseTiled(const ElementwiseTiledTask& task,
                                  cudaStream_t stream) {
  const Expression& expression = task.expression;
  const bool rounds = expression.compute_type == ComputeType::kFloat16 ||
                      expression.compute_type == ComputeType::kBfloat16;
  const bool divides = expression.op_ab == BinaryOperator::kDiv ||
                       expression.op_abc == BinaryOperator::kDiv;
  if (expression.is_uniform && expression.is_plain && !rounds && !divides) {
    switch (expression.types[3]) {
      case ElementType::kFloat16: return Queue<Uniform<Half>>(task, stream);
      case ElementType::kBfloat16:
        return Queue<Uniform<Bfloat16>>(task, stream);
      case ElementType::kFloat32: return Queue<Uniform<float>>(task, stream);
      case ElementType::kFloat64: return Queue<Uniform<double>>(task, stream);
      case ElementType::kComplex64:
        return Queue<Uniform<Complex<float>>>(task, stream);
      case ElementType::kComplex128:
        return Queue<Uniform<Complex<double>>>(task, stream);
      default: break;  // integers
    }
  }
  return VisitArithmetic(expression.compute, [&](auto zero) {
    return Queue<Mixed<decltype(zero)>>(task, stream);
  });
}

}  // namespace tensord::core::cuda
