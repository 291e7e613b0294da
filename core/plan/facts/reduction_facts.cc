// What there is to know of reductions.
#include <algorithm>
#include <cmath>

#include "core/ops/type_tables.h"
#include "core/plan/facts/fact_parts.h"
#include "core/plan/facts/problem_facts.h"

namespace tensord::core {
namespace {

/// Of d: those of kept, along the mode where there is one.
int64_t ResultCount(const ReductionProblem& p) {
  return ElementCount(p.kept) * std::max<int64_t>(p.along.extent, 1);
}

absl::string_view NameOf(Sorting sorting) {
  switch (sorting) {
    case Sorting::kAscending: return "ascending indices";
    case Sorting::kDescending: return "descending indices";
    case Sorting::kNone: break;
  }
  return "";
}

absl::Status CheckAlong(const ReductionProblem& p) {
  TENSORD_RETURN_IF_ERROR(
      CheckNumbers(LoopModes<3>{p.along}, "along").status());
  if (!p.is_along()) {
    const bool may_sort = ElementCount(p.kept) == 0;
    TENSORD_RETURN_IF_ERROR(
        CheckThat(p.along == LoopMode<3>{} && (!p.sorts() || may_sort),
                  "nothing along no mode"));
  }
  const bool goes_along = p.is_along() || p.sorts();
  TENSORD_RETURN_IF_ERROR(CheckThat(!goes_along || p.reduced.empty(),
                                    "nothing reduced along a mode"));
  if (!p.sorts()) return CheckThat(p.along.extent != 1, "a longer mode");
  TENSORD_RETURN_IF_ERROR(CheckThat(
      p.op == BinaryOperator::kAdd && p.unary_a == UnaryOperator::kIdentity,
      "no operators where it sorts"));
  return ValidateSortingTypes({p.type_a, p.type_d, p.compute_type});
}

}  // namespace

template <>
bool Facts<ReductionProblem>::IsEmpty(const ReductionProblem& p) {
  return ElementCount(p.kept) == 0;
}

template <>
double Facts<ReductionProblem>::FlopCount(const ReductionProblem& p) {
  const double per_element = (IsComplex(p.type_a) ? 2 : 1) +
                             (p.unary_a == UnaryOperator::kIdentity ? 0 : 1);
  const double elements = static_cast<double>(ResultCount(p));
  if (p.sorts()) {
    return elements * std::ceil(std::log2(static_cast<double>(p.along.extent)));
  }
  return per_element * elements * Count(p.reduced);
}

template <>
int64_t Facts<ReductionProblem>::MovedBytes(const ReductionProblem& p) {
  const int64_t results = ResultCount(p);
  return SaturatingAdd(results * ElementCount(p.reduced) * SizeOf(p.type_a),
                       results * SizeOf(p.type_d));
}

template <>
std::string Facts<ReductionProblem>::Summarize(const ReductionProblem& p) {
  std::string text =
      absl::StrCat("reduction ", NameOf(p.type_a), " -> ", NameOf(p.type_d),
                   " in ", NameOf(p.compute_type), ", ",
                   p.sorts() ? NameOf(p.sorting) : NameOf(p.op), ":");
  AppendLoops(&text, "kept", p.kept);
  AppendLoops(&text, "reduced", p.reduced);
  if (p.is_along()) AppendLoops(&text, "along", LoopModes<3>{p.along});
  return text;
}

template <>
absl::Status Facts<ReductionProblem>::Check(const ReductionProblem& p) {
  using P = ReductionProblem;
  TENSORD_RETURN_IF_ERROR(CheckAlong(p));
  if (!p.sorts()) {
    TENSORD_RETURN_IF_ERROR(
        ValidateReductionTypes({p.type_a, p.type_d, p.compute_type}));
  }
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
  if (p.is_along()) {
    const LoopModes<3> along = {p.along};
    AppendLayout(along, P::kA, false, a);
    AppendLayout(along, P::kC, false, c);
    AppendLayout(along, P::kD, false, d);
  }
  TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type_a, "a"));
  TENSORD_RETURN_IF_ERROR(CheckInput(c, p.type_d, "c"));
  return CheckOutput(d, p.type_d);
}

}  // namespace tensord::core
