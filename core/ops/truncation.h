// How an SVD is cut off, from its values: plain arithmetic, on any device.
#pragma once

#include <cstdint>

namespace tensord::core {

/// How many of `count` descending `values` are kept, at least 1 and at most
/// `most`. Limits has the limits of a Truncation, under the same names.
/// `beyond`: the squares of smaller values, which are unknown one by one, over
/// that of the largest.
///
/// Requires  count and most are at least 1.
template <typename Real, typename Limits>
constexpr int64_t KeptOf(const Real* values, int64_t count, int64_t most,
                         const Limits& limits, double beyond = 0) {
  const double largest = static_cast<double>(values[0]);
  // Relative to the largest, so that squares do not overflow.
  const auto square = [&](int64_t k) {
    if (largest == 0) return 0.0;
    const double ratio = static_cast<double>(values[k]) / largest;
    return ratio * ratio;
  };
  double all = beyond;
  for (int64_t k = count; k-- > 0;) all += square(k);
  int64_t kept = count < most ? count : most;
  const auto cut = [&](double limit) {
    double rest = beyond;
    int64_t left = count;
    while (left > 1 && (rest += square(left - 1)) <= limit) --left;
    if (left < kept) kept = left;
  };
  if (limits.discarded_squares > 0) {
    cut(limits.discarded_squares / largest / largest);
  }
  if (limits.relative_discarded_squares > 0) {
    cut(limits.relative_discarded_squares * all);
  }
  const double relative = limits.relative_cutoff * largest;
  const double floor = limits.cutoff > relative ? limits.cutoff : relative;
  while (floor > 0 && kept > 1 && !(values[kept - 1] > floor)) --kept;
  return kept;
}

/// The squares of all of `count` descending values, and of those beyond, over
/// those of the first `kept`; 1 where all are 0.
template <typename Real>
constexpr Real SquaresOverKept(const Real* values, int64_t count, int64_t kept,
                               double beyond = 0) {
  const Real largest = values[0];
  if (largest == 0) return 1;
  Real all = static_cast<Real>(beyond), of_kept = 0;
  for (int64_t k = count; k-- > 0;) {
    const Real ratio = values[k] / largest;
    all += ratio * ratio;
    if (k < kept) of_kept += ratio * ratio;
  }
  return all / of_kept;
}

}  // namespace tensord::core
