// What conversions and operators do to one element.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/element_type.h"
#include "core/ops/operators.h"
#include "core/ops/scalar.h"
#include "core/ops/type_tables.h"

namespace tensord::core {

/// VisitElementType() for results of ComputeElement(): halves are no such.
template <typename Visitor>
decltype(auto) VisitComputeElement(ElementType type, Visitor&& visit) {
  return VisitElementType(type, [&](auto zero) {
    if constexpr (kIsHalf<decltype(zero)>) {
      return visit(float{});
    } else {
      return visit(zero);
    }
  });
}

/// Whether ConvertElement<To>(From) exists: always, but from complex types to
/// integers other than bool.
template <typename To, typename From>
inline constexpr bool kConverts =
    !kIsComplex<From> || !std::is_integral_v<To> || std::is_same_v<To, bool>;

/// x without its fraction; the nearest integer where it is beyond the range,
/// and 0 of NaN.
template <typename To, typename From>
To Truncated(From x) {
  using Limits = std::numeric_limits<To>;
  constexpr From kBeyond = 2 * static_cast<From>(Limits::max() / 2 + 1);
  if (x != x) return 0;
  if (x < static_cast<From>(Limits::min())) return Limits::min();
  return x < kBeyond ? static_cast<To>(x) : Limits::max();
}

/// x as a float whose last bit says whether it is less than all of x: rounded
/// again, to fewer bits, it gives what x would.
/// Source  S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded
///         sums: proved algorithms using rounding to odd" (2008).
inline float RoundedToOdd(double x) {
  const auto nearest = static_cast<float>(x);
  if (nearest == x) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(nearest) > std::abs(x)) --bits;
  return std::bit_cast<float>(bits | 1);
}

/// Of complex numbers to real types the real part.
template <typename To, typename From>
To ConvertElement(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kIsHalf<From>) {
    return ConvertElement<To>(x.ToFloat());
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    return ConvertElement<To>(x.real());
  } else if constexpr (kIsHalf<To> && std::is_same_v<From, double>) {
    return To::From(RoundedToOdd(x));
  } else if constexpr (kIsHalf<To>) {
    return To::From(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<To> &&
                       std::is_floating_point_v<From>) {
    return Truncated<To>(x);
  } else if constexpr (std::is_integral_v<From> && kIsComplex<To>) {
    return static_cast<typename To::value_type>(x);
  } else if constexpr (kIsComplex<From>) {
    using Part = typename To::value_type;
    return {static_cast<Part>(x.real()), static_cast<Part>(x.imag())};
  } else {
    return static_cast<To>(x);
  }
}

/// The factor as an element. Requires ValidateScalar() to accept it for T.
template <typename T>
T FactorAs(const Scalar& scalar) {
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return {static_cast<Part>(scalar.real),
            static_cast<Part>(scalar.imaginary)};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(scalar.real));
  } else {
    return static_cast<T>(scalar.real);
  }
}

/// x rounded to the precision of `compute` when that is less than T's.
template <typename T>
T RoundTo(ComputeType compute, T x) {
  if constexpr (std::is_same_v<T, float>) {
    if (compute == ComputeType::kFloat16) return Half::From(x).ToFloat();
    if (compute == ComputeType::kBfloat16) return Bfloat16::From(x).ToFloat();
  }
  return x;
}

template <typename T>
T ApplyUnary(UnaryOperator op, T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return op == UnaryOperator::kImag ? false : x;
  } else if constexpr (std::is_integral_v<T>) {
    const auto negative = [](T y) {
      return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(y));
    };
    switch (op) {
      case UnaryOperator::kNeg: return negative(x);
      case UnaryOperator::kAbs: return x < 0 ? negative(x) : x;
      case UnaryOperator::kRelu: return x < 0 ? T{0} : x;
      case UnaryOperator::kImag: return 0;
      default: return x;
    }
  } else {
    switch (op) {
      case UnaryOperator::kSqrt: return std::sqrt(x);
      case UnaryOperator::kRcp: return T(1) / x;
      case UnaryOperator::kTanh: return std::tanh(x);
      case UnaryOperator::kExp: return std::exp(x);
      case UnaryOperator::kLog: return std::log(x);
      case UnaryOperator::kAbs: return T(std::abs(x));
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
      case UnaryOperator::kReal: return T(std::real(x));
      case UnaryOperator::kImag: return T(std::imag(x));
      default: break;
    }
    if constexpr (kIsComplex<T>) {
      return op == UnaryOperator::kConj ? std::conj(x) : x;
    } else {
      // exp() of what is not positive never overflows.
      const T decay = std::exp(-std::abs(x));
      const auto sigmoid = [&] { return (x < 0 ? decay : T(1)) / (1 + decay); };
      const auto soft_plus = [&] {
        return (x < 0 ? T(0) : x) + std::log1p(decay);
      };
      switch (op) {
        case UnaryOperator::kRelu: return x < 0 ? T(0) : x;
        case UnaryOperator::kSigmoid: return sigmoid();
        case UnaryOperator::kCeil: return std::ceil(x);
        case UnaryOperator::kFloor: return std::floor(x);
        case UnaryOperator::kMish: return x * std::tanh(soft_plus());
        case UnaryOperator::kSwish: return x * sigmoid();
        case UnaryOperator::kSoftPlus: return soft_plus();
        case UnaryOperator::kSoftSign: return x / (1 + std::abs(x));
        default: return x;
      }
    }
  }
}

/// x * y; on complex numbers by the schoolbook formula: the standard library's
/// operator repairs infinities, at ten times the price.
template <typename T>
T Multiply(T x, T y) {
  if constexpr (kIsComplex<T>) {
    return {x.real() * y.real() - x.imag() * y.imag(),
            x.real() * y.imag() + x.imag() * y.real()};
  } else if constexpr (std::is_same_v<T, bool>) {
    return x && y;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  } else {
    return x * y;
  }
}

/// x to the y, wrapping.
template <typename T>
T IntegerPower(T x, T y) {
  if (y < 0) {
    if (x == 1) return 1;
    return x != T(-1) ? 0 : y % 2 == 0 ? 1 : x;
  }
  T power = 1;
  for (; y > 0; y /= 2) {
    if (y % 2 != 0) power = Multiply(power, x);
    x = Multiply(x, x);
  }
  return power;
}

template <typename T>
T Power(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return x;  // refused by Validate()
  } else if constexpr (std::is_integral_v<T>) {
    return IntegerPower(x, y);
  } else if constexpr (kIsComplex<T>) {
    if (y == T(0)) return T(1);
    return x == T(0) && y.imag() == 0 && y.real() > 0 ? T(0) : std::pow(x, y);
  } else {
    return std::pow(x, y);
  }
}

/// Of a comparison: whether `op` holds. Complex numbers are equal or not.
template <typename T>
bool Holds(BinaryOperator op, T x, T y) {
  if (op == BinaryOperator::kEqual) return x == y;
  if (op == BinaryOperator::kNotEqual) return x != y;
  if constexpr (!kIsComplex<T>) {
    switch (op) {
      case BinaryOperator::kLess: return x < y;
      case BinaryOperator::kLessEqual: return x <= y;
      case BinaryOperator::kGreater: return x > y;
      case BinaryOperator::kGreaterEqual: return x >= y;
      default: break;
    }
  }
  return false;
}

/// Comparisons give 1 and 0.
/// Requires  op is not WHERE.
template <typename T>
T ApplyBinary(BinaryOperator op, T x, T y) {
  if (op == BinaryOperator::kMul) return Multiply(x, y);
  if (IsComparison(op)) return T(Holds(op, x, y));
  if (op == BinaryOperator::kPow) return Power(x, y);
  if (op == BinaryOperator::kDiv) {
    if constexpr (std::is_integral_v<T>) {
      return x;  // refused by Validate()
    } else {
      return x / y;
    }
  }
  if (op == BinaryOperator::kAdd) {
    if constexpr (std::is_same_v<T, bool>) {
      return x || y;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(x) +
                            static_cast<uint64_t>(y));
    } else {
      return x + y;
    }
  }
  if constexpr (kIsComplex<T>) {
    return x;  // MAX and MIN are refused by Validate().
  } else {
    if (x != x || y != y) return x != x ? x : y;
    if (op == BinaryOperator::kMax) return x < y ? y : x;
    return y < x ? y : x;
  }
}

/// The identity of `op`: combined with it, every element stays as it is.
template <typename T>
T IdentityOf(BinaryOperator op) {
  if (op == BinaryOperator::kAdd) return T(0);
  if (op == BinaryOperator::kMul) return T(1);
  if constexpr (kIsComplex<T>) {
    return T(0);
  } else {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::has_infinity) {
      return op == BinaryOperator::kMax ? -Limits::infinity()
                                        : Limits::infinity();
    } else {
      return op == BinaryOperator::kMax ? Limits::lowest() : Limits::max();
    }
  }
}

}  // namespace tensord::core
