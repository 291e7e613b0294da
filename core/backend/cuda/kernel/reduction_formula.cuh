// Reductions in device code.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/reduction_tasks.h"

namespace tensord::core::cuda {

/// The identity of `op` among elements of `type`.
template <typename T>
__device__ T IdentityOf(BinaryOperator op, ElementType type) {
  if (op == BinaryOperator::kAdd) return T(0);
  if (op == BinaryOperator::kMul) return T(1);
  if constexpr (kIsComplex<T>) {
    return T(0);  // MAX and MIN are refused by Validate().
  } else if constexpr (std::is_integral_v<T>) {
    T result = 0;
    VisitElementType(type, [&](auto zero) {
      using Stored = decltype(zero);
      if constexpr (std::is_integral_v<Stored>) {
        result = op == BinaryOperator::kMax
                     ? static_cast<T>(std::numeric_limits<Stored>::lowest())
                     : static_cast<T>(std::numeric_limits<Stored>::max());
      }
    });
    return result;
  } else {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return op == BinaryOperator::kMax ? -kInfinity : kInfinity;
  }
}

/// The arithmetic of sums: they are rounded at their end only.
__device__ __forceinline__ Arithmetic
SumArithmetic(const ReductionFormula& formula) {
  return {formula.type_d, Rounding::kNone};
}

/// The element of a at `offset` as a term of the reduction.
template <typename T>
__device__ __forceinline__ T TermAt(const ReductionFormula& formula,
                                    int64_t offset) {
  const Arithmetic arithmetic =
      ArithmeticOf(formula.type_d, formula.compute_type);
  return ApplyUnary(arithmetic, formula.unary_a,
                    Load<T>(formula.a, formula.type_a, offset));
}

/// Stores what becomes of the reduced value at `offset_d`, where elements are
/// of `type_d`. kHasUnary: c's unary operator may be other than the identity.
template <bool kHasUnary, typename T>
__device__ __forceinline__ void Conclude(const ReductionFormula& formula,
                                         ElementType type_d, T value,
                                         int64_t offset_c, int64_t offset_d) {
  const Arithmetic arithmetic = ArithmeticOf(type_d, formula.compute_type);
  T result = T(0);
  if (formula.a != nullptr) {
    result = Scaled(arithmetic, formula.alpha, arithmetic.Settle(value));
  }
  if (formula.c != nullptr) {
    T c = Load<T>(formula.c, type_d, offset_c);
    if constexpr (kHasUnary) c = ApplyUnary(arithmetic, formula.unary_c, c);
    result = ApplyReducing(arithmetic, BinaryOperator::kAdd, result,
                         Scaled(arithmetic, formula.beta, c));
  }
  Store(formula.d, type_d, offset_d, result);
}

}  // namespace tensord::core::cuda
