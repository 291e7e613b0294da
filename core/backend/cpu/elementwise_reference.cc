#include "core/backend/cpu/elementwise_reference.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/reference_solution.h"
#include "core/problem/taking.h"

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

/// d = x, an element.
template <typename T>
void Store(const Problem& problem, const ElementwiseOperands& operands,
           int64_t offset, T x) {
  VisitElementType(problem.types[Problem::kD], [&](auto zero) {
    using Stored = decltype(zero);
    if constexpr (kConverts<Stored, T>) {
      static_cast<Stored*>(operands.d)[offset] = ConvertElement<Stored>(x);
    }
  });
}

template <typename T>
Term<T> TermOf(const Problem& problem, size_t operand, const void* data,
               Scalar factor) {
  return {data, problem.types[operand], problem.unary[operand], factor,
          problem.compute_type};
}

template <typename T>
absl::Status Take(const Problem& problem, const ElementwiseOperands& operands) {
  const auto a = TermOf<T>(problem, Problem::kA, operands.a, operands.alpha);
  const auto c = TermOf<T>(problem, Problem::kC, operands.c, operands.gamma);
  auto b = TermOf<int64_t>(problem, Problem::kB, operands.b, operands.beta);
  b.compute = ComputeType::kInteger;
  std::optional<std::pair<int64_t, int64_t>> refused;
  ForEachElement(problem.modes, [&](const auto& at) {
    const int64_t given = b.At(at[Problem::kB]);
    int64_t index = given;
    const bool is_there = FindIndex(problem.taken, index);
    Store(problem, operands, at[Problem::kD],
          is_there ? a.At(at[Problem::kA] + index * problem.taken.strides[0])
                   : c.At(at[Problem::kC]));
    if (is_there || !operands.gamma.IsZero()) return;
    const auto [lowest, highest] = refused.value_or(std::pair(given, given));
    refused = {std::min(lowest, given), std::max(highest, given)};
  });
  if (!refused) return absl::OkStatus();
  return IndexOutOfRange(problem.taken, refused->first, refused->second);
}

template <typename T>
void Combine(const Problem& problem, const ElementwiseOperands& operands) {
  const auto compute = problem.compute_type;
  const auto a = TermOf<T>(problem, Problem::kA, operands.a, operands.alpha);
  const auto b = TermOf<T>(problem, Problem::kB, operands.b, operands.beta);
  const auto c = TermOf<T>(problem, Problem::kC, operands.c, operands.gamma);
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
    Store(problem, operands, at[Problem::kD], x);
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
              return VisitComputeElement(p.compute_element(), [&](auto zero) {
                using T = decltype(zero);
                if (p.is_take()) return Take<T>(p, operands);
                Combine<T>(p, operands);
                return absl::OkStatus();
              });
            });
      });
}

}  // namespace tensord::core
