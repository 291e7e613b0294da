// Cumulative reductions: a few elements in order within a thread, threads in
// steps that double, then what comes before in a tree.
#include "core/backend/cuda/kernel/along/along_tasks.h"
#include "core/backend/cuda/kernel/along/level_tree.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/reduction_formula.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = ScanTask::kThreads;
constexpr uint32_t kItems = ScanTask::kItems;
constexpr uint32_t kLevels = 16;

/// What is combined, and how.
struct Combining {
  Arithmetic arithmetic;
  BinaryOperator op;

  template <typename T>
  __device__ __forceinline__ T operator()(T x, T y) const {
    return ApplyReducing(arithmetic, op, x, y);
  }
};

/// The threads of a block that share the elements of a row.
struct Row {
  uint32_t place, threads;  // of a thread among them
  uint32_t first;           // of their slots in shared memory
};

/// What the threads of a row before this one have, and what all have.
template <typename T>
struct Joined {
  T before;  // nothing of the first thread
  T total;
};

/// Every thread of the block calls it.
template <typename T>
__device__ __forceinline__ Joined<T> JoinThreads(const Combining& combine,
                                                 const Row& row, T own,
                                                 T* values) {
  T* const slot = values + row.first + row.place;
  *slot = own;
  __syncthreads();
  for (uint32_t distance = 1; distance < row.threads; distance *= 2) {
    const bool has_more = row.place >= distance;
    T value = *slot;
    if (has_more) value = combine(*(slot - distance), value);
    __syncthreads();
    if (has_more) *slot = value;
    __syncthreads();
  }
  Joined<T> joined{own, values[row.first + row.threads - 1]};
  if (row.place > 0) joined.before = *(slot - 1);
  __syncthreads();
  return joined;
}

/// What changes no element: of ADD -0.
template <typename T>
__device__ __forceinline__ T NeutralOf(const ReductionFormula& formula) {
  if constexpr (!std::is_integral_v<T>) {
    if (formula.op == BinaryOperator::kAdd) return -T(0);
  }
  return IdentityOf<T>(formula.op, formula.type_d);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Scan(const ScanTask __grid_constant__ task) {
  const ReductionFormula& formula = task.formula;
  const Combining combine{SumArithmetic(formula), formula.op};
  T* const values = static_cast<T*>(SharedMemory());
  const uint32_t chunk = blockIdx.x % task.chunk_count;
  const uint32_t tile = blockIdx.x / task.chunk_count;
  Row row{.place = threadIdx.x % task.row_threads,
          .threads = task.row_threads,
          .first = 0};
  uint32_t of_kept = threadIdx.x / task.row_threads;
  if (!task.along_is_fastest) {
    of_kept = threadIdx.x % task.kept_threads;
    row.place = threadIdx.x / task.kept_threads;
  }
  row.first = of_kept * task.row_threads;
  const uint32_t index = tile * task.kept_threads + of_kept;
  const bool is_kept = index < task.kept.count;
  Offsets<3> base;
  if (is_kept) base = OffsetsOf(task.kept, index);
  const T identity = NeutralOf<T>(formula);
  T* const totals = static_cast<T*>(task.totals);
  const bool has_chunks_before =
      totals != nullptr && !task.finds_totals && chunk > 0;
  T chunks_before = identity;
  if (has_chunks_before && is_kept) {
    chunks_before = totals[int64_t{index} * task.chunk_count + chunk - 1];
  }
  T before = chunks_before;  // with all that is done of the chunk
  bool has_before = has_chunks_before;
  LevelTree<T, kLevels> tree;
  const int64_t begin = chunk * task.chunk;
  const int64_t end = min(begin + task.chunk, task.along.extent);
  for (int64_t at = begin; at < end; at += int64_t{kItems} * row.threads) {
    const int64_t first = at + int64_t{kItems} * row.place;
    T own[kItems];
#pragma unroll
    for (uint32_t i = 0; i < kItems; ++i) {
      const bool is_there = is_kept && formula.a != nullptr && first + i < end;
      own[i] = is_there
                   ? TermAt<T>(formula,
                               base.at[0] + (first + i) * task.along.strides[0])
                   : identity;
    }
#pragma unroll
    for (uint32_t i = 1; i < kItems; ++i) own[i] = combine(own[i - 1], own[i]);
    const Joined<T> joined = JoinThreads(combine, row, own[kItems - 1], values);
    if (is_kept && !task.finds_totals) {
#pragma unroll
      for (uint32_t i = 0; i < kItems; ++i) {
        if (first + i >= end) continue;
        T value = own[i];
        if (row.place > 0) value = combine(joined.before, value);
        if (has_before) value = combine(before, value);
        Conclude<true>(formula, formula.type_d, value,
                       base.at[1] + (first + i) * task.along.strides[1],
                       base.at[2] + (first + i) * task.along.strides[2]);
      }
    }
    tree.Push(combine.arithmetic, combine.op, joined.total);
    before = tree.Total(combine.arithmetic, combine.op, identity);
    if (has_chunks_before) before = combine(chunks_before, before);
    has_before = true;
  }
  if (task.finds_totals && is_kept && row.place == 0) {
    totals[int64_t{index} * task.chunk_count + chunk] = before;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    JoinTotals(const JoinTotalsTask __grid_constant__ task) {
  const Combining combine{SumArithmetic(task.formula), task.formula.op};
  const T identity = NeutralOf<T>(task.formula);
  T* const values = static_cast<T*>(SharedMemory());
  T* const totals =
      static_cast<T*>(task.totals) + int64_t{blockIdx.x} * task.chunk_count;
  const Row row{.place = threadIdx.x, .threads = kThreads, .first = 0};
  LevelTree<T, kLevels> tree;
  T before = identity;
  for (uint32_t at = 0; at < task.chunk_count; at += kThreads) {
    const uint32_t chunk = at + row.place;
    const bool is_there = chunk < task.chunk_count;
    const T own = is_there ? totals[chunk] : identity;
    const Joined<T> joined = JoinThreads(combine, row, own, values);
    if (is_there) {
      T value = own;
      if (row.place > 0) value = combine(joined.before, value);
      if (at > 0) value = combine(before, value);
      totals[chunk] = value;
    }
    tree.Push(combine.arithmetic, combine.op, joined.total);
    before = tree.Total(combine.arithmetic, combine.op, identity);
  }
}

/// A slot a thread.
template <typename T>
Grid GridWith(uint32_t blocks) {
  return {.blocks = blocks,
          .threads = kThreads,
          .shared_bytes = kThreads * static_cast<int64_t>(sizeof(T))};
}

}  // namespace

cudaError_t QueueScan(const ScanTask& task, cudaStream_t stream) {
  const uint32_t tiles =
      (task.kept.count + task.kept_threads - 1) / task.kept_threads;
  return VisitArithmetic(task.formula.compute, [&](auto zero) {
    using T = decltype(zero);
    return Launch(GridWith<T>(tiles * task.chunk_count), stream, &Scan<T>,
                  task);
  });
}

cudaError_t QueueJoinTotals(const JoinTotalsTask& task, cudaStream_t stream) {
  return VisitArithmetic(task.formula.compute, [&](auto zero) {
    using T = decltype(zero);
    return Launch(GridWith<T>(task.kept_count), stream, &JoinTotals<T>, task);
  });
}

}  // namespace tensord::core::cuda
