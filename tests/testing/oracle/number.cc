#include "tests/testing/oracle/number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tensord::test {
namespace {

using core::ElementType;

/// A binary format by its parameters: `precision` bits of significand, the
/// leading one included, and normal exponents from `min_exponent` (as in
/// 1.x * 2^e).
struct Binary {
  int bytes;
  int precision;
  int min_exponent;
};
constexpr Binary kHalf = {2, 11, -14};
constexpr Binary kBrain = {2, 8, -126};
constexpr Binary kTf32 = {4, 11, -126};
constexpr Binary kSingle = {4, 24, -126};
constexpr Binary kDouble = {8, 53, -1022};

Binary BinaryOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat16: return kHalf;
    case ElementType::kBfloat16: return kBrain;
    case ElementType::kFloat32:
    case ElementType::kComplex64: return kSingle;
    default: return kDouble;
  }
}

constexpr FloatFormat FormatOf(const Binary& binary) {
  const int max_exponent = 1 - binary.min_exponent;
  return {
      std::ldexp(1.0L, -binary.precision),
      std::ldexp(1.0L, binary.min_exponent - binary.precision + 1),
      std::ldexp(2.0L - std::ldexp(1.0L, 1 - binary.precision), max_exponent)};
}
constexpr FloatFormat kHalfFormat = FormatOf(kHalf);
constexpr FloatFormat kBrainFormat = FormatOf(kBrain);
constexpr FloatFormat kTf32Numbers = FormatOf(kTf32);
constexpr FloatFormat kSingleFormat = FormatOf(kSingle);
constexpr FloatFormat kDoubleFormat = FormatOf(kDouble);

/// The number whose sign, exponent and mantissa fields `bits` holds.
Real Decode(const Binary& binary, uint64_t bits) {
  const int mantissa_bits = binary.precision - 1;
  const int exponent_bits = binary.bytes * 8 - 1 - mantissa_bits;
  const uint64_t all_ones = (uint64_t{1} << exponent_bits) - 1;
  const uint64_t mantissa = bits & ((uint64_t{1} << mantissa_bits) - 1);
  const uint64_t exponent = bits >> mantissa_bits & all_ones;
  const bool negative = bits >> (binary.bytes * 8 - 1) & 1;
  Real magnitude;
  if (exponent == all_ones) {
    magnitude = mantissa != 0 ? std::numeric_limits<Real>::quiet_NaN()
                              : std::numeric_limits<Real>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<Real>(mantissa),
                           binary.min_exponent - mantissa_bits);
  } else {
    // Every format's fields fit into those of a float64.
    const uint64_t wide_exponent =
        exponent +
        static_cast<uint64_t>(binary.min_exponent - kDouble.min_exponent);
    magnitude = std::bit_cast<double>(
        wide_exponent << (kDouble.precision - 1) |
        mantissa << (kDouble.precision - binary.precision));
  }
  return negative ? -magnitude : magnitude;
}

/// Of formats that the processor does not round to.
uint64_t Encode(const Binary& binary, Real value) {
  const int mantissa_bits = binary.precision - 1;
  const uint64_t sign = uint64_t{std::signbit(value)} << (binary.bytes * 8 - 1);
  const int exponent_bits = binary.bytes * 8 - 1 - mantissa_bits;
  const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1)
                            << mantissa_bits;
  const Real magnitude = std::abs(value);
  if (std::isnan(value)) {
    return sign | infinity | uint64_t{1} << (mantissa_bits - 1);
  }
  if (std::isinf(value)) return sign | infinity;
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), binary.min_exponent);
  // A whole number of units in the last place; a carry out of the significand
  // moves into the exponent field by itself.
  const auto units = static_cast<uint64_t>(
      std::rint(std::ldexp(magnitude, mantissa_bits - exponent)));
  const auto biased = static_cast<uint64_t>(exponent - binary.min_exponent);
  const uint64_t encoded = (biased << mantissa_bits) + units;
  return sign | std::min(encoded, infinity);
}

Real LoadReal(const Binary& binary, const std::byte* bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, static_cast<size_t>(binary.bytes));
  return Decode(binary, bits);
}

void StoreReal(const Binary& binary, Real value, std::byte* bytes) {
  const uint64_t bits =
      binary.bytes == 8   ? std::bit_cast<uint64_t>(static_cast<double>(value))
      : binary.bytes == 4 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                          : Encode(binary, value);
  std::memcpy(bytes, &bits, static_cast<size_t>(binary.bytes));
}

struct IntegerFormat {
  int bits;
  bool is_signed;
};

IntegerFormat IntegerFormatOf(ElementType type) {
  switch (type) {
    case ElementType::kInt8: return {8, true};
    case ElementType::kInt16: return {16, true};
    case ElementType::kInt32: return {32, true};
    case ElementType::kInt64: return {64, true};
    default: return {8, false};
  }
}

}  // namespace

bool HasParts(ElementType type) {
  return type == ElementType::kComplex64 || type == ElementType::kComplex128;
}

bool IsWhole(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
    case ElementType::kInt16:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kUint8:
    case ElementType::kBool: return true;
    default: return false;
  }
}

FloatFormat FormatOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat16: return kHalfFormat;
    case ElementType::kBfloat16: return kBrainFormat;
    case ElementType::kFloat32:
    case ElementType::kComplex64: return kSingleFormat;
    default: return kDoubleFormat;
  }
}

FloatFormat Tf32Format() { return kTf32Numbers; }

Number LoadNumber(ElementType type, const std::byte* bytes) {
  if (IsWhole(type)) return {static_cast<Real>(LoadInteger(type, bytes)), 0};
  const Binary binary = BinaryOf(type);
  const Real real = LoadReal(binary, bytes);
  return {real, HasParts(type) ? LoadReal(binary, bytes + binary.bytes) : 0};
}

void StoreNumber(ElementType type, const Number& value, std::byte* bytes) {
  const Binary binary = BinaryOf(type);
  StoreReal(binary, value.real(), bytes);
  if (HasParts(type)) StoreReal(binary, value.imag(), bytes + binary.bytes);
}

int64_t WrapInteger(ElementType type, int64_t value) {
  if (type == ElementType::kBool) return value != 0;
  const IntegerFormat format = IntegerFormatOf(type);
  const int unused = 64 - format.bits;
  const uint64_t shifted = static_cast<uint64_t>(value) << unused;
  return format.is_signed ? static_cast<int64_t>(shifted) >> unused
                          : static_cast<int64_t>(shifted >> unused);
}

int64_t LoadInteger(ElementType type, const std::byte* bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes,
              static_cast<size_t>(IntegerFormatOf(type).bits / 8));
  // The byte of a bool is judged as it is: 2 would be a kernel's fault.
  if (type == ElementType::kBool) return static_cast<int64_t>(bits);
  return WrapInteger(type, static_cast<int64_t>(bits));
}

void StoreInteger(ElementType type, int64_t value, std::byte* bytes) {
  const int64_t wrapped = WrapInteger(type, value);
  std::memcpy(bytes, &wrapped,
              static_cast<size_t>(IntegerFormatOf(type).bits / 8));
}

}  // namespace tensord::test
