// Reductions along a's contiguous mode.
#pragma once

#include "core/backend/cuda/kernel/groups/reduction_group.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {

/// The values of 2^`bits` neighbouring lanes joined in pairs, in each of them.
template <BinaryOperator op, typename T>
__device__ __forceinline__ T JoinedLanes(T value, uint32_t bits) {
  for (int distance = 1 << bits >> 1; distance > 0; distance /= 2) {
    value = Joined<op>(value, FromLane(value, distance));
  }
  return value;
}

/// Reads a batch and joins the elements of each of its groups in pairs.
template <BinaryOperator op, typename Stored>
__device__ __forceinline__ void JoinGroups(
    const Batch<Stored>& batch, bool is_aligned,
    ComputedIn<Stored> (&joined)[Batch<Stored>::kAtOnce]) {
  using T = ComputedIn<Stored>;
  constexpr uint32_t kAtOnce = Batch<Stored>::kAtOnce;
  constexpr uint32_t kWidth = Batch<Stored>::kWidth;
  T terms[kAtOnce][kWidth];
  if (batch.IsWhole(is_aligned)) {
    Group<Stored> groups[kAtOnce];
    batch.template Load<op>(groups);
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (uint32_t e = 0; e < kWidth; ++e) {
        terms[i][e] = ValueOf<T, Stored>(groups[i].At(e));
      }
      joined[i] = JoinedInPairs<op>(terms[i]);
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (uint32_t e = 0; e < kWidth; ++e) {
        terms[i][e] = batch.template ElementAt<op>(i, e);
      }
      joined[i] = JoinedInPairs<op>(terms[i]);
    }
  }
}

/// Rows of up to 32 groups: a thread a group, of kAtOnce rows.
template <typename Stored, BinaryOperator op>
__global__ void __launch_bounds__(ReductionGroupsTask::kThreads)
    ShortRows(const ReductionGroupsTask __grid_constant__ task) {
  using T = ComputedIn<Stored>;
  constexpr uint32_t kAtOnce = Batch<Stored>::kAtOnce;
  constexpr uint32_t kWidth = kGroupWidth<Stored>;
  const uint32_t rows_at_once =
      ReductionGroupsTask::kThreads >> task.thread_bits;
  const uint32_t of_row = threadIdx.x & ((1u << task.thread_bits) - 1);
  const uint32_t first_row =
      blockIdx.x * (kAtOnce * rows_at_once) + (threadIdx.x >> task.thread_bits);
  const GroupPlace place = PlaceOf<Stored>(task.reduced, of_row);
  const uint32_t count =
      of_row < task.reduced.count ? min(kWidth, task.run - place.first) : 0;
  Batch<Stored> batch;
#pragma unroll
  for (uint32_t i = 0; i < kAtOnce; ++i) {
    const uint32_t row = first_row + i * rows_at_once;
    batch.from[i] = static_cast<const RawOf<Stored>*>(task.formula.a) +
                    (OffsetOf<0>(task.kept, row) + place.offset);
    batch.counts[i] = row < task.kept.count ? count : 0;
  }
  T values[kAtOnce];
  JoinGroups<op, Stored>(batch, task.is_aligned, values);
#pragma unroll
  for (uint32_t i = 0; i < kAtOnce; ++i) {
    values[i] = JoinedLanes<op>(values[i], task.thread_bits);
  }
  // Lanes of a row have its kAtOnce values all, and share storing them.
  for (uint32_t i = of_row; i < kAtOnce; i += 1u << task.thread_bits) {
    const uint32_t row = first_row + i * rows_at_once;
    if (row >= task.kept.count) return;
    T value = values[0];
#pragma unroll
    for (uint32_t j = 1; j < kAtOnce; ++j) {
      if (i == j) value = values[j];
    }
    Finish<Stored>(task, value, 0, row, task.kept.count, [&](auto operand) {
      return OffsetOf<operand>(task.kept, row);
    });
  }
}

/// Rows of many groups: one or more warps a row.
template <typename Stored, BinaryOperator op>
__global__ void __launch_bounds__(ReductionGroupsTask::kThreads)
    LongRows(const ReductionGroupsTask __grid_constant__ task) {
  using T = ComputedIn<Stored>;
  constexpr uint32_t kAtOnce = Batch<Stored>::kAtOnce;
  constexpr uint32_t kWidth = kGroupWidth<Stored>;
  const uint32_t tile = Quotient(blockIdx.x, task.split_count);
  const uint32_t split = blockIdx.x - tile * task.split_count.divisor;
  const uint32_t threads = 1u << task.thread_bits;
  const uint32_t of_row = threadIdx.x & (threads - 1);
  const uint32_t row =
      tile * (ReductionGroupsTask::kThreads >> task.thread_bits) +
      (threadIdx.x >> task.thread_bits);
  const uint32_t begin = split * task.part;
  const uint32_t end =
      row < task.kept.count ? min(begin + task.part, task.reduced.count) : 0;
  const auto* const from = static_cast<const RawOf<Stored>*>(task.formula.a) +
                           OffsetOf<0>(task.kept, row);
  Leaves<Stored, op> leaves;
  uint32_t number = 0;
  for (uint32_t start = begin + of_row; start < end;
       start += kAtOnce * threads) {
    Batch<Stored> batch;
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t index = start + i * threads;
      const GroupPlace place = PlaceOf<Stored>(task.reduced, index);
      batch.from[i] = from + place.offset;
      batch.counts[i] = index < end ? min(kWidth, task.run - place.first) : 0;
    }
    T joined[kAtOnce];
    JoinGroups<op, Stored>(batch, task.is_aligned, joined);
    leaves.Add(JoinedInPairs<op>(joined), ++number);
  }
  T value = JoinedLanes<op>(leaves.All(), 5);
  if (threads > 32) {
    T* const values = static_cast<T*>(SharedMemory());  // (warp)
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    if (lane == 0) values[warp] = value;
    __syncthreads();
    const uint32_t warps = threads / 32;
    value = JoinedLanes<op>(values[(warp & ~(warps - 1)) + lane % warps],
                            task.thread_bits - 5);
  }
  if (of_row > 0 || row >= task.kept.count) return;
  Finish<Stored>(task, value, split, row, task.kept.count, [&](auto operand) {
    return OffsetOf<operand>(task.kept, row);
  });
}

}  // namespace tensord::core::cuda
