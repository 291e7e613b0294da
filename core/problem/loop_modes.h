// Modes as loops: an extent and one stride per operand.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace tensord::core {

/// One loop over `operand_count` operands at once.
///
/// Units  strides count elements of their operand. 0: the operand lacks the
///        mode and is broadcast along it.
template <size_t operand_count>
struct LoopMode {
  int64_t extent;
  std::array<int64_t, operand_count> strides;  // (operand)

  bool operator==(const LoopMode&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const LoopMode& mode) {
    return H::combine(std::move(h), mode.extent, mode.strides);
  }
};

template <size_t operand_count>
using LoopModes = absl::InlinedVector<LoopMode<operand_count>, 6>;

/// A problem in canonical form. Problem::VisitFields(problem, visit) gives what
/// visit(field...) does for all its fields, in an order that is part of encoded
/// plan keys.
template <typename Problem>
concept HasFields = requires(const Problem& problem) {
  Problem::VisitFields(problem, [](const auto&...) {});
};

template <typename H, HasFields Problem>
H AbslHashValue(H h, const Problem& problem) {
  return Problem::VisitFields(problem, [&](const auto&... fields) {
    return H::combine(std::move(h), fields...);
  });
}

/// Product of the extents; 1 for no modes.
template <size_t operand_count>
int64_t ElementCount(const LoopModes<operand_count>& modes) {
  int64_t count = 1;
  for (const auto& mode : modes) count *= mode.extent;
  return count;
}

/// `modes` as loops over `count` operands: their strides become those of the
/// operands numbered `operands`; the other operands lack the modes.
template <size_t count, size_t operand_count>
LoopModes<count> Spread(const LoopModes<operand_count>& modes,
                        const std::array<size_t, operand_count>& operands) {
  LoopModes<count> spread;
  for (const auto& mode : modes) {
    LoopMode<count>& to = spread.emplace_back(LoopMode<count>{mode.extent, {}});
    for (size_t i = 0; i < operand_count; ++i) {
      to.strides[operands[i]] = mode.strides[i];
    }
  }
  return spread;
}

/// The canonical loops that visit the same addresses, in an order of our own:
/// modes of extent 1 are dropped, the rest is sorted by the strides of operand
/// `leading` and then of the others, fastest first, and neighbours that advance
/// every operand evenly are merged.
///
///   {3, {4, 1}}, {4, {1, 3}}  ->  unchanged when operand 1 leads
///   {3, {1, 1}}, {4, {3, 3}}  ->  {12, {1, 1}}
///
/// An extent of 0 makes the whole a single mode of extent 0 and strides 0.
/// Post  equal loop nests of differently labelled or ordered modes come out
///       equal; total, and idempotent.
template <size_t operand_count>
LoopModes<operand_count> Canonical(LoopModes<operand_count> modes,
                                   size_t leading) {
  using Loop = LoopMode<operand_count>;
  for (const Loop& mode : modes) {
    if (mode.extent == 0) return {Loop{0, {}}};
  }
  modes.erase(std::remove_if(modes.begin(), modes.end(),
                             [](const Loop& mode) { return mode.extent == 1; }),
              modes.end());
  std::sort(modes.begin(), modes.end(), [&](const Loop& x, const Loop& y) {
    if (x.strides[leading] != y.strides[leading]) {
      return x.strides[leading] < y.strides[leading];
    }
    return std::tie(x.strides, x.extent) < std::tie(y.strides, y.extent);
  });
  const auto merges = [](const Loop& inner, const Loop& outer) {
    for (size_t i = 0; i < operand_count; ++i) {
      if (outer.strides[i] != inner.extent * inner.strides[i]) return false;
    }
    return true;
  };
  // A pair that merges need not be adjacent when strides tie, so look at all.
  for (size_t i = 0; i < modes.size();) {
    size_t outer = 0;
    while (outer < modes.size() &&
           (outer == i || !merges(modes[i], modes[outer]))) {
      ++outer;
    }
    if (outer == modes.size()) {
      ++i;
      continue;
    }
    modes[i].extent *= modes[outer].extent;
    modes.erase(modes.begin() + outer);
    i = 0;
  }
  return modes;
}

/// Merges loops, fastest first, that follow each other evenly in both operands.
/// The order of what they visit stays.
inline LoopModes<2> MergedInOrder(const LoopModes<2>& loops) {
  LoopModes<2> merged;
  for (const LoopMode<2>& loop : loops) {
    if (loop.extent == 1) continue;
    if (!merged.empty()) {
      LoopMode<2>& inner = merged.back();
      if (loop.strides[0] == inner.extent * inner.strides[0] &&
          loop.strides[1] == inner.extent * inner.strides[1]) {
        inner.extent *= loop.extent;
        continue;
      }
    }
    merged.push_back(loop);
  }
  return merged;
}

}  // namespace tensord::core
