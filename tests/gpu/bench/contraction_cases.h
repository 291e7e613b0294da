// The contractions that others measure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/element_type.h"
#include "core/ops/contraction.h"

namespace tensord::test {

/// By the label of a mode.
using LabelExtents = std::map<char, int64_t>;

/// The matrices that a contraction is a product of: (m, k) and (k, n).
struct MatrixExtents {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
};

/// One line of a suite. Every label is in two of d, a and b.
struct ContractionCase {
  std::string suite;  // "tccg48" or "random"
  int64_t id = 0;
  std::string group;        // "ttm", "ao2mo", "ccsd", "ccsd_t" or "random"
  std::string d, a, b;      // labels, first mode fastest
  LabelExtents of_float32;  // the suites are as large in either
  LabelExtents of_eight_bytes;

  const LabelExtents& ExtentsFor(core::ElementType type) const;
  MatrixExtents MatrixFor(core::ElementType type) const;
  /// d = a * b, packed.
  core::ContractionDesc Desc(core::ElementType type) const;
};

/// The cases of TCCG-48 and random ones, from the files in `folder`. Those of
/// the groups take turns, so that the first few are a sample of all.
///
/// Errors  NOT_FOUND: a file is not there. DATA_LOSS: a line cannot be read.
absl::StatusOr<std::vector<ContractionCase>> ReadContractionCases(
    const std::string& folder);

/// A few of `cases`, of each group some, shrunk to some ten thousand products:
/// the longest extents are halved until that is so.
std::vector<ContractionCase> TinySample(
    const std::vector<ContractionCase>& cases);

}  // namespace tensord::test
