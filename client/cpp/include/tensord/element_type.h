// What an element of a tensor is, and which C++ type holds it.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace tensord {

/// Numbered as in the contract (tensord/v1/layout.proto).
enum class ElementType {
  kUnspecified = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kFloat32 = 3,
  kFloat64 = 4,
  kComplex64 = 5,
  kComplex128 = 6,
  kInt8 = 7,
  kInt16 = 8,
  kInt32 = 9,
  kInt64 = 10,
  kUint8 = 11,
  kBool = 12,
};

/// Bytes of one element; 0 for kUnspecified.
int64_t ElementBytes(ElementType type);

/// "float32", as NumPy writes it.
std::string_view ToString(ElementType type);

/// The type that ToString() writes as `name`.
/// Errors  INVALID_ARGUMENT: lists the names there are.
absl::StatusOr<ElementType> ParseElementType(std::string_view name);

/// An IEEE half: storage and conversion, no arithmetic.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  /// Rounds to the nearest, ties to even.
  explicit Float16(float value);
  explicit operator float() const;
};

/// The upper half of a float: storage and conversion, no arithmetic.
struct Bfloat16 {
  uint16_t bits = 0;

  Bfloat16() = default;
  /// Rounds to the nearest, ties to even.
  explicit Bfloat16(float value);
  explicit operator float() const;
};

/// The element type that T holds. There is none for other types.
template <typename T>
inline constexpr ElementType kElementTypeOf = ElementType::kUnspecified;

template <>
inline constexpr ElementType kElementTypeOf<Float16> = ElementType::kFloat16;
template <>
inline constexpr ElementType kElementTypeOf<Bfloat16> = ElementType::kBfloat16;
template <>
inline constexpr ElementType kElementTypeOf<float> = ElementType::kFloat32;
template <>
inline constexpr ElementType kElementTypeOf<double> = ElementType::kFloat64;
template <>
inline constexpr ElementType kElementTypeOf<std::complex<float>> =
    ElementType::kComplex64;
template <>
inline constexpr ElementType kElementTypeOf<std::complex<double>> =
    ElementType::kComplex128;
template <>
inline constexpr ElementType kElementTypeOf<int8_t> = ElementType::kInt8;
template <>
inline constexpr ElementType kElementTypeOf<int16_t> = ElementType::kInt16;
template <>
inline constexpr ElementType kElementTypeOf<int32_t> = ElementType::kInt32;
template <>
inline constexpr ElementType kElementTypeOf<int64_t> = ElementType::kInt64;
template <>
inline constexpr ElementType kElementTypeOf<uint8_t> = ElementType::kUint8;
template <>
inline constexpr ElementType kElementTypeOf<bool> = ElementType::kBool;

template <typename T>
concept Element = kElementTypeOf<T>
!= ElementType::kUnspecified;

}  // namespace tensord
