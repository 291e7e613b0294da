#include "core/backend/cuda/contraction/contraction_formula.h"

#include <utility>

namespace tensord::core::cuda {

ContractionFormula FormulaOf(const ContractionProblem& problem,
                             const ContractionOperands& operands, bool swaps) {
  const bool multiplies = !operands.alpha.IsZero();
  ContractionFormula formula{
      .a = multiplies ? operands.a : nullptr,
      .b = multiplies ? operands.b : nullptr,
      .c = operands.beta.IsZero() ? nullptr : operands.c,
      .d = operands.d,
      .type_a = problem.type_a,
      .type_b = problem.type_b,
      .type_d = problem.type_d,
      .rounding_a = RoundingOf(problem.type_a, problem.compute_type),
      .rounding_b = RoundingOf(problem.type_b, problem.compute_type),
      .conj_a = problem.conj_a,
      .conj_b = problem.conj_b,
      .conj_c = problem.conj_c,
      .alpha = {operands.alpha.real, operands.alpha.imaginary},
      .beta = {operands.beta.real, operands.beta.imaginary}};
  if (swaps) {
    std::swap(formula.a, formula.b);
    std::swap(formula.type_a, formula.type_b);
    std::swap(formula.rounding_a, formula.rounding_b);
    std::swap(formula.conj_a, formula.conj_b);
  }
  return formula;
}

}  // namespace tensord::core::cuda
