// What operators do to elements, in device code.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/backend/cuda/kernel/complex_math.cuh"
#include "core/backend/cuda/kernel/element.cuh"
#include "core/ops/operators.h"

namespace tensord::core::cuda {

template <typename T>
__device__ __forceinline__ T Multiply(T x, T y) {
  if constexpr (kIsComplex<T>) {
    return Product(x, y);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  } else {
    return x * y;
  }
}

// The operators that all kinds of numbers have, then those of real ones.

template <typename R>
__device__ Complex<R> ApplyFunction(UnaryOperator op, Complex<R> z) {
  switch (op) {
    case UnaryOperator::kConj: return {z.real(), -z.imag()};
    case UnaryOperator::kNeg: return {-z.real(), -z.imag()};
    case UnaryOperator::kAbs: return {hypot(z.real(), z.imag()), R(0)};
    case UnaryOperator::kReal: return {z.real(), R(0)};
    case UnaryOperator::kImag: return {z.imag(), R(0)};
    case UnaryOperator::kRcp: return Reciprocal(z);
    case UnaryOperator::kSqrt: return Sqrt(z);
    case UnaryOperator::kExp: return Exp(z);
    case UnaryOperator::kLog: return Log(z);
    case UnaryOperator::kSin: return TimesMinusI(Sinh(TimesI(z)));
    case UnaryOperator::kCos: return Cosh(TimesI(z));
    case UnaryOperator::kTan: return TimesMinusI(Tanh(TimesI(z)));
    case UnaryOperator::kSinh: return Sinh(z);
    case UnaryOperator::kCosh: return Cosh(z);
    case UnaryOperator::kTanh: return Tanh(z);
    case UnaryOperator::kAsin: return Asin(z);
    case UnaryOperator::kAcos: return Acos(z);
    case UnaryOperator::kAtan: return TimesMinusI(Atanh(TimesI(z)));
    case UnaryOperator::kAsinh: return TimesMinusI(Asin(TimesI(z)));
    case UnaryOperator::kAcosh: return Acosh(z);
    case UnaryOperator::kAtanh: return Atanh(z);
    default: return z;
  }
}

template <typename R>
__device__ R ApplyFunction(UnaryOperator op, R x) {
  // exp() of what is not positive never overflows.
  const auto decay = [&] { return exp(-fabs(x)); };
  const auto sigmoid = [&] {
    const R e = decay();
    return (x < 0 ? e : R(1)) / (1 + e);
  };
  const auto soft_plus = [&] { return (x < 0 ? R(0) : x) + log1p(decay()); };
  switch (op) {
    case UnaryOperator::kSqrt: return sqrt(x);
    case UnaryOperator::kRelu: return x < 0 ? R(0) : x;
    case UnaryOperator::kRcp: return R(1) / x;
    case UnaryOperator::kSigmoid: return sigmoid();
    case UnaryOperator::kTanh: return tanh(x);
    case UnaryOperator::kExp: return exp(x);
    case UnaryOperator::kLog: return log(x);
    case UnaryOperator::kAbs: return fabs(x);
    case UnaryOperator::kNeg: return -x;
    case UnaryOperator::kSin: return sin(x);
    case UnaryOperator::kCos: return cos(x);
    case UnaryOperator::kTan: return tan(x);
    case UnaryOperator::kSinh: return sinh(x);
    case UnaryOperator::kCosh: return cosh(x);
    case UnaryOperator::kAsin: return asin(x);
    case UnaryOperator::kAcos: return acos(x);
    case UnaryOperator::kAtan: return atan(x);
    case UnaryOperator::kAsinh: return asinh(x);
    case UnaryOperator::kAcosh: return acosh(x);
    case UnaryOperator::kAtanh: return atanh(x);
    case UnaryOperator::kCeil: return ceil(x);
    case UnaryOperator::kFloor: return floor(x);
    case UnaryOperator::kMish: return x * tanh(soft_plus());
    case UnaryOperator::kSwish: return x * sigmoid();
    case UnaryOperator::kSoftPlus: return soft_plus();
    case UnaryOperator::kSoftSign: return x / (1 + fabs(x));
    case UnaryOperator::kImag: return R(0);
    default: return x;
  }
}

__device__ inline int64_t ApplyFunction(UnaryOperator op, int64_t x) {
  const auto negative = [&] {
    return static_cast<int64_t>(-static_cast<uint64_t>(x));
  };
  switch (op) {
    case UnaryOperator::kNeg: return negative();
    case UnaryOperator::kAbs: return x < 0 ? negative() : x;
    case UnaryOperator::kRelu: return x < 0 ? 0 : x;
    case UnaryOperator::kImag: return 0;
    default: return x;
  }
}

// The operators on two numbers that do not reduce. Comparisons give 1 and 0.

template <typename T>
__device__ bool Holds(BinaryOperator op, T x, T y) {
  switch (op) {
    case BinaryOperator::kEqual: return x == y;
    case BinaryOperator::kNotEqual: return x != y;
    case BinaryOperator::kLess: return x < y;
    case BinaryOperator::kLessEqual: return x <= y;
    case BinaryOperator::kGreater: return x > y;
    default: return x >= y;
  }
}

template <typename R>
__device__ Complex<R> ApplyFunction(BinaryOperator op, Complex<R> z,
                                    Complex<R> w) {
  if (op == BinaryOperator::kDiv) return Divided(z, w);
  if (op == BinaryOperator::kPow) return Power(z, w);
  const bool is_equal = z.real() == w.real() && z.imag() == w.imag();
  return {R(is_equal == (op == BinaryOperator::kEqual)), R(0)};
}

template <typename R>
__device__ R ApplyFunction(BinaryOperator op, R x, R y) {
  if (op == BinaryOperator::kDiv) return x / y;
  if (op == BinaryOperator::kPow) return pow(x, y);
  return Holds(op, x, y);
}

__device__ inline int64_t ApplyFunction(BinaryOperator op, int64_t x,
                                        int64_t y) {
  if (op != BinaryOperator::kPow) return Holds(op, x, y);
  if (y < 0) {
    if (x == 1) return 1;
    return x != -1 ? 0 : y % 2 == 0 ? 1 : x;
  }
  int64_t power = 1;
  for (; y > 0; y /= 2) {
    if (y % 2 != 0) power = Multiply(power, x);
    x = Multiply(x, x);
  }
  return power;
}

/// The switch over all operators. Not inlined, so that a kernel file has it
/// just once; these operators cost more than a call anyway.
template <typename T>
__device__ __noinline__ T CallFunction(UnaryOperator op, T x) {
  return ApplyFunction(op, x);
}
template <typename T>
__device__ __noinline__ T CallFunction(BinaryOperator op, T x, T y) {
  return ApplyFunction(op, x, y);
}

/// `op` of `x`, settled.
template <typename T>
__device__ __forceinline__ T ApplyUnary(const Arithmetic& arithmetic,
                                        UnaryOperator op, T x) {
  if (op == UnaryOperator::kIdentity) return x;
  return arithmetic.Settle(CallFunction(op, x));
}

/// `op` of `x` and `y`, settled.
/// Requires  Reduces(op).
template <typename T>
__device__ __forceinline__ T ApplyReducing(const Arithmetic& arithmetic,
                                           BinaryOperator op, T x, T y) {
  if (op == BinaryOperator::kMul) return arithmetic.Settle(Multiply(x, y));
  if (op == BinaryOperator::kAdd) {
    if constexpr (std::is_integral_v<T>) {
      return arithmetic.Settle(
          static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)));
    } else if constexpr (kIsComplex<T>) {
      return T(x.real() + y.real(), x.imag() + y.imag());
    } else {
      return arithmetic.Settle(x + y);
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

/// `op` of `x` and `y`, settled.
/// Requires  op is not WHERE.
template <typename T>
__device__ __forceinline__ T ApplyBinary(const Arithmetic& arithmetic,
                                         BinaryOperator op, T x, T y) {
  if (Reduces(op)) return ApplyReducing(arithmetic, op, x, y);
  return arithmetic.Settle(CallFunction(op, x, y));
}

/// ADD to DIV of `x` and `y`, with nothing rounded or wrapped to a narrower
/// type. MAX and MIN give the first NaN.
template <BinaryOperator op, typename T>
__device__ __forceinline__ T Joined(T x, T y) {
  if constexpr (op == BinaryOperator::kMul) {
    if constexpr (std::is_same_v<T, int32_t>) {
      return static_cast<T>(static_cast<uint32_t>(x) *
                            static_cast<uint32_t>(y));
    } else {
      return Multiply(x, y);
    }
  } else if constexpr (op == BinaryOperator::kAdd) {
    if constexpr (std::is_integral_v<T>) {
      using Wrapping = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Wrapping>(x) +
                            static_cast<Wrapping>(y));
    } else if constexpr (kIsComplex<T>) {
      return T(x.real() + y.real(), x.imag() + y.imag());
    } else {
      return x + y;
    }
  } else if constexpr (op == BinaryOperator::kDiv) {
    if constexpr (kIsComplex<T>) {
      return Divided(x, y);
    } else {
      return x / y;
    }
  } else {
    const bool takes_x = op == BinaryOperator::kMax ? x > y : x < y;
    return takes_x || x != x ? x : y;
  }
}

/// The arithmetic that `compute_type` asks for on elements of type `element`.
__device__ __forceinline__ Arithmetic ArithmeticOf(ElementType element,
                                                   ComputeType compute_type) {
  Arithmetic arithmetic{element, Rounding::kNone};
  if (compute_type == ComputeType::kFloat16) {
    arithmetic.rounding = Rounding::kFloat16;
  }
  if (compute_type == ComputeType::kBfloat16) {
    arithmetic.rounding = Rounding::kBfloat16;
  }
  return arithmetic;
}

/// A factor as arithmetic in T takes it.
template <typename T>
__device__ __forceinline__ T FactorAs(const Arithmetic& arithmetic, double real,
                                      double imaginary) {
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return T(static_cast<Part>(real), static_cast<Part>(imaginary));
  } else {
    return arithmetic.Settle(static_cast<T>(real));
  }
}

/// `factor`, its real and imaginary parts, times `x`, settled. 1 is left out: a
/// product with (1, 0) would turn the other part of an infinity into NaN.
template <typename T>
__device__ __forceinline__ T Scaled(const Arithmetic& arithmetic,
                                    const double (&factor)[2], T x) {
  if (factor[0] == 1 && factor[1] == 0) return x;
  return arithmetic.Settle(
      Multiply(FactorAs<T>(arithmetic, factor[0], factor[1]), x));
}

}  // namespace tensord::core::cuda
