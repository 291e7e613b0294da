// Sorting of a few elements each, many side by side.
#pragma once

#include <cstdint>

namespace tensord::core {

/// From one element of a column to the next.
inline constexpr int64_t kColumns = 16;
/// Most elements of a column.
inline constexpr int64_t kMostOfColumn = 256;

/// Sorts each column by keys, and by indices where they are equal: element j of
/// column i is at j * kColumns + i.
///
/// Requires  count <= kMostOfColumn, width <= kColumns; what is in columns from
///           `width` on does not matter, and may change.
void SortColumns(uint64_t* keys, uint64_t* indices, int64_t count,
                 int64_t width);

}  // namespace tensord::core
