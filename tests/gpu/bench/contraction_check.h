// Whether the result of a contraction is right, without computing it again.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/backend/kernel.h"
#include "core/ops/contraction.h"
#include "tests/gpu/bench/bench_device.h"

namespace tensord::test {

/// What the check found. Each sum goes over one row of d.
struct CheckedSums {
  int64_t count = 0;
  int64_t wrong = 0;
  double worst_error = 0;  // of what is allowed; infinite for NaN
};

/// R. Freivalds' check (1977), with rounding: d * x must be a * (b * x) for a
/// random vector x. So every element of d counts, for the price of reading a, b
/// and d some times. The three products run in float64, by a kernel that the
/// product does not have, from the operands as they were described.
///
/// A sum may be off by
///   8 u k s sqrt(sum of |x|^2), s the root of the mean of |a b|^2,
/// u the unit roundoff of the arithmetic. The partial sums of k products with
/// mean 0 grow as s sqrt(k), so that rounding each of them moves an element of
/// d by some 0.4 u k s, and its row by sqrt(sum of |x|^2) times that: rounding
/// comes nowhere near 8. An element that is missing, in the wrong place or
/// computed from operands rounded to 11 bits exceeds it by far.
///
/// Elements that are sums of p <= 8 products of reals, of which many are
/// checked, may be off as far as such sums can be: u p (p + 1) / 2 instead of
/// 8 u k s.
///
/// In 3xTF32 tensor cores add 8 terms at a time and cut off what float32 does
/// not hold: 0.72 u of the partial sum in the mean, always towards zero, so
/// that errors add up. Partial sums of 0.8 s sqrt(j) in the mean make
/// 0.72 * 0.8 u s * 2/3 k sqrt(k) / 8 of that; six times as much is allowed, as
/// many rows are checked. Operands rounded to 11 bits exceed that by far up to
/// some hundred terms; with 8000 about every second row does.
///
/// Requires  every mode is in two of a, b and d; alpha is 1, beta 0; the parts
///           of the elements of a and b are drawn evenly from [-1, 1]; types
///           are float32, float64 or complex64, and all the same; tensors have
///           less than 2^32 elements and at most 16 modes.
/// Errors    INTERNAL, UNAVAILABLE: the device failed. RESOURCE_EXHAUSTED.
absl::StatusOr<CheckedSums> CheckContraction(
    BenchDevice& device, const core::ContractionDesc& desc,
    const core::ContractionOperands& operands);

}  // namespace tensord::test
