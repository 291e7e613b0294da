// Elements that are taken by indices, a thread an element of d.
#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;

/// The index that b has at an offset; false where a does not have it.
template <typename Space>
__device__ __forceinline__ bool ReadIndex(const TakeTask<Space>& task,
                                          int64_t at, int64_t& index) {
  const Expression& expression = task.expression;
  index = 0;
  if (expression.inputs[1] != nullptr) {
    const Arithmetic arithmetic =
        ArithmeticOf(ElementType::kInt64, ComputeType::kInteger);
    const auto x = Load<int64_t>(expression.inputs[1], expression.types[1], at);
    index = TermOf(expression, arithmetic, 1, x);
  }
  const int64_t given = index;
  if (index < 0) index += task.extent;
  if (0 <= index && index < task.extent) return true;
  if (task.refused != nullptr) {
    atomicMin(&task.refused->lowest, static_cast<long long>(given));
    atomicMax(&task.refused->highest, static_cast<long long>(given));
    atomicExch(&task.refused->is_any, 1);
  }
  return false;
}

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    TakeWords(const TakeWordsTask __grid_constant__ task) {
  const auto* const a = static_cast<const Word*>(task.expression.inputs[0]);
  auto* const d = static_cast<Word*>(task.expression.d);
  ForEachIndex(task.space.count, [&](uint32_t element) {
    const Offsets<4> offsets = OffsetsOf(task.space, element);
    int64_t index = 0;
    if (!ReadIndex(task, offsets.at[1], index)) return;
    d[offsets.at[3]] = a[offsets.at[0] + index * task.stride];
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TakeTerms(const TakeTermsTask __grid_constant__ task) {
  const Expression& expression = task.expression;
  const Arithmetic arithmetic =
      ArithmeticOf(expression.types[2], expression.compute_type);
  ForEachIndex(task.space.count, [&](int64_t element) {
    const Offsets<4> offsets = OffsetsOf(task.space, element);
    int64_t index = 0;
    const bool is_there = ReadIndex(task, offsets.at[1], index);
    const int from = is_there ? 0 : 2;
    const int64_t at =
        is_there ? offsets.at[0] + index * task.stride : offsets.at[2];
    T term{};
    if (expression.inputs[from] != nullptr) {
      const T x = Load<T>(expression.inputs[from], expression.types[from], at);
      term = TermOf(expression, arithmetic, from, x);
    }
    Store(expression.d, expression.types[3], offsets.at[3], term);
  });
}

}  // namespace

cudaError_t QueueTakeWords(const TakeWordsTask& task, int bytes,
                           cudaStream_t stream) {
  const Grid grid = GridOf(task.space.count, kThreads);
  return VisitWord(bytes, [&](auto zero) {
    return Launch(grid, stream, &TakeWords<decltype(zero)>, task);
  });
}

cudaError_t QueueTakeTerms(const TakeTermsTask& task, cudaStream_t stream) {
  const Grid grid = GridOf(task.space.count, kThreads);
  return VisitArithmetic(task.expression.compute, [&](auto zero) {
    return Launch(grid, stream, &TakeTerms<decltype(zero)>, task);
  });
}

}  // namespace tensord::core::cuda
