// What there is to know of reductions.
#include "core/ops/type_tables.h"
#include "core/plan/facts/fact_parts.h"
#include "core/plan/facts/problem_facts.h"

namespace tensord::core {

template <>
bool Facts<ReductionProblem>::IsEmpty(const ReductionProblem& p) {
  return ElementCount(p.kept) == 0;
}

template <>
double Facts<ReductionProblem>::FlopCount(const ReductionProblem& p) {
  const double per_element = (IsComplex(p.type_a) ? 2 : 1) +
                             (p.unary_a == UnaryOperator::kIdentity ? 0 : 1);
  return per_element * Count(p.kept) * Count(p.reduced);
}

template <>
int64_t Facts<ReductionProblem>::MovedBytes(const ReductionProblem& p) {
  const int64_t kept = ElementCount(p.kept);
  return SaturatingAdd(kept * ElementCount(p.reduced) * SizeOf(p.type_a),
                       kept * SizeOf(p.type_d));
}

template <>
std::string Facts<ReductionProblem>::Summarize(const ReductionProblem& p) {
  std::string text =
      absl::StrCat("reduction ", NameOf(p.type_a), " -> ", NameOf(p.type_d),
                   " in ", NameOf(p.compute_type), ", ", NameOf(p.op), ":");
  AppendLoops(&text, "kept", p.kept);
  AppendLoops(&text, "reduced", p.reduced);
  return text;
}

template <>
absl::Status Facts<ReductionProblem>::Check(const ReductionProblem& p) {
  using P = ReductionProblem;
  TENSORD_RETURN_IF_ERROR(
      ValidateReductionTypes({p.type_a, p.type_d, p.compute_type}));
  TENSORD_RETURN_IF_ERROR(CheckThat(Reduces(p.op), "an operator that reduces"));
  TENSORD_RETURN_IF_ERROR(ValidateBinary(p.op, p.type_a));
  TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary_a, p.type_a, "a"));
  TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary_c, p.type_d, "c"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.kept, P::kD, "kept"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.reduced, 0, "reduced"));
  Layout a, c, d;
  AppendLayout(p.kept, P::kA, false, a);
  AppendLayout(p.reduced, 0, false, a);
  AppendLayout(p.kept, P::kC, false, c);
  AppendLayout(p.kept, P::kD, false, d);
  TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type_a, "a"));
  TENSORD_RETURN_IF_ERROR(CheckInput(c, p.type_d, "c"));
  return CheckOutput(d, p.type_d);
}

}  // namespace tensord::core
