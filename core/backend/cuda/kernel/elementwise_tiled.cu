// Element-wise operations with inputs that lie in another order than d: tiles
// of such an input are read in its own order and turned in shared memory.
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/groups/element_group.cuh"
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

/// Elements of a thread, one bit each.
using Mask = uint32_t;

/// Reads the elements in `mask`: all are under way before the first is needed.
template <typename Stored, typename T, int kPerThread>
__device__ __forceinline__ void LoadAll(const void* data, int64_t base,
                                        const int32_t (&offsets)[kPerThread],
                                        Mask mask, T (&values)[kPerThread]) {
  using Raw = RawOf<Stored>;
  const Raw* const from = static_cast<const Raw*>(data) + base;
  Raw raw[kPerThread] = {};
#pragma unroll
  for (int e = 0; e < kPerThread; ++e) {
    if (mask >> e & 1) raw[e] = from[offsets[e]];
  }
#pragma unroll
  for (int e = 0; e < kPerThread; ++e) values[e] = ValueOf<T, Stored>(raw[e]);
}

/// Operands of any types and operators that arithmetic in Number can have.
template <typename Number>
struct Mixed {
  using T = Number;

  template <int kPerThread>
  static __device__ __forceinline__ void LoadInput(
      const Expression& expression, int i, int64_t base,
      const int32_t (&offsets)[kPerThread], Mask mask,
      T (&values)[kPerThread]) {
    VisitElementType(expression.types[i], [&](auto zero) {
      using Stored = decltype(zero);
      if constexpr (kConverts<T, Stored>) {
        LoadAll<Stored>(expression.inputs[i], base, offsets, mask, values);
      }
    });
  }
  static __device__ __forceinline__ void Finish(const Expression& expression,
                                                T (&terms)[3], int64_t to) {
    const Arithmetic arithmetic =
        ArithmeticOf(expression.types[3], expression.compute_type);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr) continue;
      terms[i] = TermOf(expression, arithmetic, i, terms[i]);
    }
    Store(expression.d, expression.types[3], to,
          Combine(expression, arithmetic, terms[0], terms[1], terms[2]));
  }
};

/// Operands of one type, of which nothing but multiples are combined.
template <typename Stored>
struct Uniform {
  using T = ComputedIn<Stored>;

  template <int kPerThread>
  static __device__ __forceinline__ void LoadInput(
      const Expression& expression, int i, int64_t base,
      const int32_t (&offsets)[kPerThread], Mask mask,
      T (&values)[kPerThread]) {
    LoadAll<Stored>(expression.inputs[i], base, offsets, mask, values);
  }
  static __device__ __forceinline__ void Finish(const Expression& expression,
                                                T (&terms)[3], int64_t to) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr || !expression.is_scaled[i]) continue;
      terms[i] = Multiply(FactorAs<T>(Arithmetic{}, expression.factors[i][0],
                                      expression.factors[i][1]),
                          terms[i]);
    }
    static_cast<Stored*>(expression.d)[to] = Convert<Stored>(
        Combine(expression, Arithmetic{}, terms[0], terms[1], terms[2]));
  }
};

/// Blocks of the largest size that a multiprocessor holds, at least, where
/// registers allow it without spilling.
template <typename Operands>
constexpr int kLeastBlocks = 1;
template <typename Stored>
constexpr int kLeastBlocks<Uniform<Stored>> = sizeof(Stored) <= 4 ? 2 : 1;

/// Places are worked out once and kept in registers for all of a block's tiles.
template <typename Operands>
__global__ void __launch_bounds__(Task::kMaxThreads, kLeastBlocks<Operands>)
    Tiled(const __grid_constant__ Task task) {
  using T = typename Operands::T;
  constexpr int kPerThread = Task::ElementsPerThread(sizeof(T));
  const Expression& expression = task.expression;
  T* const shared = static_cast<T*>(SharedMemory());  // (turned input, slot)
  const auto index_of = [](int e) { return e * blockDim.x + threadIdx.x; };

  int32_t offsets[4][kPerThread];
  uint32_t places[3][kPerThread];  // of inputs, in d's order
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < 3 && expression.inputs[i] == nullptr) continue;
#pragma unroll
    for (int e = 0; e < kPerThread; ++e) {
      const Place place = PlaceOf(task, i, index_of(e));
      offsets[i][e] = place.offset;
      if (i < 3) places[i][e] = place.in_d_order;
    }
  }
  Mask in_tile = 0;
#pragma unroll
  for (int e = 0; e < kPerThread; ++e) {
    in_tile |= Mask{index_of(e) < task.tile_elements} << e;
  }

  for (uint32_t number = blockIdx.x; number < task.outer.count;
       number += gridDim.x) {
    const Offsets<4> base = WarpOffsetsOf(task.outer, number);
    const bool is_whole = IsWhole(task, number);
    T values[3][kPerThread] = {};
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr) continue;
      Mask mask = in_tile;
      if (!is_whole) {
#pragma unroll
        for (int e = 0; e < kPerThread; ++e) {
          if (!HasElement(task, number, places[i][e])) mask &= ~(1u << e);
        }
      }
      Operands::LoadInput(expression, i, base.at[i], offsets[i], mask,
                          values[i]);
    }
    T* tile = shared;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (!task.is_turned[i]) continue;
#pragma unroll
      for (int e = 0; e < kPerThread; ++e) {
        if (in_tile >> e & 1) tile[PackedSlot(places[i][e])] = values[i][e];
      }
      tile += task.slot_count;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kPerThread; ++e) {
      const uint32_t index = index_of(e);
      if ((in_tile >> e & 1) == 0) continue;
      if (!is_whole && !HasElement(task, number, index)) continue;
      const T* turned = shared + PackedSlot(index);
      T terms[3] = {};
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        terms[i] = values[i][e];
        if (!task.is_turned[i]) continue;
        terms[i] = *turned;
        turned += task.slot_count;
      }
      Operands::Finish(expression, terms, base.at[3] + offsets[3][e]);
    }
    __syncthreads();
  }
}

template <typename Operands>
cudaError_t Queue(const Task& task, cudaStream_t stream) {
  using T = typename Operands::T;
  constexpr uint32_t kWarpElements = 32 * Task::ElementsPerThread(sizeof(T));
  int turned = 0;
  for (const bool is_turned : task.is_turned) turned += is_turned;
  const Grid grid{
      .blocks = task.block_count,
      .threads = (task.tile_elements + kWarpElements - 1) / kWarpElements * 32,
      .shared_bytes =
          turned * int64_t{task.slot_count} * static_cast<int64_t>(sizeof(T))};
  return Launch(grid, stream, &Tiled<Operands>, task);
}

}  // namespace

cudaError_t QueueElementwiseTiled(const ElementwiseTiledTask& task,
                                  cudaStream_t stream) {
  const Expression& expression = task.expression;
  const bool rounds = expression.compute_type == ComputeType::kFloat16 ||
                      expression.compute_type == ComputeType::kBfloat16;
  if (expression.is_uniform && expression.is_plain && !rounds) {
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
