// Which values a sum of indices can have.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/view/index_sum.h"

namespace tensord::core {

/// All integers from `lowest` to `highest`.
struct IndexRange {
  int64_t lowest = 0;
  int64_t highest = 0;

  bool Contains(const IndexRange& other) const {
    return lowest <= other.lowest && other.highest <= highest;
  }
};

/// The terms of `sum` in groups that share no mode: each group takes its values
/// whatever the others are. The constant is in none.
std::vector<IndexSum> IndependentParts(const IndexSum& sum);

/// A range that holds every value of `sum`; exact when it is affine. Nothing
/// when the range exceeds int64.
///
///   i - 4 * floor(i / 4), i < 100  ->  0 .. 3
std::optional<IndexRange> BoundsOf(const IndexSum& sum);

}  // namespace tensord::core
