// Groups of elements in device code.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "core/backend/cuda/kernel/element.cuh"
#include "core/backend/cuda/kernel/groups/group.h"

namespace tensord::core::cuda {

/// Elements of type Stored in a group.
template <typename Stored>
inline constexpr int kGroupWidth = kGroupBytes /
                                   static_cast<int>(sizeof(Stored));

/// The narrowest type that elements of type Stored are computed in. Integers
/// wrap to it meanwhile, and to Stored at the end.
template <typename Stored>
using ComputedIn = std::conditional_t<
    std::is_integral_v<Stored>,
    std::conditional_t<sizeof(Stored) == 8, int64_t, int32_t>,
    std::conditional_t<kIsHalf<Stored>, float, Stored>>;

/// The type that elements of type Stored are read as. For bool a byte: any but
/// 0 is true, and reading such a byte as bool would be undefined.
template <typename Stored>
using RawOf = std::conditional_t<std::is_same_v<Stored, bool>, uint8_t, Stored>;

/// The elements of a group, held in words as they are loaded. To hold elements,
/// words would be taken apart or put together at each load, and the next load
/// would wait for that.
template <typename Stored>
struct alignas(kGroupBytes) Group {
  using Raw = RawOf<Stored>;
  static constexpr int kWidth = kGroupWidth<Stored>;
  static constexpr int kBits = 8 * sizeof(Stored);
  static constexpr bool kIsPair = std::is_same_v<Stored, std::complex<float>>;
  static constexpr bool kIsLong = kBits == 64 && !kIsPair;
  using Word = std::conditional_t<kIsLong, uint64_t, uint32_t>;
  using Words = std::conditional_t<kIsLong, double2, uint4>;

  /// Requires  `at` is known when compiling.
  __device__ __forceinline__ Raw At(int at) const {
    if constexpr (kBits < 32) {
      using Bits = std::conditional_t<kBits == 8, uint8_t, uint16_t>;
      constexpr int kOfWord = 32 / kBits;
      return std::bit_cast<Raw>(
          static_cast<Bits>(words[at / kOfWord] >> at % kOfWord * kBits));
    } else if constexpr (kBits == 32 || kIsLong) {
      return std::bit_cast<Raw>(words[at]);
    } else if constexpr (kIsPair) {
      return {std::bit_cast<float>(words[2 * at]),
              std::bit_cast<float>(words[2 * at + 1])};
    } else {
      return std::bit_cast<Raw>(*this);
    }
  }

  /// Requires  `at` is known when compiling; the element is zero.
  __device__ __forceinline__ void Set(int at, Raw x) {
    if constexpr (kBits < 32) {
      using Bits = std::conditional_t<kBits == 8, uint8_t, uint16_t>;
      constexpr int kOfWord = 32 / kBits;
      words[at / kOfWord] |= uint32_t{std::bit_cast<Bits>(x)}
                             << at % kOfWord * kBits;
    } else if constexpr (kBits == 32 || kIsLong) {
      words[at] = std::bit_cast<Word>(x);
    } else if constexpr (kIsPair) {
      words[2 * at] = std::bit_cast<uint32_t>(x.real());
      words[2 * at + 1] = std::bit_cast<uint32_t>(x.imag());
    } else {
      *this = std::bit_cast<Group>(x);
    }
  }

  Word words[kGroupBytes / sizeof(Word)] = {};
};

/// The element that was read as `raw`, for arithmetic in T.
template <typename T, typename Stored>
__device__ __forceinline__ T ValueOf(RawOf<Stored> raw) {
  if constexpr (std::is_same_v<Stored, bool>) {
    return raw != 0;
  } else {
    return Convert<T>(raw);
  }
}

/// Whether a group may be read or written at `address` at once.
__device__ __forceinline__ bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kGroupBytes == 0;
}

/// Requires  IsAligned(from), and all of the group is there.
template <typename Stored>
__device__ __forceinline__ Group<Stored> LoadGroup(const void* from) {
  using Words = typename Group<Stored>::Words;
  return std::bit_cast<Group<Stored>>(*static_cast<const Words*>(from));
}

/// Requires  IsAligned(to), and all of the group is there.
template <typename Stored>
__device__ __forceinline__ void StoreGroup(const Group<Stored>& group,
                                           void* to) {
  using Words = typename Group<Stored>::Words;
  *static_cast<Words*>(to) = std::bit_cast<Words>(group);
}

/// The group that begins `shift` bytes behind the beginning of `low`.
template <typename A>
__device__ __forceinline__ Group<A> Between(const Group<A>& low,
                                            const Group<A>& high,
                                            uint32_t shift) {
  const uint4 first = std::bit_cast<uint4>(low);
  const uint4 second = std::bit_cast<uint4>(high);
  const uint32_t words[8] = {first.x,  first.y,  first.z,  first.w,
                             second.x, second.y, second.z, second.w};
  // Never by a variable index, which would put words into memory.
  uint32_t by_two[6], by_one[5];
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    by_two[i] = (shift & 8) != 0 ? words[i + 2] : words[i];
  }
#pragma unroll
  for (int i = 0; i < 5; ++i) {
    by_one[i] = (shift & 4) != 0 ? by_two[i + 1] : by_two[i];
  }
  const auto bytes = [&](int i) {
    return __funnelshift_r(by_one[i], by_one[i + 1], 8 * (shift & 3));
  };
  return std::bit_cast<Group<A>>(uint4{bytes(0), bytes(1), bytes(2), bytes(3)});
}

}  // namespace tensord::core::cuda
