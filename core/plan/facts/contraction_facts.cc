// What there is to know of contractions.
#include "core/ops/type_tables.h"
#include "core/plan/facts/fact_parts.h"
#include "core/plan/facts/problem_facts.h"

namespace tensord::core {

template <>
bool Facts<ContractionProblem>::IsEmpty(const ContractionProblem& p) {
  return ElementCount(p.batch) == 0 || ElementCount(p.m) == 0 ||
         ElementCount(p.n) == 0;
}

template <>
double Facts<ContractionProblem>::FlopCount(const ContractionProblem& p) {
  const bool a = IsComplex(p.type_a), b = IsComplex(p.type_b);
  const double per_term = a && b ? 8 : a || b ? 4 : 2;
  return per_term * Count(p.batch) * Count(p.m) * Count(p.n) * Count(p.k);
}

template <>
int64_t Facts<ContractionProblem>::MovedBytes(const ContractionProblem& p) {
  const int64_t batch = ElementCount(p.batch), m = ElementCount(p.m),
                n = ElementCount(p.n), k = ElementCount(p.k);
  const int64_t inputs =
      SaturatingAdd(batch * m * k * ElementCount(p.a_only) * SizeOf(p.type_a),
                    batch * k * n * ElementCount(p.b_only) * SizeOf(p.type_b));
  return SaturatingAdd(inputs, batch * m * n * SizeOf(p.type_d));
}

template <>
std::string Facts<ContractionProblem>::Summarize(const ContractionProblem& p) {
  std::string text = absl::StrCat("contraction ", NameOf(p.type_a), " ",
                                  NameOf(p.type_b), " -> ", NameOf(p.type_d),
                                  " in ", NameOf(p.compute_type), ":");
  AppendLoops(&text, "batch", p.batch);
  AppendLoops(&text, "m", p.m);
  AppendLoops(&text, "n", p.n);
  AppendLoops(&text, "k", p.k);
  AppendLoops(&text, "a_only", p.a_only);
  AppendLoops(&text, "b_only", p.b_only);
  return text;
}

template <>
absl::Status Facts<ContractionProblem>::Check(const ContractionProblem& p) {
  using P = ContractionProblem;
  TENSORD_RETURN_IF_ERROR(
      ValidateContractionTypes({p.type_a, p.type_b, p.type_d, p.compute_type}));
  TENSORD_RETURN_IF_ERROR(CheckThat((!p.conj_a || IsComplex(p.type_a)) &&
                                        (!p.conj_b || IsComplex(p.type_b)) &&
                                        (!p.conj_c || IsComplex(p.type_d)),
                                    "CONJ of complex types only"));
  TENSORD_RETURN_IF_ERROR(CheckAlignment(p.alignment_bytes, P::kWidestAccess));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.batch, P::kBatchD, "batch"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.m, P::kFreeD, "m"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.n, P::kFreeD, "n"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.k, P::kSumA, "k"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.a_only, 0, "a_only"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.b_only, 0, "b_only"));
  Layout a, b, c, d;
  AppendLayout(p.batch, P::kBatchA, false, a);
  AppendLayout(p.m, P::kFreeInput, false, a);
  AppendLayout(p.k, P::kSumA, false, a);
  AppendLayout(p.a_only, 0, false, a);
  AppendLayout(p.batch, P::kBatchB, false, b);
  AppendLayout(p.n, P::kFreeInput, false, b);
  AppendLayout(p.k, P::kSumB, false, b);
  AppendLayout(p.b_only, 0, false, b);
  AppendLayout(KeptModesOf(p), 2, false, c);
  AppendLayout(KeptModesOf(p), 3, false, d);
  TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type_a, "a"));
  TENSORD_RETURN_IF_ERROR(CheckInput(b, p.type_b, "b"));
  TENSORD_RETURN_IF_ERROR(CheckInput(c, p.type_d, "c"));
  return CheckOutput(d, p.type_d);
}

}  // namespace tensord::core
