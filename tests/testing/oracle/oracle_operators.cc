#include "tests/testing/oracle/oracle_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ElementType;
using core::UnaryOperator;

/// log(1 + exp(x)) without overflow or loss of small results.
Real SoftPlus(Real x) {
  return std::max(x, Real{0}) + std::log1p(std::exp(-std::abs(x)));
}

Real Sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }

Real OfReal(UnaryOperator op, Real x) {
  switch (op) {
    case UnaryOperator::kIdentity:
    case UnaryOperator::kConj: return x;
    case UnaryOperator::kSqrt: return std::sqrt(x);
    case UnaryOperator::kRelu: return x < 0 ? 0 : x;
    case UnaryOperator::kRcp: return 1 / x;
    case UnaryOperator::kSigmoid: return Sigmoid(x);
    case UnaryOperator::kTanh: return std::tanh(x);
    case UnaryOperator::kExp: return std::exp(x);
    case UnaryOperator::kLog: return std::log(x);
    case UnaryOperator::kAbs: return std::abs(x);
    case UnaryOperator::kNeg: return -x;
    case UnaryOperator::kSin: return std::sin(x);
    case UnaryOperator::kCos: return std::cos(x);
    case UnaryOperator::kTan: return std::tan(x);
    case UnaryOperator::kSinh: return std::sinh(x);
    case UnaryOperator::kCosh: return std::cosh(x);
    case UnaryOperator::kAsin: return std::asin(x);
    case UnaryOperator::kAcos: return std::acos(x);
    case UnaryOperator::kAtan: return std::atan(x);
    case UnaryOperator::kAsinh: return std::asinh(x);
    case UnaryOperator::kAcosh: return std::acosh(x);
    case UnaryOperator::kAtanh: return std::atanh(x);
    case UnaryOperator::kCeil: return std::ceil(x);
    case UnaryOperator::kFloor: return std::floor(x);
    case UnaryOperator::kMish: return x * std::tanh(SoftPlus(x));
    case UnaryOperator::kSwish: return x * Sigmoid(x);
    case UnaryOperator::kSoftPlus: return SoftPlus(x);
    case UnaryOperator::kSoftSign: return x / (1 + std::abs(x));
    case UnaryOperator::kReal: return x;
    case UnaryOperator::kImag: return 0;
  }
  __builtin_unreachable();
}

/// Operators that need an order have no complex form and are never asked for.
Number OfComplex(UnaryOperator op, const Number& z) {
  switch (op) {
    case UnaryOperator::kIdentity: return z;
    case UnaryOperator::kConj: return std::conj(z);
    case UnaryOperator::kSqrt: return std::sqrt(z);
    case UnaryOperator::kRcp: return Number(1) / z;
    case UnaryOperator::kTanh: return std::tanh(z);
    case UnaryOperator::kExp: return std::exp(z);
    case UnaryOperator::kLog: return std::log(z);
    case UnaryOperator::kAbs: return {std::abs(z), 0};
    case UnaryOperator::kNeg: return -z;
    case UnaryOperator::kSin: return std::sin(z);
    case UnaryOperator::kCos: return std::cos(z);
    case UnaryOperator::kTan: return std::tan(z);
    case UnaryOperator::kSinh: return std::sinh(z);
    case UnaryOperator::kCosh: return std::cosh(z);
    case UnaryOperator::kAsin: return std::asin(z);
    case UnaryOperator::kAcos: return std::acos(z);
    case UnaryOperator::kAtan: return std::atan(z);
    case UnaryOperator::kAsinh: return std::asinh(z);
    case UnaryOperator::kAcosh: return std::acosh(z);
    case UnaryOperator::kAtanh: return std::atanh(z);
    case UnaryOperator::kReal: return z.real();
    case UnaryOperator::kImag: return z.imag();
    default: __builtin_unreachable();
  }
}

/// How many roundings the result of a careful implementation is worth.
Real RoundingsOf(UnaryOperator op, bool is_complex) {
  switch (op) {
    case UnaryOperator::kIdentity:
    case UnaryOperator::kConj:
    case UnaryOperator::kNeg:
    case UnaryOperator::kRelu:
    case UnaryOperator::kReal:
    case UnaryOperator::kImag:
    case UnaryOperator::kCeil:
    case UnaryOperator::kFloor: return 0;
    case UnaryOperator::kAbs: return is_complex ? 4 : 0;
    case UnaryOperator::kSqrt:
    case UnaryOperator::kRcp: return is_complex ? 8 : 2;
    case UnaryOperator::kSoftSign: return 3;
    case UnaryOperator::kSigmoid:
    case UnaryOperator::kMish:
    case UnaryOperator::kSwish:
    case UnaryOperator::kSoftPlus: return 16;
    default: return is_complex ? 32 : 8;  // within 4 units in the last place
  }
}

bool IsNan(const Number& x) { return std::isnan(x.real()); }

int64_t LowestOf(ElementType type) {
  switch (type) {
    case ElementType::kInt8: return std::numeric_limits<int8_t>::min();
    case ElementType::kInt16: return std::numeric_limits<int16_t>::min();
    case ElementType::kInt32: return std::numeric_limits<int32_t>::min();
    case ElementType::kInt64: return std::numeric_limits<int64_t>::min();
    default: return 0;
  }
}

int64_t HighestOf(ElementType type) {
  if (type == ElementType::kUint8) return 255;
  if (type == ElementType::kBool) return 1;
  return ~LowestOf(type);
}

constexpr Real kAnything = std::numeric_limits<Real>::infinity();

/// x / y is as far off as (e_x + |x / y| e_y) / (|y| - e_y).
Estimate Divide(const Estimate& x, const Estimate& y,
                const Rounding& rounding) {
  const Number exact = rounding.is_complex
                           ? x.value / y.value
                           : Number(x.value.real() / y.value.real());
  const Real least = Modulus(y.value) - y.error;
  Real error = 0;
  if (x.error > 0 || y.error > 0) {
    error =
        least > 0 ? (x.error + Modulus(exact) * y.error) / least : kAnything;
  }
  return Rounded({exact, error}, rounding.is_complex ? 12 : 1, rounding.result);
}

/// Of x > 0 the power is monotonous in x and in y, so that it is farthest off
/// in a corner.
Real RealPowerError(Real exact, const Estimate& x, const Estimate& y) {
  if (x.error == 0 && y.error == 0) return 0;
  if (x.value.real() - x.error <= 0) return kAnything;
  Real error = 0;
  for (const Real dx : {-x.error, x.error}) {
    for (const Real dy : {-y.error, y.error}) {
      const Real corner = std::pow(x.value.real() + dx, y.value.real() + dy);
      error = std::max(error, std::abs(corner - exact));
    }
  }
  return error;
}

/// x^y = exp(y log x). Where the exponent is off by e, the power is by
/// exp(e) - 1 of itself; the logarithm of an x that is off by a share s is by
/// -log(1 - s). `roundings` units are what computing the exponent takes.
Estimate ComplexPower(const Estimate& x, const Estimate& y, Real roundings,
                      const Rounding& rounding) {
  const Number zero = 0;
  if (y.value == zero && y.error == 0) return {1};
  if (x.value == zero && x.error == 0) {
    const bool is_zero = y.value.real() > 0 && y.value.imag() == 0;
    return {is_zero ? zero : Number(std::numeric_limits<Real>::quiet_NaN())};
  }
  const Number exact = std::pow(x.value, y.value);
  const bool may_turn = std::abs(x.value.imag()) <= x.error &&
                        x.value.real() - x.error <= 0 && x.error > 0;
  const Real share = x.error / Modulus(x.value);
  if (may_turn || share >= 1) return {exact, kAnything};
  const Real moved = -std::log1p(-share);
  const Number log = std::log(x.value);
  const Real unit = rounding.result.unit_roundoff;
  const Real off = Modulus(y.value) * moved + y.error * (Modulus(log) + moved) +
                   roundings * unit * Modulus(y.value) * (Modulus(log) + 1);
  return Rounded({exact, Modulus(exact) * std::expm1(off)}, 32,
                 rounding.result);
}

Estimate Power(const Estimate& x, const Estimate& y, const Rounding& rounding) {
  if (rounding.is_complex) return ComplexPower(x, y, 16, rounding);
  const Real exact = std::pow(x.value.real(), y.value.real());
  return Rounded({exact, RealPowerError(exact, x, y)}, 8, rounding.result);
}

int64_t IntegerPower(int64_t x, int64_t y, ElementType type) {
  if (y < 0) return x == 1 ? 1 : x != -1 ? 0 : y % 2 == 0 ? 1 : -1;
  uint64_t power = 1;
  // Wrapping each step is wrapping the whole.
  for (uint64_t base = static_cast<uint64_t>(x); y > 0; y >>= 1) {
    if ((y & 1) != 0) power *= base;
    base *= base;
  }
  return WrapInteger(type, static_cast<int64_t>(power));
}

}  // namespace

Estimate ApplyUnary(UnaryOperator op, const Number& x,
                    const Rounding& rounding) {
  const Estimate exact{rounding.is_complex ? OfComplex(op, x)
                                           : Number(OfReal(op, x.real()))};
  const Real roundings = RoundingsOf(op, rounding.is_complex);
  return roundings == 0 ? exact : Rounded(exact, roundings, rounding.result);
}

Estimate ApplyBinary(BinaryOperator op, const Estimate& x, const Estimate& y,
                     const Rounding& rounding) {
  switch (op) {
    case BinaryOperator::kAdd: return Add(x, y, rounding);
    case BinaryOperator::kMul: return Multiply(x, y, rounding);
    case BinaryOperator::kDiv: return Divide(x, y, rounding);
    case BinaryOperator::kPow: return Power(x, y, rounding);
    default: break;  // MAX and MIN
  }
  const Real error = std::max(x.error, y.error);
  if (IsNan(x.value)) return {x.value, error};
  if (IsNan(y.value)) return {y.value, error};
  const bool x_is_less = x.value.real() < y.value.real();
  return {x_is_less == (op == BinaryOperator::kMin) ? x.value : y.value, error};
}

Number IdentityOf(BinaryOperator op) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  switch (op) {
    case BinaryOperator::kAdd: return 0;
    case BinaryOperator::kMul: return 1;
    case BinaryOperator::kMax: return -kInfinity;
    case BinaryOperator::kMin: return kInfinity;
    default: break;  // the others do not reduce
  }
  __builtin_unreachable();
}

Verdict Compare(BinaryOperator op, const Estimate& x, const Estimate& y) {
  const Real distance = Modulus(x.value - y.value);
  const bool is_open = distance <= x.error + y.error && x.error + y.error > 0;
  const Real left = x.value.real(), right = y.value.real();
  switch (op) {
    case BinaryOperator::kEqual: return {x.value == y.value, is_open};
    case BinaryOperator::kNotEqual: return {x.value != y.value, is_open};
    case BinaryOperator::kLess: return {left < right, is_open};
    case BinaryOperator::kLessEqual: return {left <= right, is_open};
    case BinaryOperator::kGreater: return {left > right, is_open};
    case BinaryOperator::kGreaterEqual: return {left >= right, is_open};
    default: __builtin_unreachable();
  }
}

bool Compare(BinaryOperator op, int64_t x, int64_t y) {
  switch (op) {
    case BinaryOperator::kEqual: return x == y;
    case BinaryOperator::kNotEqual: return x != y;
    case BinaryOperator::kLess: return x < y;
    case BinaryOperator::kLessEqual: return x <= y;
    case BinaryOperator::kGreater: return x > y;
    case BinaryOperator::kGreaterEqual: return x >= y;
    default: __builtin_unreachable();
  }
}

int64_t ApplyUnary(UnaryOperator op, int64_t x, ElementType type) {
  const auto negated = static_cast<int64_t>(0 - static_cast<uint64_t>(x));
  switch (op) {
    case UnaryOperator::kAbs: return WrapInteger(type, x < 0 ? negated : x);
    case UnaryOperator::kNeg: return WrapInteger(type, negated);
    case UnaryOperator::kRelu: return x < 0 ? 0 : x;
    case UnaryOperator::kImag: return 0;
    default: return x;  // IDENTITY, CONJ and REAL
  }
}

int64_t ApplyBinary(BinaryOperator op, int64_t x, int64_t y, ElementType type) {
  const auto ux = static_cast<uint64_t>(x);
  const auto uy = static_cast<uint64_t>(y);
  switch (op) {
    case BinaryOperator::kAdd:
      return WrapInteger(type, static_cast<int64_t>(ux + uy));
    case BinaryOperator::kMul:
      return WrapInteger(type, static_cast<int64_t>(ux * uy));
    case BinaryOperator::kMax: return std::max(x, y);
    case BinaryOperator::kMin: return std::min(x, y);
    case BinaryOperator::kPow: return IntegerPower(x, y, type);
    default: break;  // comparisons are asked otherwise, DIV is refused
  }
  __builtin_unreachable();
}

int64_t Truncate(Real x, ElementType type) {
  if (type == ElementType::kBool) return x != 0;
  if (std::isnan(x)) return 0;
  // long double holds every int64.
  const auto lowest = static_cast<Real>(LowestOf(type));
  const auto highest = static_cast<Real>(HighestOf(type));
  return static_cast<int64_t>(std::clamp(std::trunc(x), lowest, highest));
}

int64_t IntegerIdentityOf(BinaryOperator op, ElementType type) {
  switch (op) {
    case BinaryOperator::kAdd: return 0;
    case BinaryOperator::kMul: return 1;
    case BinaryOperator::kMax: return LowestOf(type);
    case BinaryOperator::kMin: return HighestOf(type);
    default: break;
  }
  __builtin_unreachable();
}

}  // namespace tensord::test
