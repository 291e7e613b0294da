// Contractions with few elements and many terms: dot products, and products of
// matrices with vectors.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/backend/cuda/kernel/direct/direct_block.cuh"
#include "core/backend/cuda/kernel/groups/lanes.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {

/// Sums that the threads of a block add up at a time: 32 KiB of shared memory
/// at most.
template <typename T>
inline constexpr uint32_t kDeepSums = sizeof(T) < 16 ? 16 : 8;

/// Elements of one operand along its side (m or n), at one k.
template <typename Stored, uint32_t count>
struct DeepSide {
  __device__ __forceinline__ DeepSide(const DirectSide& side, uint32_t first) {
#pragma unroll
    for (uint32_t i = 0; i < count; ++i) {
      offsets[i] = OffsetsOf(side, first + i).at[0];
    }
  }

  __device__ __forceinline__ void Load(const Stored* from, bool is_term,
                                       Stored (&elements)[count]) const {
#pragma unroll
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_there = is_term && offsets[i] >= 0;
      elements[i] = is_there ? from[offsets[i]] : Stored{};
    }
  }

  int64_t offsets[count];  // negative: there is no element
};

/// Every thread takes each kThreads-th term of all elements of the tile; then
/// threads are added in pairs. `rows` and `columns` are those of the tile, or 1
/// where m or n has but one.
template <typename Stored, uint32_t rows, uint32_t columns>
__global__ void __launch_bounds__(ThreadsOf(DirectTile::kDeep, 4))
    Deep(const ContractionDirectTask __grid_constant__ task) {
  using T = ComputedIn<Stored>;
  constexpr DirectTileExtents kTile = ExtentsOf(DirectTile::kDeep, sizeof(T));
  constexpr uint32_t kThreads = ThreadsOf(DirectTile::kDeep, sizeof(T));
  // Terms that a thread reads at once, so that enough is under way.
  constexpr uint32_t kAtOnce =
      (rows * columns == 1 ? 2 : 1) * (sizeof(Stored) < 16 ? 2 : 1);
  const DirectBlock block(task, kTile);
  const DeepSide<Stored, rows> m(task.m, block.first_m);
  const DeepSide<Stored, columns> n(task.n, block.first_n);

  T sums[rows][columns] = {};
  for (uint32_t first = block.first_k + threadIdx.x; first < block.end_k;
       first += kAtOnce * kThreads) {
    Stored column[kAtOnce][rows], row[kAtOnce][columns];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t term = first + i * kThreads;
      const bool is_term = term < block.end_k;
      const Offsets<2> at = OffsetsOf(task.k, is_term ? term : first);
      m.Load(static_cast<const Stored*>(task.formula.a) +
                 (block.base.at[0] + at.at[0]),
             is_term, column[i]);
      n.Load(static_cast<const Stored*>(task.formula.b) +
                 (block.base.at[1] + at.at[1]),
             is_term, row[i]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      MultiplyTerm(task.formula, column[i], row[i], sums);
    }
  }

  // For each sum, kShare threads add every kShare-th thread's part, then are
  // added in pairs.
  T* const of_threads = static_cast<T*>(SharedMemory());  // (sum, thread)
  const SumStore<Stored> store = block.StoreOf<Stored>(task);
  constexpr uint32_t kSums = rows * columns;
  constexpr uint32_t kTogether = kSums < kDeepSums<T> ? kSums : kDeepSums<T>;
  constexpr uint32_t kShare =
      kThreads / kTogether < 32 ? kThreads / kTogether : 32;
  const uint32_t part = threadIdx.x % kShare;
  const uint32_t own_sum = threadIdx.x / kShare;
#pragma unroll
  for (uint32_t first = 0; first < kSums; first += kTogether) {
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < kTogether; ++i) {
      const uint32_t number = first + i;
      of_threads[i * kThreads + threadIdx.x] =
          sums[number % rows][number / rows];
    }
    __syncthreads();
    // Whole warps go on, or none of their threads.
    if (own_sum >= kTogether) continue;
    const T* const own = of_threads + own_sum * kThreads;
    T sum = own[part];
    for (uint32_t i = part + kShare; i < kThreads; i += kShare) {
      sum = Joined<BinaryOperator::kAdd>(sum, own[i]);
    }
    for (int distance = kShare / 2; distance > 0; distance /= 2) {
      sum = Joined<BinaryOperator::kAdd>(sum, FromLane(sum, distance));
    }
    const uint32_t number = first + own_sum;
    if (part != 0) continue;
    const Offsets<3> of_m = OffsetsOf(task.m, block.first_m + number % rows);
    const Offsets<3> of_n = OffsetsOf(task.n, block.first_n + number / rows);
    if (of_m.at[2] >= 0 && of_n.at[2] >= 0) {
      store.Store(sum, of_m.at[1] + of_n.at[1], of_m.at[2] + of_n.at[2]);
    }
  }
}

}  // namespace tensord::core::cuda
