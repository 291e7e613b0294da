// The permutations that others measure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/element_type.h"
#include "core/ops/permutation.h"

namespace tensord::test {

/// One line of a suite. The first mode is the fastest; mode j of d is mode
/// perm[j] of a.
struct PermutationCase {
  std::string suite;  // "ttc57", "cutt-1-5", ...
  int64_t id = 0;
  std::vector<int64_t> extents;  // (mode) of a
  std::vector<int64_t> perm;     // (mode)

  int64_t element_count() const;
  /// For alpha = 1.
  core::PermutationDesc Desc(core::ElementType type) const;
};

/// The cases of TTC-57, which are cuTT's set 3, a sample of cuTT's sets 1 and
/// 2, and those with published times, from the files in `folder`. Those of the
/// suites take turns, so that the first few are a sample of all.
///
/// Errors  NOT_FOUND: a file is not there. DATA_LOSS: a line cannot be read.
absl::StatusOr<std::vector<PermutationCase>> ReadPermutationCases(
    const std::string& folder);

/// A few of `cases`, of each suite some, shrunk to some thousand elements: the
/// longest extents are halved until that is so.
std::vector<PermutationCase> TinySample(
    const std::vector<PermutationCase>& cases);

}  // namespace tensord::test
