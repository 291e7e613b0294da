// What elements are sorted by, on the CPU and on GPUs.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/base/element_type.h"

namespace tensord::core {

/// The bits of a floating-point number as a number whose order is that of
/// numbers, with NaN above all; -0 is 0.
template <typename Bits>
constexpr Bits OrderedBits(Bits bits, Bits infinity) {
  constexpr int kDigits = 8 * sizeof(Bits) - 1;
  constexpr auto kSign = static_cast<Bits>(Bits{1} << kDigits);
  const auto magnitude = static_cast<Bits>(bits & ~kSign);
  if (magnitude > infinity) return static_cast<Bits>(~Bits{0});
  if (magnitude == 0) return kSign;
  return static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
}

/// A number of 32 or 64 bits whose order is that in which elements are sorted.
/// Requires  Stored is real.
template <typename Stored>
constexpr auto SortKey(Stored x) {
  if constexpr (std::is_same_v<Stored, Half>) {
    return uint32_t{OrderedBits<uint16_t>(x.bits, 0x7c00)};
  } else if constexpr (std::is_same_v<Stored, Bfloat16>) {
    return uint32_t{OrderedBits<uint16_t>(x.bits, 0x7f80)};
  } else if constexpr (std::is_same_v<Stored, float>) {
    return OrderedBits(std::bit_cast<uint32_t>(x), uint32_t{0xff} << 23);
  } else if constexpr (std::is_same_v<Stored, double>) {
    return OrderedBits(std::bit_cast<uint64_t>(x), uint64_t{0x7ff} << 52);
  } else if constexpr (sizeof(Stored) == 8) {
    return static_cast<uint64_t>(x) ^ uint64_t { 1 } << 63;
  } else {
    return static_cast<uint32_t>(static_cast<int32_t>(x)) ^ uint32_t { 1 }
                                                                << 31;
  }
}

}  // namespace tensord::core
