// Element-wise operations in the order of d, up to 16 bytes a thread and
// operand at a time.
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;
// Groups of a thread whose reads are under way at once.
constexpr uint32_t kGroupsPerThread = 2;

/// Elements that move together.
template <typename Stored, int kWidth>
struct alignas(sizeof(Stored) * kWidth) Group {
  Stored elements[kWidth];
};

/// All operands are stored as Stored.
template <typename T, typename Stored, int kWidth>
__global__ void __launch_bounds__(kThreads)
    Fused(const __grid_constant__ ElementwiseFusedTask task) {
  using Elements = Group<Stored, kWidth>;
  const Expression& expression = task.expression;
  const Arithmetic arithmetic =
      ArithmeticOf(expression.types[3], expression.compute_type);
  const uint32_t first =
      blockIdx.x * (kThreads * kGroupsPerThread) + threadIdx.x;
  Elements inputs[kGroupsPerThread][3];
  int64_t to[kGroupsPerThread];
#pragma unroll
  for (uint32_t g = 0; g < kGroupsPerThread; ++g) {
    const uint32_t index = first + g * kThreads;
    if (index >= task.modes.count) continue;
    const Offsets<4> offsets = OffsetsOf(task.modes, index);
    to[g] = offsets.at[3];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr) continue;
      const Stored* const from =
          static_cast<const Stored*>(expression.inputs[i]) + offsets.at[i];
      if (kWidth > 1 && task.is_broadcast[i]) {
        const Stored x = *from;
#pragma unroll
        for (int e = 0; e < kWidth; ++e) inputs[g][i].elements[e] = x;
      } else {
        inputs[g][i] = *reinterpret_cast<const Elements*>(from);
      }
    }
  }
#pragma unroll
  for (uint32_t g = 0; g < kGroupsPerThread; ++g) {
    if (first + g * kThreads >= task.modes.count) continue;
    Elements results;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      T terms[3] = {};
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        if (expression.inputs[i] == nullptr) continue;
        terms[i] = TermOf(expression, arithmetic, i,
                          Convert<T>(inputs[g][i].elements[e]));
      }
      results.elements[e] = Convert<Stored>(
          Combine(expression, arithmetic, terms[0], terms[1], terms[2]));
    }
    *reinterpret_cast<Elements*>(static_cast<Stored*>(expression.d) + to[g]) =
        results;
  }
}

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

template <typename T, typename Stored>
cudaError_t Queue(const ElementwiseFusedTask& task, cudaStream_t stream) {
  constexpr uint32_t kBlockGroups = kThreads * kGroupsPerThread;
  const Grid grid{
      .blocks = (task.modes.count + kBlockGroups - 1) / kBlockGroups,
      .threads = kThreads};
  constexpr int kWidth = 16 / static_cast<int>(sizeof(Stored));
  return task.width == kWidth
             ? Launch(grid, stream, &Fused<T, Stored, kWidth>, task)
             : Launch(grid, stream, &Fused<T, Stored, 1>, task);
}

}  // namespace

cudaError_t QueueElementwiseFused(const ElementwiseFusedTask& task,
                                  cudaStream_t stream) {
  if (task.expression.is_uniform) {
    switch (task.expression.types[3]) {
      case ElementType::kFloat16: return Queue<float, Half>(task, stream);
      case ElementType::kBfloat16: return Queue<float, Bfloat16>(task, stream);
      case ElementType::kFloat32: return Queue<float, float>(task, stream);
      case ElementType::kFloat64: return Queue<double, double>(task, stream);
      case ElementType::kComplex64:
        return Queue<std::complex<float>, std::complex<float>>(task, stream);
      case ElementType::kComplex128:
        return Queue<std::complex<double>, std::complex<double>>(task, stream);
      default: return cudaErrorInvalidValue;
    }
  }
  const Grid grid{.blocks = (task.modes.count + kThreads - 1) / kThreads,
                  .threads = kThreads};
  return VisitArithmetic(task.expression.compute, [&](auto zero) {
    return Launch(grid, stream, &FusedMixed<decltype(zero)>, task);
  });
}

}  // namespace tensord::core::cuda
