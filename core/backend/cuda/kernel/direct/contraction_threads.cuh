// Contractions without tiles, and QueueContractionThreads(), to be instantiated
// by type.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/backend/cuda/kernel/direct/direct_block.cuh"
#include "core/backend/cuda/kernel/groups/lanes.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {

/// Rows of m (or columns of n) that a thread has: offsets in the input, c and d
/// behind the batch's first; negative where there is none.
template <uint32_t micro>
struct ThreadSide {
  __device__ __forceinline__ ThreadSide(const IndexSpace<3>& space,
                                        uint32_t first, bool is_there) {
#pragma unroll
    for (uint32_t i = 0; i < micro; ++i) {
      rows[i] = is_there && first + i < space.count
                    ? OffsetsOf(space, first + i)
                    : Offsets<3>{{-1, -1, -1}};
    }
  }

  template <typename Stored>
  __device__ __forceinline__ void Load(const Stored* from, bool is_read,
                                       Stored (&elements)[micro]) const {
#pragma unroll
    for (uint32_t i = 0; i < micro; ++i) {
      const int64_t at = rows[i].at[0];
      elements[i] = is_read && at >= 0 ? from[at] : Stored{};
    }
  }

  Offsets<3> rows[micro];
};

template <typename Stored, uint32_t micro>
__global__ void __launch_bounds__(ContractionThreadsTask::kThreads)
    PerThread(const ContractionThreadsTask __grid_constant__ task) {
  using T = ComputedIn<Stored>;
  // Terms that a thread reads at once, so that enough is under way.
  constexpr uint32_t kAtOnce = micro == 1 ? 4 : 2;
  const uint32_t thread =
      blockIdx.x * ContractionThreadsTask::kThreads + threadIdx.x;
  const uint32_t sharers = 1u << task.log_sharers;
  const uint32_t share = thread % sharers;
  const uint32_t place = thread >> task.log_sharers;
  uint32_t batch, tile;
  if (task.batch_first) {
    tile = Quotient(place, task.batch_count);
    batch = place - tile * task.batch_count.divisor;
  } else {
    const uint32_t tiles = task.tiles_m.divisor * task.tiles_n.divisor;
    batch = Quotient(Quotient(place, task.tiles_m), task.tiles_n);
    tile = place - batch * tiles;
  }
  const uint32_t tile_n = Quotient(tile, task.tiles_m);
  const uint32_t tile_m = tile - tile_n * task.tiles_m.divisor;
  // No thread of a warp returns early: they add up together.
  const bool is_there =
      batch < task.batch_count.divisor && tile_n < task.tiles_n.divisor;
  const ContractionFormula& formula = task.formula;
  const Offsets<4> base =
      is_there ? OffsetsOf(task.batch, batch) : Offsets<4>{};
  const ThreadSide<micro> m(task.m, tile_m * micro, is_there);
  const ThreadSide<micro> n(task.n, tile_n * micro, is_there);

  T sums[micro][micro] = {};
  for (uint32_t first = share; first < task.k_count;
       first += kAtOnce * sharers) {
    Stored column[kAtOnce][micro], row[kAtOnce][micro];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t term = first + i * sharers;
      const bool is_term = term < task.k_count;
      const Offsets<2> at = OffsetsOf(task.k, is_term ? term : first);
      m.Load(static_cast<const Stored*>(formula.a) + (base.at[0] + at.at[0]),
             is_term, column[i]);
      n.Load(static_cast<const Stored*>(formula.b) + (base.at[1] + at.at[1]),
             is_term, row[i]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      MultiplyTerm(formula, column[i], row[i], sums);
    }
  }

  const SumStore<Stored> store(formula, base.at[2], base.at[3]);
#pragma unroll
  for (uint32_t y = 0; y < micro; ++y) {
#pragma unroll
    for (uint32_t x = 0; x < micro; ++x) {
      T sum = sums[y][x];
      for (uint32_t distance = sharers / 2; distance > 0; distance /= 2) {
        sum = Joined<BinaryOperator::kAdd>(
            sum, FromLane(sum, static_cast<int>(distance)));
      }
      const Offsets<3>& of_m = m.rows[y];
      const Offsets<3>& of_n = n.rows[x];
      if (share == 0 && (of_m.at[2] | of_n.at[2]) >= 0) {
        store.Store(sum, of_m.at[1] + of_n.at[1], of_m.at[2] + of_n.at[2]);
      }
    }
  }
}

template <typename Stored>
cudaError_t QueueContractionThreads(const ContractionThreadsTask& task,
                                    cudaStream_t stream) {
  constexpr uint32_t kThreads = ContractionThreadsTask::kThreads;
  const uint32_t threads =
      task.tiles_m.divisor * task.tiles_n.divisor * task.batch_count.divisor
      << task.log_sharers;
  const Grid grid{.blocks = (threads + kThreads - 1) / kThreads,
                  .threads = kThreads};
  return task.micro == 1 ? Launch(grid, stream, &PerThread<Stored, 1>, task)
                         : Launch(grid, stream, &PerThread<Stored, 4>, task);
}

}  // namespace tensord::core::cuda
