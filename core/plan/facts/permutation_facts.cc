// What there is to know of permutations.
#include "core/ops/type_tables.h"
#include "core/plan/facts/fact_parts.h"
#include "core/plan/facts/problem_facts.h"

namespace tensord::core {

template <>
bool Facts<PermutationProblem>::IsEmpty(const PermutationProblem& p) {
  return ElementCount(p.modes) == 0;
}

template <>
double Facts<PermutationProblem>::FlopCount(const PermutationProblem& p) {
  return (p.unary == UnaryOperator::kIdentity ? 0.0 : 1.0) * Count(p.modes);
}

template <>
int64_t Facts<PermutationProblem>::MovedBytes(const PermutationProblem& p) {
  return SaturatingAdd(
      Visited(p.modes, PermutationProblem::kA) * SizeOf(p.type_a),
      ElementCount(p.modes) * SizeOf(p.type_d));
}

template <>
std::string Facts<PermutationProblem>::Summarize(const PermutationProblem& p) {
  std::string text =
      absl::StrCat("permutation ", NameOf(p.type_a), " -> ", NameOf(p.type_d),
                   " in ", NameOf(p.compute_type), ", ", NameOf(p.unary), ":");
  AppendLoops(&text, "modes", p.modes);
  return text;
}

template <>
absl::Status Facts<PermutationProblem>::Check(const PermutationProblem& p) {
  using P = PermutationProblem;
  TENSORD_RETURN_IF_ERROR(
      ValidatePermutationTypes({p.type_a, p.type_d, p.compute_type}));
  TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary, p.type_a, "a"));
  TENSORD_RETURN_IF_ERROR(CheckThat(
      !IsComplex(p.type_a) || IsComplex(p.type_d) ||
          p.unary == UnaryOperator::kReal || p.unary == UnaryOperator::kImag ||
          p.unary == UnaryOperator::kAbs,
      "an operator that makes real numbers of complex ones"));
  TENSORD_RETURN_IF_ERROR(ValidateUnary(p.unary, p.type_d, "a"));
  TENSORD_RETURN_IF_ERROR(
      CheckAlignment(p.alignment_bytes, p.is_move ? P::kWidestAccess : 1));
  TENSORD_RETURN_IF_ERROR(CheckThat(
      !p.is_move ||
          (p.type_a == p.type_d && p.unary == UnaryOperator::kIdentity),
      "equal types and no operator where bits are moved"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.modes, P::kD, "modes"));
  Layout a, d;
  AppendLayout(p.modes, P::kA, true, a);
  AppendLayout(p.modes, P::kD, false, d);
  TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type_a, "a"));
  return CheckOutput(d, p.type_d);
}

}  // namespace tensord::core
