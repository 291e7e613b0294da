// Linear equations as those see them that solve them.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace tensord::core {

/// Calls a body for each part of [0, count), perhaps several at once.
using ForParts =
    absl::FunctionRef<void(int64_t count, absl::FunctionRef<void(int64_t)>)>;

/// One matrix, and behind it its right sides: extent + sides columns of extent
/// elements, without gaps.
template <typename W>
struct Equations {
  int64_t extent, sides;
  W* matrix;    // overwritten by anything
  int* pivots;  // (extent), scratch

  /// The right sides, and at last the solutions.
  W* right() const { return matrix + extent * extent; }
};

}  // namespace tensord::core
