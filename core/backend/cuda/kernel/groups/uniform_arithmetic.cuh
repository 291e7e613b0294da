// Element-wise expressions of operands of one type, some elements at a time.
//
// What varies between problems but not between elements - factors, operators,
// which inputs there are - is decided once for all of them: a branch that all
// threads take alike costs several elements what it would cost one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/groups/element_group.cuh"

namespace tensord::core::cuda {

/// What an expression may need beyond sums, products, extrema and factors. Code
/// for what it cannot need takes registers all the same.
struct Needs {
  bool unary = false;
  bool rounding = false;  // 16-bit floating-point numbers, after every step
  bool division = false;
};

/// How arithmetic on elements of type Stored runs.
template <typename Stored, Needs kNeeds>
struct UniformArithmetic {
  using T = ComputedIn<Stored>;

  static __device__ __forceinline__ T Settled(T x) {
    if constexpr (std::is_integral_v<Stored>) {
      return static_cast<T>(Convert<Stored>(x));
    } else if constexpr (kNeeds.rounding) {
      return ToFloat(HalfFrom<Stored>(x));
    } else {
      return x;
    }
  }

  static __device__ __forceinline__ T FactorOf(const double (&factor)[2]) {
    if constexpr (std::is_integral_v<Stored>) {
      return static_cast<T>(Convert<Stored>(static_cast<int64_t>(factor[0])));
    } else {
      return Settled(FactorAs<T>(Arithmetic{}, factor[0], factor[1]));
    }
  }

  template <BinaryOperator op, int count>
  static __device__ __forceinline__ void JoinAll(T (&x)[count],
                                                 const T (&y)[count]) {
#pragma unroll
    for (int e = 0; e < count; ++e) {
      x[e] = Joined<op>(x[e], y[e]);
      // Of MAX and MIN the result is one of the two.
      if constexpr (op != BinaryOperator::kMax && op != BinaryOperator::kMin) {
        x[e] = Settled(x[e]);
      }
    }
  }

  template <int count>
  static __device__ __forceinline__ void Apply(BinaryOperator op, T (&x)[count],
                                               const T (&y)[count]) {
    if (op == BinaryOperator::kAdd) {
      JoinAll<BinaryOperator::kAdd>(x, y);
    } else if (op == BinaryOperator::kMul) {
      JoinAll<BinaryOperator::kMul>(x, y);
    } else if (op == BinaryOperator::kDiv) {
      if constexpr (kNeeds.division && !std::is_integral_v<T>) {
        JoinAll<BinaryOperator::kDiv>(x, y);
      }
    } else if constexpr (!kIsComplex<T>) {  // refused by Validate()
      if (op == BinaryOperator::kMax) {
        JoinAll<BinaryOperator::kMax>(x, y);
      } else {
        JoinAll<BinaryOperator::kMin>(x, y);
      }
    }
  }
};

/// Elements of d. `read(i, term)` reads as many of input `i`.
template <typename Stored, Needs kNeeds, typename Read, int count>
__device__ __forceinline__ void Evaluate(const Expression& expression,
                                         Read&& read,
                                         ComputedIn<Stored> (&result)[count]) {
  using Uniform = UniformArithmetic<Stored, kNeeds>;
  using T = typename Uniform::T;
  const auto term = [&](int i, T(&x)[count]) {
    if (expression.inputs[i] == nullptr) {
#pragma unroll
      for (int e = 0; e < count; ++e) x[e] = T(0);
      return;
    }
    read(i, x);
    if constexpr (kNeeds.unary) {
      const Arithmetic arithmetic =
          ArithmeticOf(expression.types[3], expression.compute_type);
#pragma unroll
      for (int e = 0; e < count; ++e) {
        x[e] = ApplyUnary(arithmetic, expression.unary[i], x[e]);
      }
    }
    if (expression.is_scaled[i]) {
      const T factor = Uniform::FactorOf(expression.factors[i]);
#pragma unroll
      for (int e = 0; e < count; ++e) {
        x[e] = Uniform::Settled(Joined<BinaryOperator::kMul>(factor, x[e]));
      }
    }
  };
  T other[count];
  term(0, result);
  if (expression.has_b) {
    term(1, other);
    Uniform::Apply(expression.op_ab, result, other);
  }
  term(2, other);
  Uniform::Apply(expression.op_abc, result, other);
}

}  // namespace tensord::core::cuda
