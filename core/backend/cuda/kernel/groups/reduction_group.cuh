// What the kernels that reduce groups of 16 bytes share.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/backend/cuda/kernel/groups/element_group.cuh"
#include "core/backend/cuda/kernel/groups/lanes.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/reduction_formula.cuh"

namespace tensord::core::cuda {

/// The type in which the conclusion, and a second launch, take a value.
template <typename Stored>
using ConcludedIn =
    std::conditional_t<std::is_integral_v<Stored>, int64_t, ComputedIn<Stored>>;

template <typename Stored>
constexpr ElementType TypeOf() {
  for (int i = 0; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (VisitElementType(type, [](auto zero) {
          return std::is_same_v<decltype(zero), Stored>;
        })) {
      return type;
    }
  }
  return ElementType::kFloat32;
}

/// An element that leaves every other unchanged.
template <BinaryOperator op, typename Stored>
__device__ __forceinline__ constexpr RawOf<Stored> NeutralOf() {
  constexpr bool kIsMul = op == BinaryOperator::kMul;
  constexpr bool kIsMax = op == BinaryOperator::kMax;
  if constexpr (op == BinaryOperator::kAdd) {
    return {};
  } else if constexpr (std::is_same_v<Stored, Half>) {
    return {static_cast<uint16_t>(kIsMul ? 0x3c00 : kIsMax ? 0xfc00 : 0x7c00)};
  } else if constexpr (std::is_same_v<Stored, Bfloat16>) {
    return {static_cast<uint16_t>(kIsMul ? 0x3f80 : kIsMax ? 0xff80 : 0x7f80)};
  } else if constexpr (kIsMul) {
    return Stored(1);
  } else if constexpr (std::is_integral_v<Stored>) {
    return kIsMax ? std::numeric_limits<Stored>::lowest()
                  : std::numeric_limits<Stored>::max();
  } else {
    return kIsMax ? -std::numeric_limits<Stored>::infinity()
                  : std::numeric_limits<Stored>::infinity();
  }
}

/// All of `x` joined in pairs of halves. By recursion: a loop over halves of 16
/// elements is not unrolled, and leaves them in memory.
template <BinaryOperator op, typename T, int count>
__device__ __forceinline__ T JoinedInPairs(const T (&x)[count]) {
  static_assert((count & (count - 1)) == 0);
  if constexpr (count == 1) {
    return x[0];
  } else {
    T pairs[count / 2];
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      pairs[i] = Joined<op>(x[i], x[i + count / 2]);
    }
    return JoinedInPairs<op>(pairs);
  }
}

/// Joins batches in order, kLeaf to a leaf, and leaves in order.
template <typename Stored, BinaryOperator op>
class Leaves {
 public:
  using T = ComputedIn<Stored>;

  /// Requires  `number` counts the batches from 1.
  __device__ __forceinline__ void Add(T batch, uint32_t number) {
    leaf_ = Joined<op>(leaf_, batch);
    if (number % ReductionGroupsTask::kLeaf != 0) return;
    all_ = Joined<op>(all_, leaf_);
    leaf_ = Neutral();
  }
  __device__ __forceinline__ T All() const { return Joined<op>(all_, leaf_); }

 private:
  static __device__ __forceinline__ T Neutral() {
    return ValueOf<T, Stored>(NeutralOf<op, Stored>());
  }

  T all_ = Neutral();
  T leaf_ = Neutral();
};

/// The offset of the `index`-th element of `space`.
template <int operand, int operand_count>
__device__ __forceinline__ int64_t
OffsetOf(const IndexSpace<operand_count>& space, uint32_t index) {
  if (space.mode_count == 0) return 0;
  int64_t offset = 0;
  for (int m = 0; m + 1 < space.mode_count; ++m) {
    const auto& mode = space.modes[m];
    const uint32_t rest = Quotient(index, mode.extent);
    offset +=
        int64_t{index - rest * mode.extent.divisor} * mode.strides[operand];
    index = rest;
  }
  return offset +
         int64_t{index} * space.modes[space.mode_count - 1].strides[operand];
}

/// Where a group of a lies.
struct GroupPlace {
  int64_t offset;  // of its first element
  uint32_t first;  // that element's place in its run
  uint32_t run;    // the number of its run
};

/// The place of the `index`-th group of `space`, whose first mode counts the
/// groups of a's contiguous mode.
template <typename Stored, int operand_count>
__device__ __forceinline__ GroupPlace
PlaceOf(const IndexSpace<operand_count>& space, uint32_t index) {
  GroupPlace place = {};
  if (space.mode_count > 1) {
    uint32_t rest = Quotient(index, space.modes[0].extent);
    index -= rest * space.modes[0].extent.divisor;
    place.run = rest;
    int m = 1;
    for (; m + 1 < space.mode_count; ++m) {
      const auto& mode = space.modes[m];
      const uint32_t next = Quotient(rest, mode.extent);
      place.offset +=
          int64_t{rest - next * mode.extent.divisor} * mode.strides[0];
      rest = next;
    }
    place.offset += int64_t{rest} * space.modes[m].strides[0];
  }
  place.first = index * kGroupWidth<Stored>;
  place.offset += place.first;
  return place;
}

/// A batch: kAtOnce groups, each with a count of its elements that are there.
template <typename Stored>
struct Batch {
  static constexpr uint32_t kAtOnce =
      ReductionGroupsTask::AtOnce(sizeof(Stored));
  static constexpr uint32_t kWidth = kGroupWidth<Stored>;

  const RawOf<Stored>* from[kAtOnce];
  uint32_t counts[kAtOnce];  // at most kWidth

  /// Whether 16-byte reads get all that is there.
  __device__ __forceinline__ bool IsWhole(bool is_aligned) const {
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      is_aligned &= counts[i] == 0 || counts[i] == kWidth;
    }
    return is_aligned;
  }

  /// The groups, neutral elements where there is none.
  /// Requires  IsWhole().
  template <BinaryOperator op>
  __device__ __forceinline__ void Load(Group<Stored> (&groups)[kAtOnce]) const {
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      if (counts[i] != 0) {
        groups[i] = LoadGroup<Stored>(from[i]);
      } else {
#pragma unroll
        for (uint32_t e = 0; e < kWidth; ++e) {
          groups[i].Set(e, NeutralOf<op, Stored>());
        }
      }
    }
  }

  /// An element of a group, a neutral one where there is none.
  template <BinaryOperator op>
  __device__ __forceinline__ ComputedIn<Stored> ElementAt(uint32_t group,
                                                          uint32_t at) const {
    return ValueOf<ComputedIn<Stored>, Stored>(
        at < counts[group] ? from[group][at] : NeutralOf<op, Stored>());
  }
};

/// Stores what the terms of the `index`-th element of d were reduced to in
/// `split`.
template <typename Stored, typename Offset>
__device__ __forceinline__ void Finish(const ReductionGroupsTask& task,
                                       ComputedIn<Stored> value, uint32_t split,
                                       uint32_t index, uint32_t kept_count,
                                       Offset&& offset) {
  using T = ConcludedIn<Stored>;
  const ReductionFormula& formula = task.formula;
  if (task.partial != nullptr) {
    static_cast<T*>(task.partial)[int64_t{split} * kept_count + index] =
        static_cast<T>(value);
  } else if (task.is_plain) {
    static_cast<Stored*>(formula.d)[offset(std::integral_constant<int, 2>())] =
        Convert<Stored>(value);
  } else {
    const int64_t offset_d = offset(std::integral_constant<int, 2>());
    const int64_t offset_c = offset(std::integral_constant<int, 1>());
    Conclude<false>(formula, TypeOf<Stored>(), static_cast<T>(value), offset_c,
                    offset_d);
  }
}

}  // namespace tensord::core::cuda
