// What there is to know of linear equations.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/plan/facts/fact_parts.h"
#include "core/plan/facts/problem_facts.h"

namespace tensord::core {

template <>
bool Facts<LinearSolveProblem>::IsEmpty(const LinearSolveProblem& p) {
  return ElementCount(p.batch) == 0 || ElementCount(p.columns) == 0 ||
         ElementCount(p.sides) == 0;
}

template <>
double Facts<LinearSolveProblem>::FlopCount(const LinearSolveProblem& p) {
  return IsEmpty(p) ? 0 : core::FlopCount(p);
}

template <>
int64_t Facts<LinearSolveProblem>::MovedBytes(const LinearSolveProblem& p) {
  const double rows = Count(p.rows), sides = Count(p.sides);
  const double elements = rows * rows + (p.has_b ? 2 : 1) * rows * sides;
  const double bytes =
      elements * Count(p.batch) * static_cast<double>(SizeOf(p.type));
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  return bytes < static_cast<double>(kMost) ? static_cast<int64_t>(bytes)
                                            : kMost;
}

template <>
std::string Facts<LinearSolveProblem>::Summarize(const LinearSolveProblem& p) {
  std::string text = absl::StrCat(
      p.has_b ? "equations" : NameOf(p.function), " ", NameOf(p.structure),
      p.has_unit_diagonal ? " with unit diagonal " : " ", NameOf(p.type),
      p.conj_a ? ", a conjugated" : "", p.conj_b ? ", b conjugated" : "", ":");
  AppendLoops(&text, "batch", p.batch);
  AppendLoops(&text, "rows", p.rows);
  AppendLoops(&text, "columns", p.columns);
  AppendLoops(&text, "sides", p.sides);
  return text;
}

namespace {

absl::StatusOr<int64_t> CheckInOrder(const LoopModes<2>& loops,
                                     absl::string_view name) {
  TENSORD_ASSIGN_OR_RETURN(const int64_t count, CheckNumbers(loops, name));
  TENSORD_RETURN_IF_ERROR(
      CheckThat(loops == MergedInOrder(loops),
                absl::StrCat("merged loops where they can be in ", name)));
  return count;
}

/// Where there is no such operand.
template <size_t n>
absl::Status CheckLacks(const LoopModes<n>& loops, size_t operand) {
  return CheckThat(std::ranges::all_of(loops,
                                       [&](const LoopMode<n>& loop) {
                                         return loop.strides[operand] == 0;
                                       }),
                   "no strides of an operand that there is not");
}

absl::Status CheckWithoutB(const LinearSolveProblem& p) {
  using P = LinearSolveProblem;
  TENSORD_RETURN_IF_ERROR(
      CheckThat(ElementCount(p.sides) == ElementCount(p.rows) && !p.conj_b,
                "as many sides as rows"));
  TENSORD_RETURN_IF_ERROR(CheckLacks(p.batch, P::kBatchB));
  TENSORD_RETURN_IF_ERROR(CheckLacks(p.sides, P::kFirst));
  return CheckLacks(p.is_exponential() ? p.columns : p.rows, P::kSecond);
}

}  // namespace

template <>
absl::Status Facts<LinearSolveProblem>::Check(const LinearSolveProblem& p) {
  using P = LinearSolveProblem;
  const bool is_floating = p.type == ElementType::kFloat32 ||
                           p.type == ElementType::kFloat64 || IsComplex(p.type);
  TENSORD_RETURN_IF_ERROR(
      CheckThat(is_floating, "a type in which equations can be solved"));
  TENSORD_RETURN_IF_ERROR(CheckThat(
      !p.is_exponential() ||
          (!p.has_b && p.structure != MatrixStructure::kPositiveDefinite),
      "an exponential of a alone, Hermitian where it is definite"));
  TENSORD_RETURN_IF_ERROR(
      CheckThat(!p.has_unit_diagonal || IsTriangular(p.structure),
                "a triangle where the diagonal is ones"));
  TENSORD_RETURN_IF_ERROR(
      CheckThat(IsComplex(p.type) || (!p.conj_a && !p.conj_b),
                "complex numbers where they are conjugated"));
  TENSORD_RETURN_IF_ERROR(CheckLoops(p.batch, P::kBatchA, "batch"));
  TENSORD_ASSIGN_OR_RETURN(const int64_t rows, CheckInOrder(p.rows, "rows"));
  TENSORD_ASSIGN_OR_RETURN(const int64_t columns,
                           CheckInOrder(p.columns, "columns"));
  TENSORD_RETURN_IF_ERROR(CheckInOrder(p.sides, "sides").status());
  TENSORD_RETURN_IF_ERROR(
      CheckThat(rows == columns, "as many rows as columns"));
  if (!p.has_b) TENSORD_RETURN_IF_ERROR(CheckWithoutB(p));
  Layout a, b, d;
  AppendLayout(p.batch, P::kBatchA, false, a);
  AppendLayout(p.rows, P::kFirst, false, a);
  AppendLayout(p.columns, P::kFirst, false, a);
  TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type, "a"));
  AppendLayout(p.batch, P::kBatchD, false, d);
  AppendLayout(p.rows_of_d(), P::kSecond, false, d);
  AppendLayout(p.sides, P::kSecond, false, d);
  TENSORD_RETURN_IF_ERROR(CheckOutput(d, p.type));
  if (!p.has_b) return absl::OkStatus();
  AppendLayout(p.batch, P::kBatchB, false, b);
  AppendLayout(p.rows, P::kSecond, false, b);
  AppendLayout(p.sides, P::kFirst, false, b);
  return CheckInput(b, p.type, "b");
}

}  // namespace tensord::core
