// What there is to know of factorizations.
#include "core/plan/facts/fact_parts.h"
#include "core/plan/facts/problem_facts.h"

namespace tensord::core {

using P = FactorizationProblem;

template <>
bool Facts<P>::IsEmpty(const P& p) {
  return ElementCount(p.batch) == 0 || p.inner_extent == 0;
}

template <>
double Facts<P>::FlopCount(const P& p) {
  return core::FlopCount(p);
}

template <>
int64_t Facts<P>::MovedBytes(const P& p) {
  const int64_t rows = ElementCount(p.rows), columns = ElementCount(p.columns);
  const int64_t factors =
      SaturatingAdd(rows * p.inner_extent, columns * p.inner_extent);
  return SaturatingAdd(rows * columns, factors) * ElementCount(p.batch) *
         SizeOf(p.type);
}

template <>
std::string Facts<P>::Summarize(const P& p) {
  std::string text = absl::StrCat("factorization ", NameOf(p.method), " ",
                                  NameOf(p.type), ":");
  AppendLoops(&text, "batch", p.batch);
  AppendLoops(&text, "rows", p.rows);
  AppendLoops(&text, "columns", p.columns);
  absl::StrAppend(&text, " inner ", p.inner_extent, ":(", p.inner_stride_q, ",",
                  p.inner_stride_r, ")");
  return text;
}

template <>
absl::Status Facts<P>::Check(const P& p) {
  const bool is_floating = p.type == ElementType::kFloat32 ||
                           p.type == ElementType::kFloat64 || IsComplex(p.type);
  TENSORD_RETURN_IF_ERROR(
      CheckThat(is_floating, "a type that can be factorized"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.batch, P::kBatchA, "batch"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.rows, P::kA, "rows"));
  TENSORD_RETURN_IF_ERROR(CheckNumbers(p.columns, "columns").status());
  TENSORD_RETURN_IF_ERROR(CheckThat(p.columns == MergedInOrder(p.columns),
                                    "columns merged where they can be"));
  TENSORD_ASSIGN_OR_RETURN(const int64_t rows, CheckNumbers(p.rows, "rows"));
  TENSORD_ASSIGN_OR_RETURN(const int64_t columns,
                           CheckNumbers(p.columns, "columns"));
  TENSORD_RETURN_IF_ERROR(
      CheckThat(p.inner_extent == std::min(rows, columns) &&
                    p.inner_stride_q >= 0 && p.inner_stride_r >= 0,
                "the shorter side's extent of the inner mode"));
  const LoopModes<2> inner = {
      {p.inner_extent, {p.inner_stride_q, p.inner_stride_r}}};
  Layout a, q, r;
  AppendLayout(p.batch, P::kBatchA, false, a);
  AppendLayout(p.rows, P::kA, false, a);
  AppendLayout(p.columns, P::kA, false, a);
  AppendLayout(p.batch, P::kBatchQ, false, q);
  AppendLayout(p.rows, P::kFactor, false, q);
  AppendLayout(inner, 0, false, q);
  AppendLayout(p.batch, P::kBatchR, false, r);
  AppendLayout(inner, 1, false, r);
  AppendLayout(p.columns, P::kFactor, false, r);
  TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type, "a"));
  TENSORD_RETURN_IF_ERROR(CheckOutput(q, p.type));
  return CheckOutput(r, p.type);
}

}  // namespace tensord::core
