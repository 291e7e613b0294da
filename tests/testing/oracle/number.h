// Elements as numbers wide enough to judge every element type, with decoding of
// their own: nothing here calls the product's conversions.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "core/base/element_type.h"

namespace tensord::test {

/// At least 11 bits wider than float64 on x86-64.
using Real = long double;
/// Every floating-point element; the imaginary part of a real type is 0.
using Number = std::complex<Real>;

/// What rounding to a floating-point format loses.
struct FloatFormat {
  Real unit_roundoff;  // largest relative error of rounding to nearest
  Real smallest;       // smallest positive number, subnormal
  Real largest;        // largest finite number
};

/// True for the complex types: an element is two numbers.
bool HasParts(core::ElementType type);
/// True for the types that LoadInteger() reads.
bool IsWhole(core::ElementType type);

/// The format of `type`, of its parts when it is complex.
/// Requires a floating-point type.
FloatFormat FormatOf(core::ElementType type);

/// float32 with 10 bits of mantissa.
FloatFormat Tf32Format();

/// The element at `bytes`, exactly. Requires a floating-point type.
Number LoadNumber(core::ElementType type, const std::byte* bytes);

/// Rounds `value` to nearest even and writes it, beyond the largest number as
/// an infinity. Requires a floating-point type.
void StoreNumber(core::ElementType type, const Number& value, std::byte* bytes);

/// `value` modulo 2^bits of `type`; of bool, whether it is not 0.
/// Requires an integer type, as do the next two.
int64_t WrapInteger(core::ElementType type, int64_t value);
int64_t LoadInteger(core::ElementType type, const std::byte* bytes);
void StoreInteger(core::ElementType type, int64_t value, std::byte* bytes);

}  // namespace tensord::test
