// float16 and bfloat16 as storage: bits and their conversion from and to float.
#pragma once

#include <bit>
#include <cstdint>

namespace tensord::core {

/// IEEE binary16. Conversion rounds to nearest even, keeps subnormals and
/// infinities, and turns a NaN into a quiet NaN.
struct Half {
  uint16_t bits;

  static Half From(float value);
  float ToFloat() const;
};

/// The upper half of a float32. Conversion rounds to nearest even.
struct Bfloat16 {
  uint16_t bits;

  static Bfloat16 From(float value);
  float ToFloat() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

}  // namespace tensord::core
