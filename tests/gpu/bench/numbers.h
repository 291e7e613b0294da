// Numbers whose sums are exact in every type and order.
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/element_type.h"
#include "core/base/half.h"
#include "tests/gpu/bench/bench_kernels.h"

namespace tensord::test {

/// Odd sixteenths from -15/16 to 15/16, as many below 0 as above. The sum of
/// some hundred millions of them drawn at random stays near 0, and has fewer
/// bits than float32 holds and a magnitude that float16 has: kernels that add
/// in different orders must agree in every bit. Requires  type is float16,
/// float32 or float64.
inline ElementPalette SixteenthsOf(core::ElementType type) {
  ElementPalette palette{.element_bytes =
                             static_cast<int32_t>(core::SizeOf(type))};
  for (size_t i = 0; i < palette.bits.size(); ++i) {
    const float value = (2 * static_cast<float>(i) - 15) / 16;
    switch (type) {
      case core::ElementType::kFloat64:
        palette.bits[i] = std::bit_cast<uint64_t>(double{value});
        break;
      case core::ElementType::kFloat16:
        palette.bits[i] = core::Half::From(value).bits;
        break;
      default: palette.bits[i] = std::bit_cast<uint32_t>(value);
    }
  }
  return palette;
}

}  // namespace tensord::test
