// What there is to know of element-wise operations.
#include "core/ops/type_tables.h"
#include "core/plan/facts/fact_parts.h"
#include "core/plan/facts/problem_facts.h"

namespace tensord::core {
namespace {

/// Elements of a that TAKE reads, the same one each time that it is at another
/// index.
int64_t TakenCount(const ElementwiseProblem& p) {
  int64_t count = 1;
  for (const auto& mode : p.modes) {
    const bool is_read_along = mode.strides[ElementwiseProblem::kA] != 0 ||
                               mode.strides[ElementwiseProblem::kB] != 0;
    if (is_read_along || mode.extent == 0) count *= mode.extent;
  }
  return count;
}

}  // namespace

template <>
bool Facts<ElementwiseProblem>::IsEmpty(const ElementwiseProblem& p) {
  return ElementCount(p.modes) == 0;
}

template <>
double Facts<ElementwiseProblem>::FlopCount(const ElementwiseProblem& p) {
  double per_element = p.is_take() ? 0 : p.has_b ? 2 : 1;
  for (const UnaryOperator op : p.unary) {
    per_element += op == UnaryOperator::kIdentity ? 0 : 1;
  }
  if (IsComplex(p.types[ElementwiseProblem::kC])) per_element *= 2;
  return per_element * Count(p.modes);
}

template <>
int64_t Facts<ElementwiseProblem>::MovedBytes(const ElementwiseProblem& p) {
  int64_t bytes = 0;
  for (size_t i = 0; i < p.types.size(); ++i) {
    if (i == ElementwiseProblem::kB && !p.has_b) continue;
    if (i == ElementwiseProblem::kC && p.is_take()) continue;  // seldom read
    const int64_t count = p.is_take() && i == ElementwiseProblem::kA
                              ? TakenCount(p)
                              : Visited(p.modes, i);
    bytes = SaturatingAdd(bytes, count * SizeOf(p.types[i]));
  }
  return bytes;
}

template <>
std::string Facts<ElementwiseProblem>::Summarize(const ElementwiseProblem& p) {
  std::string text = absl::StrCat(
      p.has_b ? "trinary " : "binary ", NameOf(p.types[ElementwiseProblem::kA]),
      " -> ", NameOf(p.types[ElementwiseProblem::kD]), " in ",
      NameOf(p.compute_type), ", ",
      IsTernary(p.op_abc) ? ""
                          : absl::StrCat(std::string(NameOf(p.op_ab)), ", "),
      NameOf(p.op_abc), ":");
  AppendLoops(&text, "modes", p.modes);
  if (p.is_take()) {
    absl::StrAppend(&text, " taken ", p.taken.extent, ":(", p.taken.strides[0],
                    ")");
  }
  return text;
}

template <>
absl::Status Facts<ElementwiseProblem>::Check(const ElementwiseProblem& p) {
  using P = ElementwiseProblem;
  const bool is_ternary = IsTernary(p.op_abc);
  const ElementType type_b = p.types[P::kB];
  TENSORD_RETURN_IF_ERROR(ValidateElementwiseTypes(
      {p.types[P::kA], is_ternary ? p.types[P::kA] : type_b, p.types[P::kC],
       p.compute_type}));
  const ElementType type_d =
      IsComparison(p.op_abc) ? ElementType::kBool : p.types[P::kC];
  TENSORD_RETURN_IF_ERROR(
      CheckThat(p.types[P::kD] == type_d, "d of c's type, or bool"));
  TENSORD_RETURN_IF_ERROR(CheckThat(
      !is_ternary ||
          (p.has_b && p.op_ab == BinaryOperator::kAdd &&
           (p.is_take() ? IsIndex(type_b) : type_b == ElementType::kBool)),
      "a condition of bool, or integers to index with"));
  TENSORD_RETURN_IF_ERROR(
      CheckThat(!IsComparison(p.op_ab) && !IsTernary(p.op_ab),
                "comparisons, WHERE and TAKE as op_abc only"));
  TENSORD_RETURN_IF_ERROR(CheckThat(p.is_take() || p.taken == LoopMode<1>{},
                                    "a mode that is taken from by TAKE only"));
  TENSORD_RETURN_IF_ERROR(
      CheckNumbers(LoopModes<1>{p.taken}, "what is taken from").status());
  constexpr absl::string_view kNames[] = {"a", "b", "c"};
  for (size_t i = 0; i < p.unary.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary[i], p.types[i], kNames[i]));
  }
  TENSORD_RETURN_IF_ERROR(ValidateBinary(p.op_ab, p.types[P::kA]));
  TENSORD_RETURN_IF_ERROR(ValidateBinary(p.op_abc, p.types[P::kC]));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.modes, P::kD, "modes"));
  Layout d;
  for (size_t i = 0; i < p.unary.size(); ++i) {
    Layout input;
    AppendLayout(p.modes, i, true, input);
    if (i == P::kA && p.is_take()) {
      AppendLayout(LoopModes<1>{p.taken}, 0, true, input);
    }
    TENSORD_RETURN_IF_ERROR(CheckInput(input, p.types[i], kNames[i]));
    if (i == P::kB && !p.has_b) {
      TENSORD_RETURN_IF_ERROR(
          CheckThat(input.extents.empty() && p.types[P::kB] == p.types[P::kA] &&
                        p.unary[P::kB] == UnaryOperator::kIdentity &&
                        p.op_ab == BinaryOperator::kAdd,
                    "nothing about b where there is none"));
    }
  }
  AppendLayout(p.modes, P::kD, false, d);
  return CheckOutput(d, p.types[P::kD]);
}

}  // namespace tensord::core
