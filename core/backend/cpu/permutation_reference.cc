#include "core/backend/cpu/permutation_reference.h"

#include "absl/strings/string_view.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/reference_solution.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

constexpr double kNanosecondsPerElement = 10;

template <typename Body>
void VisitTypes(const PermutationProblem& problem, Body body) {
  VisitElementType(problem.type_a, [&](auto a) {
    using A = decltype(a);
    VisitElementType(problem.type_d, [&](auto d) {
      if constexpr (kConverts<decltype(d), A>) body(A{}, d);
    });
  });
}

template <typename A, typename D>
void Permute(const PermutationProblem& problem,
             const PermutationOperands& operands) {
  const A* const a = static_cast<const A*>(operands.a);
  D* const d = static_cast<D*>(operands.d);
  const ComputeType compute = problem.compute_type;
  const bool moves = std::is_same_v<A, D> && operands.alpha.IsOne() &&
                     problem.unary == UnaryOperator::kIdentity;
  VisitComputeElement(
      ComputeElement(problem.type_a, problem.type_d, compute), [&](auto zero) {
        using T = decltype(zero);
        if constexpr (kConverts<T, A> && kConverts<D, T>) {
          const T alpha = RoundTo(compute, FactorAs<T>(operands.alpha));
          ForEachElement(problem.modes, [&](const auto& at) {
            D& to = d[at[PermutationProblem::kD]];
            if (operands.alpha.IsZero()) {
              to = ConvertElement<D>(zero);
              return;
            }
            const A from = a[at[PermutationProblem::kA]];
            if (moves) {
              if constexpr (std::is_same_v<A, D>) to = from;
              return;
            }
            T x = ConvertElement<T>(from);
            x = RoundTo(compute, ApplyUnary(problem.unary, x));
            if (!operands.alpha.IsOne())
              x = RoundTo(compute, Multiply(alpha, x));
            to = ConvertElement<D>(x);
          });
        }
      });
}

PermutationKernel::Solved Solve(const PermutationProblem& problem) {
  bool supported = false;
  VisitTypes(problem, [&](auto, auto) { supported = true; });
  if (!supported) {
    return Unimplemented("CONVERSION_NOT_SUPPORTED", "conversion from ",
                         NameOf(problem.type_a), " in a to ",
                         NameOf(problem.type_d), " in d is not supported");
  }
  return SolveByReference<PermutationOperands>(
      kNanosecondsPerElement * static_cast<double>(ElementCount(problem.modes)),
      problem,
      [](const PermutationProblem& p, const PermutationOperands& operands,
         Stream&) {
        VisitTypes(p, [&](auto a, auto d) {
          Permute<decltype(a), decltype(d)>(p, operands);
        });
        return absl::OkStatus();
      });
}

}  // namespace

std::unique_ptr<const PermutationKernel> CreateReferencePermutation() {
  return std::make_unique<SimplePermutation>("cpu.permute.reference", Solve);
}

}  // namespace tensord::core
