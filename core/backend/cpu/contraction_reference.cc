#include "core/backend/cpu/contraction_reference.h"

#include <complex>

#include "core/backend/cpu/block/contraction_arithmetic.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/reference_solution.h"

namespace tensord::core {
namespace {

constexpr double kNanosecondsPerProduct = 2.0;
constexpr double kNanosecondsPerElement = 15.0;
constexpr double kNanosecondsPerLaunch = 100.0;

/// The type that sums of T run in. A sum of bool is an or, which does not wrap.
template <typename T>
struct SumType {
  using Type = double;
};
template <typename Real>
struct SumType<std::complex<Real>> {
  using Type = std::complex<double>;
};
template <typename T>
requires std::is_integral_v<T>
struct SumType<T> {
  using Type = WrappingType<T>;
};
template <>
struct SumType<bool> {
  using Type = bool;
};

template <typename Sum>
void Accumulate(Sum& sum, Sum term) {
  sum = ApplyBinary(BinaryOperator::kAdd, sum, term);
}

template <OperandRounding rounding, typename Real>
Real Rounded(Real value) {
  if constexpr (rounding == OperandRounding::kTf32) {
    return RoundToTf32(value);
  } else if constexpr (rounding == OperandRounding::kFloat16) {
    return Half::From(value).ToFloat();
  } else if constexpr (rounding == OperandRounding::kBfloat16) {
    return Bfloat16::From(value).ToFloat();
  } else if constexpr (rounding == OperandRounding::kFloat32) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

/// An operand's element, rounded, as a term of sums.
template <typename Sum, OperandRounding rounding, typename T>
Sum Widened(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Sum>(x);
  } else if constexpr (kIsComplex<T>) {
    return Sum(Rounded<rounding>(x.real()), Rounded<rounding>(x.imag()));
  } else {
    return ConvertElement<Sum>(Rounded<rounding>(x));
  }
}

template <typename D, typename Sum>
D Narrowed(Sum x) {
  if constexpr (std::is_integral_v<D>) {
    return static_cast<D>(x);
  } else {
    return ConvertElement<D>(x);
  }
}

/// The sum of `x` over modes that it alone has.
template <typename Sum, OperandRounding rounding, typename T>
Sum SumOver(const LoopModes<1>& modes, const T* x, bool conjugate) {
  Sum sum = 0;
  if (modes.empty()) {
    sum = Widened<Sum, rounding>(*x);
  } else {
    ForEachElement(modes, [&](const auto& offsets) {
      Accumulate(sum, Widened<Sum, rounding>(x[offsets[0]]));
    });
  }
  return ConjugatedIf(conjugate, sum);
}

template <OperandRounding rounding, typename A, typename B, typename D>
void Contract(const ContractionProblem& p,
              const ContractionOperands& operands) {
  using P = ContractionProblem;
  using Sum = typename SumType<D>::Type;
  const A* const a = static_cast<const A*>(operands.a);
  const B* const b = static_cast<const B*>(operands.b);
  const D* const c = static_cast<const D*>(operands.c);
  D* const d = static_cast<D*>(operands.d);
  const Sum alpha = FactorAs<Sum>(operands.alpha);
  const Sum beta = FactorAs<Sum>(operands.beta);
  const bool reads_inputs = !operands.alpha.IsZero();
  const bool reads_c = !operands.beta.IsZero();

  const auto sum_of_products = [&](const A* a, const B* b) {
    Sum sum = 0;
    ForEachElement(p.k, [&](const auto& k) {
      Accumulate(
          sum,
          Multiply<Sum>(
              SumOver<Sum, rounding>(p.a_only, a + k[P::kSumA], p.conj_a),
              SumOver<Sum, rounding>(p.b_only, b + k[P::kSumB], p.conj_b)));
    });
    return sum;
  };

  ForEachElement(p.batch, [&](const auto& batch) {
    ForEachElement(p.n, [&](const auto& n) {
      ForEachElement(p.m, [&](const auto& m) {
        Sum value = 0;
        if (reads_inputs) {
          value = Multiply<Sum>(
              alpha, sum_of_products(a + batch[P::kBatchA] + m[P::kFreeInput],
                                     b + batch[P::kBatchB] + n[P::kFreeInput]));
        }
        if (reads_c) {
          const Sum addend = Widened<Sum, OperandRounding::kNone>(
              c[batch[P::kBatchC] + m[P::kFreeC] + n[P::kFreeC]]);
          Accumulate(value,
                     Multiply<Sum>(beta, ConjugatedIf(p.conj_c, addend)));
        }
        d[batch[P::kBatchD] + m[P::kFreeD] + n[P::kFreeD]] = Narrowed<D>(value);
      });
    });
  });
}

template <typename T>
void ContractEqualTypes(const ContractionProblem& problem,
                        const ContractionOperands& operands) {
  const OperandRounding rounding =
      RoundingOf(problem.type_a, problem.compute_type);
  using enum OperandRounding;
  if constexpr (std::is_same_v<T, float> ||
                std::is_same_v<T, std::complex<float>>) {
    if (rounding == kTf32) return Contract<kTf32, T, T, T>(problem, operands);
    if (rounding == kFloat16) {
      return Contract<kFloat16, T, T, T>(problem, operands);
    }
    if (rounding == kBfloat16) {
      return Contract<kBfloat16, T, T, T>(problem, operands);
    }
  }
  if constexpr (std::is_same_v<T, double> ||
                std::is_same_v<T, std::complex<double>>) {
    if (rounding == kFloat32) {
      return Contract<kFloat32, T, T, T>(problem, operands);
    }
  }
  Contract<kNone, T, T, T>(problem, operands);
}

double PredictNanoseconds(const ContractionProblem& p) {
  const double elements = static_cast<double>(ElementCount(p.batch)) *
                          static_cast<double>(ElementCount(p.m)) *
                          static_cast<double>(ElementCount(p.n));
  const double products = elements * static_cast<double>(ElementCount(p.k));
  const double sums =
      (p.a_only.empty() ? 0 : static_cast<double>(ElementCount(p.a_only))) +
      (p.b_only.empty() ? 0 : static_cast<double>(ElementCount(p.b_only)));
  return kNanosecondsPerLaunch + kNanosecondsPerElement * elements +
         kNanosecondsPerProduct * products * (1 + sums);
}

absl::Status ContractAny(const ContractionProblem& problem,
                         const ContractionOperands& operands, Stream&) {
  using Complex = std::complex<double>;
  constexpr auto kNone = OperandRounding::kNone;
  if (problem.type_a == problem.type_b) {
    VisitElementType(problem.type_d, [&]<typename T>(T) {
      ContractEqualTypes<T>(problem, operands);
    });
  } else if (problem.type_a == ElementType::kFloat64) {
    Contract<kNone, double, Complex, Complex>(problem, operands);
  } else {
    Contract<kNone, Complex, double, Complex>(problem, operands);
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<const ContractionKernel> CreateReferenceContraction() {
  return std::make_unique<SimpleContraction>(
      "cpu.contract.reference", [](const ContractionProblem& problem) {
        return SolveByReference<ContractionOperands>(
            PredictNanoseconds(problem), problem, ContractAny);
      });
}

}  // namespace tensord::core
