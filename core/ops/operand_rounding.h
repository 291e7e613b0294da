// The rounding of a contraction's operands to its compute type.
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/element_type.h"

namespace tensord::core {

/// What an operand's elements are rounded to before they are multiplied.
enum class OperandRounding : uint8_t {
  kNone,
  kTf32,
  kFloat16,
  kBfloat16,
  kFloat32,
};

/// The rounding that `compute` asks for on operands of `type`; kNone when it
/// changes nothing.
inline OperandRounding RoundingOf(ElementType type, ComputeType compute) {
  const bool is_float32 = RealPartOf(type) == ElementType::kFloat32;
  const bool is_float64 = RealPartOf(type) == ElementType::kFloat64;
  if (is_float32 && compute == ComputeType::kTf32) {
    return OperandRounding::kTf32;
  }
  if (is_float32 && compute == ComputeType::kFloat16) {
    return OperandRounding::kFloat16;
  }
  if (is_float32 && compute == ComputeType::kBfloat16) {
    return OperandRounding::kBfloat16;
  }
  if (is_float64 && compute == ComputeType::kFloat32) {
    return OperandRounding::kFloat32;
  }
  return OperandRounding::kNone;
}

/// `value` with 10 bits of mantissa, to nearest even.
constexpr float RoundToTf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t odd = bits >> 13 & 1u;
  const uint32_t rounded = (bits + 0xfffu + odd) & ~0x1fffu;
  const bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
  return std::bit_cast<float>(is_finite ? rounded : bits);
}

}  // namespace tensord::core
