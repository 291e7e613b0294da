// The arithmetic of contractions: rounding to the compute type, and integers
// that wrap.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/backend/cpu/block/element_math.h"
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
inline float RoundToTf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t odd = bits >> 13 & 1u;
  const uint32_t rounded = (bits + 0xfffu + odd) & ~0x1fffu;
  const bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
  return std::bit_cast<float>(is_finite ? rounded : bits);
}

/// The type that arithmetic on integers T runs in: unsigned, so that it wraps,
/// and not narrower than `int`, to which it would be promoted.
template <typename T>
using WrappingType =
    std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, uint32_t>;

/// x * y; on complex numbers by the schoolbook formula: the standard library's
/// operator repairs infinities, at ten times the price.
template <typename T>
T Product(T x, T y) {
  if constexpr (kIsComplex<T>) {
    return T(x.real() * y.real() - x.imag() * y.imag(),
             x.real() * y.imag() + x.imag() * y.real());
  } else if constexpr (std::is_same_v<T, bool>) {
    return x && y;
  } else {
    return x * y;
  }
}

/// The conjugate of complex numbers.
template <typename T>
T ConjugatedIf(bool conjugate, T value) {
  if constexpr (kIsComplex<T>) {
    return conjugate ? std::conj(value) : value;
  } else {
    return value;
  }
}

}  // namespace tensord::core
