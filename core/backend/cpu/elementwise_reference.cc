#include "core/backend/cpu/elementwise_reference.h"

#include "absl/strings/string_view.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/reference_solution.h"

namespace tensord::core {
namespace {

using Problem = ElementwiseProblem;

constexpr double kNanosecondsPerElement = 30;

/// Reads one operand's elements as terms of the expression.
template <typename T>
struct Term {
  const void* data;
  ElementType type;
  UnaryOperator unary;
  Scalar factor;
  ComputeType compute;

  T At(int64_t offset) const {
    if (factor.IsZero()) return T(0);
    T x = VisitElementType(type, [&](auto zero) {
      using Stored = decltype(zero);
      if constexpr (kConverts<T, Stored>) {
        return ConvertElement<T>(static_cast<const Stored*>(data)[offset]);
      } else {
        return T(0);
      }
    });
    x = RoundTo(compute, ApplyUnary(unary, x));
    if (factor.IsOne()) return x;
    return RoundTo(compute, Multiply(RoundTo(compute, FactorAs<T>(factor)), x));
  }
};

template <typename T>
void Combine(const Problem& problem, const ElementwiseOperands& operands) {
  const auto compute = problem.compute_type;
  const Term<T> a{operands.a, problem.types[Problem::kA],
                  problem.unary[Problem::kA], operands.alpha, compute};
  const Term<T> b{operands.b, problem.types[Problem::kB],
                  problem.unary[Problem::kB], operands.beta, compute};
  const Term<T> c{operands.c, problem.types[Problem::kC],
                  problem.unary[Problem::kC], operands.gamma, compute};
  ForEachElement(problem.modes, [&](const auto& at) {
    T x = a.At(at[Problem::kA]);
    const T y = problem.has_b ? b.At(at[Problem::kB]) : T(0);
    const T z = c.At(at[Problem::kC]);
    if (problem.op_abc == BinaryOperator::kWhere) {
      x = y != T(0) ? x : z;
    } else {
      if (problem.has_b) {
        x = RoundTo(compute, ApplyBinary(problem.op_ab, x, y));
      }
      x = RoundTo(compute, ApplyBinary(problem.op_abc, x, z));
    }
    VisitElementType(problem.types[Problem::kD], [&](auto zero) {
      using Stored = decltype(zero);
      if constexpr (kConverts<Stored, T>) {
        static_cast<Stored*>(operands.d)[at[Problem::kD]] =
            ConvertElement<Stored>(x);
      }
    });
  });
}

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateReferenceElementwise() {
  return std::make_unique<SimpleElementwise>(
      "cpu.elementwise.reference", [](const Problem& problem) {
        return SolveByReference<ElementwiseOperands>(
            kNanosecondsPerElement *
                static_cast<double>(ElementCount(problem.modes)),
            problem,
            [](const Problem& p, const ElementwiseOperands& operands, Stream&) {
              VisitComputeElement(p.compute_element(), [&](auto zero) {
                Combine<decltype(zero)>(p, operands);
              });
              return absl::OkStatus();
            });
      });
}

}  // namespace tensord::core
