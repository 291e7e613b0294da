#include "tests/testing/oracle_operators.h"

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
    case BinaryOperator::kMax:
    case BinaryOperator::kMin: break;
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
  }
  __builtin_unreachable();
}

int64_t ApplyUnary(UnaryOperator op, int64_t x, ElementType type) {
  const auto negated = static_cast<int64_t>(0 - static_cast<uint64_t>(x));
  switch (op) {
    case UnaryOperator::kAbs: return WrapInteger(type, x < 0 ? negated : x);
    case UnaryOperator::kNeg: return WrapInteger(type, negated);
    case UnaryOperator::kRelu: return x < 0 ? 0 : x;
    default: return x;  // IDENTITY and CONJ
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
  }
  __builtin_unreachable();
}

int64_t IntegerIdentityOf(BinaryOperator op, ElementType type) {
  switch (op) {
    case BinaryOperator::kAdd: return 0;
    case BinaryOperator::kMul: return 1;
    case BinaryOperator::kMax: return LowestOf(type);
    case BinaryOperator::kMin: return HighestOf(type);
  }
  __builtin_unreachable();
}

}  // namespace tensord::test
