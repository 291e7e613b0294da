#include "core/base/half.h"

#include <cmath>

namespace tensord::core {

Half Half::From(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    const uint32_t payload = magnitude >> 13 & 0x3ffu;
    return {static_cast<uint16_t>(sign | 0x7e00u | payload)};
  }
  if (magnitude >= 0x47800000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    // Subnormal in half: adding 0.5 aligns the last kept bit with a float's
    // own last bit, so that the FPU rounds to nearest even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    const uint32_t kept = std::bit_cast<uint32_t>(aligned) - 0x3f000000u;
    return {static_cast<uint16_t>(sign | kept)};
  }
  const uint32_t odd = magnitude >> 13 & 1u;
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + odd;
  return {static_cast<uint16_t>(sign | rounded >> 13)};
}

float Half::ToFloat() const {
  const uint32_t sign = uint32_t{bits} << 16 & 0x80000000u;
  const uint32_t exponent = bits >> 10 & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

Bfloat16 Bfloat16::From(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  }
  const uint32_t odd = bits >> 16 & 1u;
  return {static_cast<uint16_t>((bits + 0x7fffu + odd) >> 16)};
}

}  // namespace tensord::core
