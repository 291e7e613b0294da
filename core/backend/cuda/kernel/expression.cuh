// Element-wise expressions in device code.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/backend/cuda/kernel/element_math.cuh"
#include "core/backend/cuda/kernel/elementwise_tasks.h"

namespace tensord::core::cuda {

/// Calls `visit` with a zero of the type in which arithmetic of `element` runs.
template <typename Visitor>
cudaError_t VisitArithmetic(ElementType element, Visitor&& visit) {
  switch (element) {
    case ElementType::kFloat32: return visit(float{});
    case ElementType::kFloat64: return visit(double{});
    case ElementType::kComplex64: return visit(std::complex<float>{});
    case ElementType::kComplex128: return visit(std::complex<double>{});
    default: return visit(int64_t{});
  }
}

/// Input `i` of the expression: unary operator and factor applied to `x`.
template <typename T>
__device__ __forceinline__ T TermOf(const Expression& expression,
                                    const Arithmetic& arithmetic, int i, T x) {
  x = ApplyUnary(arithmetic, expression.unary[i], x);
  if (!expression.is_scaled[i]) return x;
  const T factor = FactorAs<T>(arithmetic, expression.factors[i][0],
                               expression.factors[i][1]);
  return arithmetic.Settle(Multiply(factor, x));
}

/// The expression of its three terms.
template <typename T>
__device__ __forceinline__ T Combine(const Expression& expression,
                                     const Arithmetic& arithmetic, T a, T b,
                                     T c) {
  if (expression.op_abc == BinaryOperator::kWhere)
    return Convert<bool>(b) ? a : c;
  if (expression.has_b) {
    a = ApplyBinary(arithmetic, expression.op_ab, a, b);
  }
  return ApplyBinary(arithmetic, expression.op_abc, a, c);
}

}  // namespace tensord::core::cuda
