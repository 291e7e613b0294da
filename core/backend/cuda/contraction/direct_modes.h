// A contraction's modes as direct kernels take them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/heap_bytes.h"
#include "core/problem/contraction_problem.h"

namespace tensord::core::cuda {

/// In what order terms are summed.
enum class TermOrder : uint8_t {
  kAsInA,
  kAsInB,
  /// In blocks that fill memory's sectors in a and in b: first some steps along
  /// a's fastest mode, then some along b's.
  kInBlocks,
};

struct DirectModes {
  LoopModes<4> batch;  // a, b, c, d
  LoopModes<3> m;      // a, c, d
  LoopModes<3> n;      // b, c, d
  LoopModes<2> k;      // a, b; also what only one of them has, the other's
                       // strides being 0

  int64_t heap_bytes() const {
    return HeapBytes(batch) + HeapBytes(m) + HeapBytes(n) + HeapBytes(k);
  }
};

/// With `swaps`, a and b trade places, and so do m and n; `terms` then means
/// the new a and b.
///
/// None  for kInBlocks: a and b have the same fastest mode, extents have no
///       suitable divisors, or there are too many modes.
std::optional<DirectModes> DirectModesOf(const ContractionProblem& problem,
                                         bool swaps, TermOrder terms);

}  // namespace tensord::core::cuda
