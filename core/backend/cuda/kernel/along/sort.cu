// Indices that sort: runs in shared memory by Batcher's bitonic network, then
// pairs of runs, where each element looks for its place in the other one.
#include "core/backend/cuda/kernel/along/along_tasks.h"
#include "core/backend/cuda/kernel/along/sort_key.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/reduction_formula.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = SortTask::kThreads;
constexpr uint32_t kBlock = SortTask::kBlock;
// The place of no element, above those of all.
constexpr uint32_t kNoPlace = UINT32_MAX;

/// Elements in shared memory.
struct Sorted {
  uint64_t keys[kBlock];
  uint32_t places[kBlock];  // in the run

  __device__ __forceinline__ bool IsLess(uint32_t x, uint32_t y) const {
    return keys[x] != keys[y] ? keys[x] < keys[y] : places[x] < places[y];
  }
  __device__ __forceinline__ void Swap(uint32_t x, uint32_t y) {
    const uint64_t key = keys[x];
    const uint32_t place = places[x];
    keys[x] = keys[y];
    places[x] = places[y];
    keys[y] = key;
    places[y] = place;
  }
};

__device__ __forceinline__ bool IsLess(const SortPair& x, const SortPair& y) {
  return x.key != y.key ? x.key < y.key : x.index < y.index;
}

/// The index of the element that comes `at`-th of a kept one, to d.
__device__ __forceinline__ void StoreIndex(const SortTask& task, uint32_t kept,
                                           int64_t at, int64_t index) {
  const Offsets<3> base = OffsetsOf(task.kept, task.first + kept);
  Conclude<true>(task.formula, task.formula.type_d, index,
                 base.at[1] + at * task.along.strides[1],
                 base.at[2] + at * task.along.strides[2]);
}

/// Sorts each run of a block.
/// Source  K. Batcher, "Sorting networks and their applications" (1968).
__device__ __forceinline__ void SortBlock(Sorted& sorted, uint32_t run) {
  for (uint32_t size = 2; size <= run; size *= 2) {
    for (uint32_t distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (uint32_t i = threadIdx.x; i < kBlock / 2; i += kThreads) {
        const uint32_t low = 2 * i - (i & (distance - 1));
        const bool ascends = ((low & (run - 1)) & size) == 0;
        if (sorted.IsLess(low + distance, low) == ascends) {
          sorted.Swap(low, low + distance);
        }
      }
    }
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads)
    SortRuns(const SortTask __grid_constant__ task) {
  Sorted& sorted = *static_cast<Sorted*>(SharedMemory());
  const int64_t run_count = (task.along.extent + task.run - 1) / task.run;
  const int64_t first = int64_t{blockIdx.x} * (kBlock / task.run);
  for (uint32_t i = threadIdx.x; i < kBlock; i += kThreads) {
    const int64_t run = first + i / task.run;
    const int64_t kept = run / run_count;
    const int64_t at = run % run_count * task.run + i % task.run;
    sorted.keys[i] = UINT64_MAX;
    sorted.places[i] = kNoPlace;
    if (kept < task.kept_count && at < task.along.extent) {
      const auto index = static_cast<uint32_t>(kept) + task.first;
      const int64_t offset = OffsetOf(task.kept, index, 0);
      sorted.keys[i] =
          SortKeyAt(task.formula.a, task.formula.type_a, task.sorting,
                    offset + at * task.along.strides[0]);
      sorted.places[i] = i % task.run;
    }
  }
  SortBlock(sorted, task.run);
  for (uint32_t i = threadIdx.x; i < kBlock; i += kThreads) {
    const int64_t run = first + i / task.run;
    const int64_t kept = run / run_count;
    const int64_t begin = run % run_count * task.run;
    const int64_t at = begin + i % task.run;
    if (kept >= task.kept_count || at >= task.along.extent) continue;
    const int64_t index = begin + sorted.places[i];
    if (task.to != nullptr) {
      task.to[kept * task.along.extent + at] = {sorted.keys[i], index};
    } else {
      StoreIndex(task, static_cast<uint32_t>(kept), at, index);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    MergeRuns(const SortTask __grid_constant__ task, int64_t run) {
  const int64_t extent = task.along.extent;
  ForEachIndex(int64_t{task.kept_count} * extent, [&](int64_t element) {
    const int64_t at = element % extent;
    const int64_t begin = at / (2 * run) * (2 * run);
    const int64_t middle = min(begin + run, extent);
    const bool is_left = at < middle;
    const SortPair pair = task.from[element];
    const SortPair* const other =
        task.from + (element - at) + (is_left ? middle : begin);
    int64_t least = 0;
    int64_t most =
        is_left ? min(begin + 2 * run, extent) - middle : middle - begin;
    while (least < most) {
      const int64_t half = least + (most - least) / 2;
      if (IsLess(other[half], pair)) {
        least = half + 1;
      } else {
        most = half;
      }
    }
    const int64_t own = is_left ? at - begin : at - middle;
    task.to[element - at + begin + own + least] = pair;
  });
}

__global__ void __launch_bounds__(kThreads)
    StoreIndices(const SortTask __grid_constant__ task) {
  const int64_t extent = task.along.extent;
  ForEachIndex(int64_t{task.kept_count} * extent, [&](int64_t element) {
    StoreIndex(task, static_cast<uint32_t>(element / extent), element % extent,
               task.from == nullptr ? 0 : task.from[element].index);
  });
}

}  // namespace

cudaError_t QueueSortRuns(const SortTask& task, cudaStream_t stream) {
  const int64_t runs =
      task.kept_count * ((task.along.extent + task.run - 1) / task.run);
  const int64_t each = kBlock / task.run;
  const Grid grid{.blocks = static_cast<uint32_t>((runs + each - 1) / each),
                  .threads = kThreads,
                  .shared_bytes = sizeof(Sorted)};
  return Launch(grid, stream, &SortRuns, task);
}

cudaError_t QueueMergeRuns(const SortTask& task, int64_t run,
                           cudaStream_t stream) {
  const Grid grid = GridOf(task.kept_count * task.along.extent, kThreads);
  return Launch(grid, stream, &MergeRuns, task, run);
}

cudaError_t QueueStoreIndices(const SortTask& task, cudaStream_t stream) {
  const Grid grid = GridOf(task.kept_count * task.along.extent, kThreads);
  return Launch(grid, stream, &StoreIndices, task);
}

}  // namespace tensord::core::cuda
