#include "tests/testing/oracle/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensord::test {
namespace {

using core::ComputeType;
using core::ElementType;

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

/// A reduction's leaf, or a level of a cumulative one, may add this many
/// elements in order.
constexpr int64_t kLeafElements = 64;

bool IsFinite(const Number& x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

Real AllowedError(const Estimate& expected, ElementType type) {
  const FloatFormat format = FormatOf(type);
  return expected.error + format.smallest +
         format.unit_roundoff * (Modulus(expected.value) + expected.error);
}

/// True when `x` is a number of `format`, an infinity or NaN.
bool IsExact(Real x, const FloatFormat& format) {
  if (!std::isfinite(x) || x == 0) return true;
  const Real last_place = std::max(
      std::ldexp(2 * format.unit_roundoff, std::ilogb(x)), format.smallest);
  const Real units = x / last_place;
  return std::rint(units) == units && std::abs(x) <= format.largest;
}

/// True when rounding `value` to `format` may give an infinity.
bool MayOverflow(Real value, Real error, const FloatFormat& format) {
  return std::abs(value) + error >= format.largest;
}

bool AgreesInPart(Real actual, Real value, Real error, Real allowed,
                  const FloatFormat& format) {
  if (std::isnan(value)) return std::isnan(actual);
  if (std::isinf(value)) return actual == value;
  if (std::isinf(actual)) {
    return MayOverflow(value, error, format) &&
           std::signbit(actual) == std::signbit(value);
  }
  return std::abs(actual - value) <= allowed;
}

/// `x` rounded to `format`, unless it is a number of `exact`.
Estimate ReadUnlessExact(const Number& x, const FloatFormat& exact,
                         const FloatFormat& format) {
  return IsExact(x.real(), exact) && IsExact(x.imag(), exact)
             ? Estimate{x, 0}
             : Rounded({x, 0}, 1, format);
}

}  // namespace

Rounding Rounding::Of(ComputeType compute_type, bool is_complex,
                      bool is_contraction) {
  const FloatFormat half = FormatOf(ElementType::kFloat16);
  const FloatFormat brain = FormatOf(ElementType::kBfloat16);
  const FloatFormat single = FormatOf(ElementType::kFloat32);
  const FloatFormat wide = FormatOf(ElementType::kFloat64);
  switch (compute_type) {
    case ComputeType::kFloat16: return {half, single, half, is_complex};
    case ComputeType::kBfloat16:
      return {brain, single, is_contraction ? single : brain, is_complex};
    case ComputeType::kTf32: return {Tf32Format(), single, single, is_complex};
    case ComputeType::kThreeTf32: {
      // Each operand is the sum of two TF32 numbers up to 2^-23 of it, and the
      // product of the two small parts, 2^-22, is left out: three are added.
      // What is one TF32 number has no small part.
      FloatFormat split = Tf32Format();
      split.unit_roundoff = 0x1p-22L;
      return {split, single, single, is_complex, Tf32Format(), 3};
    }
    case ComputeType::kFloat64: return {wide, wide, wide, is_complex};
    default: return {single, single, single, is_complex};
  }
}

Rounding Rounding::OnTensorCores() const {
  const auto single = FormatOf(ElementType::kFloat32).unit_roundoff;
  Rounding rounding = *this;
  // Those for float64 round to nearest; to float16 and bfloat16 operands are
  // rounded before.
  if (sum.unit_roundoff == single) rounding.sum.unit_roundoff *= 2;
  if (read.unit_roundoff == Tf32Format().unit_roundoff &&
      read.smallest == Tf32Format().smallest) {
    rounding.read.unit_roundoff *= 2;
  }
  return rounding;
}

Number Product(const Number& x, const Number& y, bool is_complex) {
  if (!is_complex) return {x.real() * y.real(), 0};
  return {x.real() * y.real() - x.imag() * y.imag(),
          x.real() * y.imag() + x.imag() * y.real()};
}

Estimate Read(const Number& x, const FloatFormat& format) {
  return ReadUnlessExact(x, format, format);
}

Estimate ReadFactor(const Number& x, const Rounding& rounding) {
  return ReadUnlessExact(x, rounding.exact, rounding.read);
}

Estimate Rounded(Estimate x, Real roundings, const FloatFormat& format) {
  if (std::isinf(x.error)) return x;
  if (!IsFinite(x.value)) return {x.value, 0};
  const Real modulus = Modulus(x.value);
  x.error += roundings *
             (format.unit_roundoff * (modulus + x.error) + format.smallest);
  if (modulus + x.error > format.largest) x.error = kInfinity;
  return x;
}

Real ProductError(const Estimate& x, const Estimate& y) {
  if (std::isinf(x.error) || std::isinf(y.error)) return kInfinity;
  if (x.error == 0 && y.error == 0) return 0;
  const auto may_vanish = [](const Estimate& z) {
    return z.error > 0 && Modulus(z.value) <= z.error;
  };
  if (!IsFinite(x.value)) return may_vanish(y) ? kInfinity : 0;
  if (!IsFinite(y.value)) return may_vanish(x) ? kInfinity : 0;
  return Modulus(x.value) * y.error + Modulus(y.value) * x.error +
         x.error * y.error;
}

Estimate Multiply(const Estimate& x, const Estimate& y,
                  const Rounding& rounding) {
  const auto is_one = [](const Estimate& z) {
    return z.error == 0 && z.value == Number(1);
  };
  if (is_one(x)) return y;
  if (is_one(y)) return x;
  const Estimate product{Product(x.value, y.value, rounding.is_complex),
                         ProductError(x, y)};
  return Rounded(product, rounding.is_complex ? 4 : 1, rounding.result);
}

Estimate Add(const Estimate& x, const Estimate& y, const Rounding& rounding) {
  return Rounded({x.value + y.value, x.error + y.error}, 1, rounding.result);
}

Real SummationError(int64_t depth, Real magnitude, const FloatFormat& format) {
  const Real h = static_cast<Real>(depth) * format.unit_roundoff;
  return h < 1 ? h / (1 - h) * magnitude +
                     static_cast<Real>(depth) * format.smallest
               : kInfinity;
}

int64_t TreeDepth(int64_t count) {
  const int64_t leaf = std::min(count, kLeafElements);
  return count <= 1 ? 0 : leaf + std::ilogb(static_cast<Real>(count)) + 1;
}

int64_t ScanDepth(int64_t count) {
  int64_t depth = 0;
  for (int64_t parts = count; parts > 1;
       parts = (parts + kLeafElements - 1) / kLeafElements) {
    depth += std::min(parts, kLeafElements);
  }
  return depth;
}

bool Agrees(const Number& actual, const Estimate& expected, ElementType type) {
  if (std::isinf(expected.error)) return true;
  const FloatFormat format = FormatOf(type);
  const Real allowed = AllowedError(expected, type);
  if (!HasParts(type)) {
    return AgreesInPart(actual.real(), expected.value.real(), expected.error,
                        allowed, format);
  }
  if (!IsFinite(expected.value)) return !IsFinite(actual);
  if (!IsFinite(actual)) {
    return MayOverflow(Modulus(expected.value), expected.error, format);
  }
  return Modulus(actual - expected.value) <= allowed;
}

Real ErrorRatio(const Number& actual, const Estimate& expected,
                ElementType type) {
  if (!IsFinite(actual) || !IsFinite(expected.value)) return 0;
  return Modulus(actual - expected.value) / AllowedError(expected, type);
}

}  // namespace tensord::test
