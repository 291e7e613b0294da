// Reductions that keep a's contiguous mode.
#pragma once

#include "core/backend/cuda/kernel/groups/reduction_group.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {

/// Places in shared memory between one element of the groups of a block and the
/// next one. So many more than threads that neighbouring elements of d lie in
/// different banks.
template <typename Stored>
inline constexpr uint32_t kColumnPitch =
    ReductionGroupsTask::kThreads + 32 / kGroupWidth<Stored>;

template <typename Stored, BinaryOperator op>
__global__ void __launch_bounds__(ReductionGroupsTask::kThreads)
    Columns(const ReductionGroupsTask __grid_constant__ task) {
  using T = ComputedIn<Stored>;
  constexpr uint32_t kThreads = ReductionGroupsTask::kThreads;
  constexpr uint32_t kAtOnce = Batch<Stored>::kAtOnce;
  constexpr uint32_t kWidth = kGroupWidth<Stored>;
  constexpr uint32_t kPitch = kColumnPitch<Stored>;
  const uint32_t tile = Quotient(blockIdx.x, task.split_count);
  const uint32_t split = blockIdx.x - tile * task.split_count.divisor;
  const uint32_t columns = 1u << task.thread_bits;  // of groups, in a block
  const uint32_t threads = kThreads >> task.thread_bits;
  const uint32_t of_reduced = threadIdx.x >> task.thread_bits;
  const uint32_t group = tile * columns + (threadIdx.x & (columns - 1));

  uint32_t count = 0;
  const auto* from = static_cast<const RawOf<Stored>*>(task.formula.a);
  if (group < task.kept.count) {
    const GroupPlace place = PlaceOf<Stored>(task.kept, group);
    count = min(kWidth, task.run - place.first);
    from += place.offset;
  }
  const uint32_t begin = split * task.part;
  const uint32_t end =
      count > 0 ? min(begin + task.part, task.reduced.count) : 0;
  Leaves<Stored, op> leaves[kWidth];
  uint32_t number = 0;
  for (uint32_t start = begin + of_reduced; start < end;
       start += kAtOnce * threads) {
    Batch<Stored> batch;
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t index = start + i * threads;
      batch.from[i] = from + OffsetOf<0>(task.reduced, index);
      batch.counts[i] = index < end ? count : 0;
    }
    ++number;
    const auto add = [&](auto&& element_at) {
#pragma unroll
      for (uint32_t e = 0; e < kWidth; ++e) {
        T terms[kAtOnce];
#pragma unroll
        for (uint32_t i = 0; i < kAtOnce; ++i) terms[i] = element_at(i, e);
        leaves[e].Add(JoinedInPairs<op>(terms), number);
      }
    };
    if (batch.IsWhole(task.is_aligned)) {
      Group<Stored> groups[kAtOnce];
      batch.template Load<op>(groups);
      add([&](uint32_t i, uint32_t e) {
        return ValueOf<T, Stored>(groups[i].At(e));
      });
    } else {
      add([&](uint32_t i, uint32_t e) {
        return batch.template ElementAt<op>(i, e);
      });
    }
  }

  T* const values = static_cast<T*>(SharedMemory());  // (element, thread)
#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
    values[e * kPitch + threadIdx.x] = leaves[e].All();
  }
  for (uint32_t half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (of_reduced < half) {
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        T& value = values[e * kPitch + threadIdx.x];
        value = Joined<op>(value,
                           values[e * kPitch + threadIdx.x + half * columns]);
      }
    }
  }
  __syncthreads();
  // Neighbouring threads store neighbouring elements of d.
  for (uint32_t i = threadIdx.x; i < columns * kWidth; i += kThreads) {
    const uint32_t element = i % kWidth;
    const uint32_t of_tile = tile * columns + i / kWidth;
    if (of_tile >= task.kept.count) return;
    const GroupPlace place = PlaceOf<Stored>(task.kept, of_tile);
    if (place.first + element >= task.run) continue;
    Finish<Stored>(task, values[element * kPitch + i / kWidth], split,
                   place.run * task.run + place.first + element,
                   task.kept_count, [&](auto operand) {
                     return OffsetOf<operand>(task.kept, of_tile) +
                            element * task.run_strides[operand];
                   });
  }
}

}  // namespace tensord::core::cuda
