// Random contractions of small whole numbers, and their results by definition.
#pragma once

#include <complex>
#include <cstdint>
#include <random>
#include <vector>

#include "core/ops/contraction.h"
#include "core/ops/scalar.h"

namespace tensord::test {

using Complex = std::complex<double>;
using Elements = std::vector<Complex>;

/// A contraction of complex128 and its operands. Sums are exact.
struct RandomProduct {
  core::ContractionDesc desc;
  Elements a, b, c, d;
  core::Scalar alpha, beta;

  /// Up to `most_modes` modes of each group, in any order of each operand, some
  /// of them with gaps.
  static RandomProduct Make(uint32_t seed, int most_modes);

  /// d as it has to be in the end.
  Elements Expected() const;
};

}  // namespace tensord::test
