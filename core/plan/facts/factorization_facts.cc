// What there is to know of factorizations.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

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
  return p.sampled > 0 ? SampledFlopCount(p) : core::FlopCount(p);
}

template <>
int64_t Facts<P>::MovedBytes(const P& p) {
  const double rows = Count(p.rows), columns = Count(p.columns);
  const auto inner = static_cast<double>(p.inner_extent);
  double elements = rows * columns + rows * inner;
  if (!PairsRows(p.method)) elements += columns * inner;
  if (p.has_values) elements += inner;
  const double bytes =
      elements * Count(p.batch) * static_cast<double>(SizeOf(p.type));
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  return bytes < static_cast<double>(kMost) ? static_cast<int64_t>(bytes)
                                            : kMost;
}

template <>
std::string Facts<P>::Summarize(const P& p) {
  std::string text = absl::StrCat("factorization ", NameOf(p.method), " ",
                                  NameOf(p.type), ":");
  AppendLoops(&text, "batch", p.batch);
  AppendLoops(&text, "rows", p.rows);
  AppendLoops(&text, "columns", p.columns);
  absl::StrAppend(&text, " inner ", p.inner_extent, ":(", p.inner_stride_left,
                  ",", p.inner_stride_right);
  if (p.has_values) absl::StrAppend(&text, ",", p.inner_stride_values);
  absl::StrAppend(&text, ")");
  if (p.sampled > 0) {
    absl::StrAppend(&text, " of ", p.sampled, " random columns, ",
                    p.power_iterations, " power iterations");
  }
  return text;
}

namespace {

absl::Status CheckInner(const P& p, int64_t rows, int64_t columns) {
  const int64_t most = std::min(rows, columns);
  const bool may_be_less = p.method == FactorizationMethod::kSvd;
  TENSORD_RETURN_IF_ERROR(CheckThat(
      p.inner_extent == most ||
          (may_be_less && p.inner_extent > 0 && p.inner_extent < most),
      "the shorter side's extent of the inner mode, or less in an SVD"));
  TENSORD_RETURN_IF_ERROR(CheckThat(!PairsRows(p.method) || rows == columns,
                                    "as many rows as columns"));
  TENSORD_RETURN_IF_ERROR(CheckThat(
      p.sampled == 0
          ? p.power_iterations == 0
          : may_be_less && p.sampled >= p.inner_extent && p.sampled < most &&
                p.power_iterations >= 0 && p.power_iterations <= 100,
      "a sample of fewer columns than the matrix has, in an SVD"));
  return CheckThat(p.inner_stride_left >= 0 && p.inner_stride_right >= 0 &&
                       p.inner_stride_values >= 0,
                   "strides of 0 and more");
}

/// What a method lacks has no strides.
absl::Status CheckLacking(const P& p) {
  const auto lacks = [&](size_t in_batch, int64_t inner_stride) {
    return inner_stride == 0 &&
           std::ranges::all_of(p.batch, [&](const auto& mode) {
             return mode.strides[in_batch] == 0;
           });
  };
  const bool has_right = !PairsRows(p.method);
  const bool may_have_values = p.method == FactorizationMethod::kSvd ||
                               p.method == FactorizationMethod::kEigh;
  const bool must_have_values = p.method == FactorizationMethod::kEigh;
  TENSORD_RETURN_IF_ERROR(
      CheckThat(p.has_values ? may_have_values : !must_have_values,
                "values where the method has them"));
  TENSORD_RETURN_IF_ERROR(CheckThat(
      has_right || (lacks(P::kBatchRight, p.inner_stride_right) &&
                    std::ranges::all_of(p.columns,
                                        [](const auto& mode) {
                                          return mode.strides[P::kFactor] == 0;
                                        })),
      "no strides of a factor that the method lacks"));
  return CheckThat(
      p.has_values || lacks(P::kBatchValues, p.inner_stride_values),
      "no strides of values that there are not");
}

/// Of one result of the batch, its own modes and the inner mode.
absl::Status CheckFactor(const P& p, size_t in_batch, const LoopModes<2>& own,
                         int64_t inner_stride, ElementType type) {
  const LoopModes<2> inner = {{p.inner_extent, {inner_stride, 0}}};
  Layout layout;
  AppendLayout(p.batch, in_batch, false, layout);
  AppendLayout(own, P::kFactor, false, layout);
  AppendLayout(inner, 0, false, layout);
  return CheckOutput(layout, type);
}

}  // namespace

template <>
absl::Status Facts<P>::Check(const P& p) {
  const bool is_floating = p.type == ElementType::kFloat32 ||
                           p.type == ElementType::kFloat64 || IsComplex(p.type);
  TENSORD_RETURN_IF_ERROR(
      CheckThat(is_floating, "a type that can be factorized"));
  TENSORD_RETURN_IF_ERROR(CheckThat(p.method != FactorizationMethod::kLq,
                                    "QR of the transposed matrix for LQ"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.batch, P::kBatchA, "batch"));
  TENSORD_ASSIGN_OR_RETURN(const int64_t rows, CheckNumbers(p.rows, "rows"));
  TENSORD_ASSIGN_OR_RETURN(const int64_t columns,
                           CheckNumbers(p.columns, "columns"));
  if (PairsRows(p.method)) {
    TENSORD_RETURN_IF_ERROR(CheckThat(p.rows == MergedInOrder(p.rows),
                                      "rows merged where they can be"));
  } else {
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.rows, P::kA, "rows"));
  }
  TENSORD_RETURN_IF_ERROR(CheckThat(p.columns == MergedInOrder(p.columns),
                                    "columns merged where they can be"));
  TENSORD_RETURN_IF_ERROR(CheckInner(p, rows, columns));
  TENSORD_RETURN_IF_ERROR(CheckLacking(p));
  Layout a;
  AppendLayout(p.batch, P::kBatchA, false, a);
  AppendLayout(p.rows, P::kA, false, a);
  AppendLayout(p.columns, P::kA, false, a);
  TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type, "a"));
  TENSORD_RETURN_IF_ERROR(
      CheckFactor(p, P::kBatchLeft, p.rows, p.inner_stride_left, p.type));
  if (!PairsRows(p.method)) {
    TENSORD_RETURN_IF_ERROR(CheckFactor(p, P::kBatchRight, p.columns,
                                        p.inner_stride_right, p.type));
  }
  if (!p.has_values) return absl::OkStatus();
  return CheckFactor(p, P::kBatchValues, {}, p.inner_stride_values,
                     RealPartOf(p.type));
}

}  // namespace tensord::core
