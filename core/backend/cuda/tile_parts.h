// How much of each mode a tile holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensord::core::cuda {

/// Extents by mode; 1 for modes that are not in the tile.
using Parts = std::vector<int64_t>;

/// ceil(x / y)
/// Requires  x >= 0 and y > 0.
inline int64_t CeilDivide(int64_t x, int64_t y) { return (x + y - 1) / y; }

/// The product of the parts.
int64_t Volume(const Parts& parts);

/// Lengthens a tile until its runs along modes in `order` have `target`
/// elements: by whole modes or, when `splits`, in the end by a part of one that
/// is much longer than needed.
void Grow(const std::vector<int64_t>& extents, const std::vector<size_t>& order,
          int64_t target, bool splits, Parts& parts);

}  // namespace tensord::core::cuda
