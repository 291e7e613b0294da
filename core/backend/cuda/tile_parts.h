// How much of each mode a tile holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/checked_math.h"
#include "core/problem/loop_modes.h"

namespace tensord::core::cuda {

/// Extents by mode; 1 for modes that are not in the tile.
using Parts = std::vector<int64_t>;

/// The whole extents.
template <size_t operand_count>
Parts WholeOf(const LoopModes<operand_count>& modes) {
  Parts whole;
  for (const auto& mode : modes) whole.push_back(mode.extent);
  return whole;
}

/// Modes by their strides in one operand, fastest first, those along which it
/// is broadcast last.
template <size_t operand_count>
std::vector<size_t> OrderBy(const LoopModes<operand_count>& modes,
                            size_t operand) {
  const auto rank = [&](size_t mode) {
    const int64_t stride = modes[mode].strides[operand];
    return stride == 0 ? std::numeric_limits<int64_t>::max() : stride;
  };
  std::vector<size_t> order(modes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t x, size_t y) { return rank(x) < rank(y); });
  return order;
}

/// The product of the parts.
int64_t Volume(const Parts& parts);

/// Lengthens a tile until its runs along modes in `order` have `target`
/// elements. It takes whole modes; with `splits`, a part of the last one if
/// that is much longer than needed.
void Grow(const std::vector<int64_t>& extents, const std::vector<size_t>& order,
          int64_t target, bool splits, Parts& parts);

}  // namespace tensord::core::cuda
