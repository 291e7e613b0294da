// Which kept elements are taken side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem/reduction_problem.h"

namespace tensord::core {

/// The place of the kept mode whose elements are closest in a, of those that
/// have `enough`, or else the longest; of none 0.
inline size_t AcrossOf(const LoopModes<3>& kept, int64_t enough) {
  constexpr size_t kA = ReductionProblem::kA;
  size_t best = 0;
  for (size_t m = 1; m < kept.size(); ++m) {
    const LoopMode<3>&mode = kept[m], &other = kept[best];
    const bool is_long = mode.extent >= enough;
    const bool is_better = is_long != (other.extent >= enough) ? is_long
                           : is_long ? mode.strides[kA] < other.strides[kA]
                                     : mode.extent > other.extent;
    if (is_better) best = m;
  }
  return best;
}

}  // namespace tensord::core
