// The types of tensor elements, and the precisions that arithmetic runs in.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "core/base/half.h"

namespace tensord::core {

enum class ElementType : uint8_t {
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kBool,  // One byte, 0 or 1.
};
inline constexpr int kElementTypeCount = 12;

/// How precise the arithmetic of an operation is, whatever its operands are
/// stored as. Complex operands compute in complex numbers of this precision.
enum class ComputeType : uint8_t {
  kFloat16,    // float16 operands; sums rounded to float16 at the end
  kBfloat16,   // bfloat16 operands
  kTf32,       // float32 operands rounded to 10 bits of mantissa
  kThreeTf32,  // float32 split in TF32 parts: close to float32
  kFloat32,
  kFloat64,
  kInteger,  // in the integer element type itself, wrapping
};
inline constexpr int kComputeTypeCount = 7;

/// Bytes of one element.
int64_t SizeOf(ElementType type);

/// "float32", "complex128", ... as NumPy spells them.
absl::string_view NameOf(ElementType type);
absl::string_view NameOf(ComputeType type);
std::optional<ElementType> ElementTypeFromName(absl::string_view name);

bool IsComplex(ElementType type);
/// Signed, unsigned and bool.
bool IsInteger(ElementType type);
/// What indices may be: integers without bool.
inline bool IsIndex(ElementType type) {
  return IsInteger(type) && type != ElementType::kBool;
}

/// The real type of the parts of a complex type; other types are unchanged.
ElementType RealPartOf(ElementType type);

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

template <typename T>
inline constexpr bool kIsHalf =
    std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>;

/// Calls `visit` with a value-initialised element of the C++ type that stores
/// `type`: Half, Bfloat16, float, double, std::complex<float or double>,
/// int8_t..int64_t, uint8_t, bool.
template <typename Visitor>
constexpr decltype(auto) VisitElementType(ElementType type, Visitor&& visit) {
  switch (type) {
    case ElementType::kFloat16: return visit(Half{});
    case ElementType::kBfloat16: return visit(Bfloat16{});
    case ElementType::kFloat32: return visit(float{});
    case ElementType::kFloat64: return visit(double{});
    case ElementType::kComplex64: return visit(std::complex<float>{});
    case ElementType::kComplex128: return visit(std::complex<double>{});
    case ElementType::kInt8: return visit(int8_t{});
    case ElementType::kInt16: return visit(int16_t{});
    case ElementType::kInt32: return visit(int32_t{});
    case ElementType::kInt64: return visit(int64_t{});
    case ElementType::kUint8: return visit(uint8_t{});
    case ElementType::kBool: return visit(bool{});
  }
  __builtin_unreachable();
}

}  // namespace tensord::core
