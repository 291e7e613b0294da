// Reductions in a fixed tree: runs in order within a thread, then pairs of
// runs, then pairs of threads, then, in a second launch, of blocks.
#include "core/backend/cuda/kernel/along/level_tree.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/reduction_formula.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = ReductionTreeTask::kThreads;
constexpr uint32_t kLeaf = ReductionTreeTask::kLeaf;
constexpr uint32_t kLevels = ReductionTreeTask::kLevels;
// Reads of a thread that are under way at once.
constexpr uint32_t kAtOnce = 8;

/// What one thread makes of the elements first, first + step, ... below end.
template <typename T>
__device__ __forceinline__ T ReduceRuns(const ReductionTreeTask& task,
                                        int64_t base, uint32_t first,
                                        uint32_t end, uint32_t step) {
  const ReductionFormula& formula = task.formula;
  const Arithmetic sums = SumArithmetic(formula);
  const T identity = IdentityOf<T>(formula.op, formula.type_d);
  LevelTree<T, kLevels> tree;
  // Indices may pass 2^31 - 1 by less than a leaf, and stay below 2^32.
  for (uint32_t start = first; start < end; start += kLeaf * step) {
    T leaf = identity;
#pragma unroll
    for (uint32_t j = 0; j < kLeaf; j += kAtOnce) {
      T loaded[kAtOnce];
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint32_t index = start + (j + i) * step;
        if (index < end) {
          const Offsets<1> offsets = OffsetsOf(task.reduced, index);
          loaded[i] = TermAt<T>(formula, base + offsets.at[0]);
        } else {
          loaded[i] = identity;
        }
      }
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        leaf = ApplyReducing(sums, formula.op, leaf, loaded[i]);
      }
    }
    tree.Push(sums, formula.op, leaf);
  }
  return tree.Total(sums, formula.op, identity);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Tree(const ReductionTreeTask __grid_constant__ task) {
  const ReductionFormula& formula = task.formula;
  T* const values = static_cast<T*>(SharedMemory());  // (reduced, kept)
  const uint32_t split = blockIdx.x % task.split_count;
  const uint32_t tile = blockIdx.x / task.split_count;
  uint32_t of_kept, of_reduced;
  if (task.reduced_is_fastest) {
    of_reduced = threadIdx.x % task.reduced_threads;
    of_kept = threadIdx.x / task.reduced_threads;
  } else {
    of_kept = threadIdx.x % task.kept_threads;
    of_reduced = threadIdx.x / task.kept_threads;
  }
  const uint32_t index = tile * task.kept_threads + of_kept;
  const bool is_kept = index < task.kept.count;
  Offsets<3> offsets;
  T value{};
  if (is_kept) {
    offsets = OffsetsOf(task.kept, index);
    const uint32_t first = split * task.part;
    const uint32_t end = min(first + task.part, task.reduced_count);
    value = ReduceRuns<T>(task, offsets.at[0], first + of_reduced,
                          formula.a == nullptr ? 0 : end, task.reduced_threads);
  }
  const uint32_t slot = of_reduced * task.kept_threads + of_kept;
  values[slot] = value;
  for (uint32_t half = task.reduced_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (of_reduced < half) {
      value = ApplyReducing(SumArithmetic(formula), formula.op, value,
                            values[slot + half * task.kept_threads]);
      values[slot] = value;
    }
  }
  if (of_reduced > 0 || !is_kept) return;
  if (task.partial != nullptr) {
    static_cast<T*>(task.partial)[int64_t{split} * task.kept.count + index] =
        value;
  } else {
    Conclude<true>(formula, formula.type_d, value, offsets.at[1],
                   offsets.at[2]);
  }
}

}  // namespace

cudaError_t QueueReductionTree(const ReductionTreeTask& task,
                               cudaStream_t stream) {
  const uint32_t tiles =
      (task.kept.count + task.kept_threads - 1) / task.kept_threads;
  return VisitArithmetic(task.formula.compute, [&](auto zero) {
    using T = decltype(zero);
    const Grid grid{.blocks = tiles * task.split_count,
                    .threads = kThreads,
                    .shared_bytes = kThreads * static_cast<int64_t>(sizeof(T))};
    return Launch(grid, stream, &Tree<T>, task);
  });
}

}  // namespace tensord::core::cuda
