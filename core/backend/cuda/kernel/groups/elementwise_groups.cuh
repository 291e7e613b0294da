// Uniform element-wise expressions, group by group.
//
// What varies between problems but not between elements - factors, operators,
// which inputs there are - is decided once a group: a branch that all threads
// take alike costs a group of 16 bytes what it would cost an element.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/backend/cuda/kernel/groups/element_group.cuh"
#include "core/backend/cuda/kernel/groups/uniform_arithmetic.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {

/// A group of d and what it is made of.
template <typename Stored>
struct GroupWork {
  const RawOf<Stored>* inputs[3];  // null: not read
  Stored* d;
  int begin, end;  // elements of the group that are there
};

/// The `index`-th group of `task`; begin >= end when it has no elements.
template <typename Stored>
__device__ __forceinline__ GroupWork<Stored> WorkOf(
    const ElementwiseFusedTask& task, uint32_t index) {
  constexpr int kWidth = kGroupWidth<Stored>;
  const auto& modes = task.modes;
  int64_t offsets[4] = {};
  uint32_t in_run = index;
  if (modes.mode_count > 1) {
    uint32_t rest = Quotient(index, modes.modes[0].extent);
    in_run -= rest * modes.modes[0].extent.divisor;
    int m = 1;
    for (; m + 1 < modes.mode_count; ++m) {
      const auto& mode = modes.modes[m];
      const uint32_t next = Quotient(rest, mode.extent);
      const int64_t place = rest - next * mode.extent.divisor;
      for (int i = 0; i < 4; ++i) offsets[i] += place * mode.strides[i];
      rest = next;
    }
    for (int i = 0; i < 4; ++i) {
      offsets[i] += int64_t{rest} * modes.modes[m].strides[i];
    }
  }
  GroupWork<Stored> work;
  work.d = static_cast<Stored*>(task.expression.d) + offsets[3];
  int64_t first = int64_t{in_run} * kWidth;
  if (task.is_shifted) {
    first -= reinterpret_cast<uintptr_t>(work.d) / sizeof(Stored) % kWidth;
  }
  work.begin = first < 0 ? static_cast<int>(-first) : 0;
  work.end = index < modes.count
                 ? static_cast<int>(min(task.run - first, int64_t{kWidth}))
                 : 0;
  work.d += first * task.run_strides[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    work.inputs[i] =
        static_cast<const RawOf<Stored>*>(task.expression.inputs[i]);
    if (work.inputs[i] == nullptr) continue;
    work.inputs[i] += offsets[i] + first * task.run_strides[i];
  }
  return work;
}

/// Whether all operands of `work` move whole groups, or are broadcast.
template <typename Stored>
__device__ __forceinline__ bool IsWhole(const ElementwiseFusedTask& task,
                                        const GroupWork<Stored>& work) {
  bool is_whole = work.begin == 0 && work.end == kGroupWidth<Stored> &&
                  task.run_strides[3] == 1 && IsAligned(work.d);
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (task.expression.inputs[i] == nullptr) continue;
    is_whole &= task.run_strides[i] == 0 ||
                (task.run_strides[i] == 1 && IsAligned(work.inputs[i]));
  }
  return is_whole;
}

/// Groups of a thread whose reads are under way at once.
inline constexpr uint32_t kGroupsPerThread = 2;
inline constexpr uint32_t kGroupThreads = 256;

template <typename Stored, bool kHasUnary, bool kRounds>
__global__ void __launch_bounds__(kGroupThreads)
    FusedGroups(const ElementwiseFusedTask __grid_constant__ task) {
  using T = ComputedIn<Stored>;
  constexpr Needs kNeeds{
      .unary = kHasUnary, .rounding = kRounds, .division = true};
  constexpr int kWidth = kGroupWidth<Stored>;
  const Expression& expression = task.expression;
  const uint32_t first =
      blockIdx.x * (kGroupThreads * kGroupsPerThread) + threadIdx.x;
  GroupWork<Stored> works[kGroupsPerThread];
  bool is_whole = true;
#pragma unroll
  for (uint32_t g = 0; g < kGroupsPerThread; ++g) {
    works[g] = WorkOf<Stored>(task, first + g * kGroupThreads);
    is_whole &= IsWhole(task, works[g]);
  }
  if (is_whole) {
    Group<Stored> loaded[kGroupsPerThread][3];
#pragma unroll
    for (uint32_t g = 0; g < kGroupsPerThread; ++g) {
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        if (expression.inputs[i] == nullptr) continue;
        if (task.run_strides[i] == 0) {
          loaded[g][i].Set(0, *works[g].inputs[i]);
        } else {
          loaded[g][i] = LoadGroup<Stored>(works[g].inputs[i]);
        }
      }
    }
#pragma unroll
    for (uint32_t g = 0; g < kGroupsPerThread; ++g) {
      const auto read = [&](int i, T(&x)[kWidth]) {
        if (task.run_strides[i] == 0) {
          const T same = ValueOf<T, Stored>(loaded[g][i].At(0));
#pragma unroll
          for (int e = 0; e < kWidth; ++e) x[e] = same;
          return;
        }
#pragma unroll
        for (int e = 0; e < kWidth; ++e) {
          x[e] = ValueOf<T, Stored>(loaded[g][i].At(e));
        }
      };
      T result[kWidth];
      Evaluate<Stored, kNeeds>(expression, read, result);
      Group<Stored> stored;
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        stored.Set(e, Convert<Stored>(result[e]));
      }
      StoreGroup(stored, works[g].d);
    }
    return;
  }
  for (uint32_t g = 0; g < kGroupsPerThread; ++g) {
    const GroupWork<Stored> work =
        WorkOf<Stored>(task, first + g * kGroupThreads);
    const auto is_there = [&](int e) {
      return work.begin <= e && e < work.end;
    };
    const auto read = [&](int i, T(&x)[kWidth]) {
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        x[e] = is_there(e)
                   ? ValueOf<T, Stored>(work.inputs[i][e * task.run_strides[i]])
                   : T(0);
      }
    };
    T result[kWidth];
    Evaluate<Stored, kNeeds>(expression, read, result);
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      if (is_there(e)) {
        work.d[e * task.run_strides[3]] = Convert<Stored>(result[e]);
      }
    }
  }
}

template <typename Stored>
cudaError_t QueueElementwiseGroups(const ElementwiseFusedTask& task,
                                   cudaStream_t stream) {
  constexpr uint32_t kBlockGroups = kGroupThreads * kGroupsPerThread;
  const Grid grid{
      .blocks = (task.modes.count + kBlockGroups - 1) / kBlockGroups,
      .threads = kGroupThreads};
  const bool has_unary = !task.expression.is_plain;
  if constexpr (kIsHalf<Stored>) {
    if (task.expression.compute_type != ComputeType::kFloat32) {
      return has_unary
                 ? Launch(grid, stream, &FusedGroups<Stored, true, true>, task)
                 : Launch(grid, stream, &FusedGroups<Stored, false, true>,
                          task);
    }
  }
  if constexpr (!std::is_integral_v<Stored>) {
    if (has_unary) {
      return Launch(grid, stream, &FusedGroups<Stored, true, false>, task);
    }
  }
  return Launch(grid, stream, &FusedGroups<Stored, false, false>, task);
}

}  // namespace tensord::core::cuda
