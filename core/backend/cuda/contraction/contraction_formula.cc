#include "core/backend/cuda/contraction/contraction_formula.h"

#include <utility>

namespace tensord::core::cuda {

ContractionFormula FormulaOf(const ContractionProblem& problem, bool swaps) {
  ContractionFormula formula{
      .type_a = problem.type_a,
      .type_b = problem.type_b,
      .type_d = problem.type_d,
      .rounding_a = RoundingOf(problem.type_a, problem.compute_type),
      .rounding_b = RoundingOf(problem.type_b, problem.compute_type),
      .conj_a = problem.conj_a,
      .conj_b = problem.conj_b,
      .conj_c = problem.conj_c};
  if (swaps) {
    std::swap(formula.type_a, formula.type_b);
    std::swap(formula.rounding_a, formula.rounding_b);
    std::swap(formula.conj_a, formula.conj_b);
  }
  return formula;
}

ContractionFormula WithOperands(ContractionFormula formula,
                                const ContractionOperands& operands,
                                bool swaps) {
  if (!operands.alpha.IsZero()) {
    formula.a = swaps ? operands.b : operands.a;
    formula.b = swaps ? operands.a : operands.b;
  }
  formula.c = operands.beta.IsZero() ? nullptr : operands.c;
  formula.d = operands.d;
  formula.alpha[0] = operands.alpha.real;
  formula.alpha[1] = operands.alpha.imaginary;
  formula.beta[0] = operands.beta.real;
  formula.beta[1] = operands.beta.imaginary;
  return formula;
}

}  // namespace tensord::core::cuda
