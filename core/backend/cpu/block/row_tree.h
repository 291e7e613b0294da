// Pairwise combination of rows as they come.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/backend/cpu/block/block_operators.h"

namespace tensord::core {

/// Combines rows in pairs, pairs of pairs and so on, so that errors grow with
/// the logarithm of how many there are.
///
/// Threads  used by one thread at a time.
template <typename T>
class RowTree {
 public:
  /// Most rows that are kept when `row_count` rows are pushed.
  static int64_t SlotCount(int64_t row_count) {
    return std::max<int64_t>(std::bit_width(static_cast<uint64_t>(row_count)),
                             1);
  }

  /// Requires  room at `slots` for SlotCount() rows of `width` elements.
  RowTree(BinaryBlock<T> combine, int64_t width, T* slots)
      : combine_(combine), width_(width), slots_(slots) {}

  void Push(const T* row) {
    // As many equal halves are complete as the count ends in ones.
    for (uint64_t rest = count_; rest & 1; rest >>= 1) {
      T* const half = Slot(std::popcount(rest) - 1);
      combine_(half, row, half, width_);
      row = half;
    }
    ++count_;
    T* const slot = Slot(std::popcount(count_) - 1);
    if (row != slot) std::copy_n(row, width_, slot);
  }

  /// All rows combined; ends the tree.
  /// Requires  a row was pushed.
  const T* Finish() {
    for (int i = std::popcount(count_) - 1; i > 0; --i) {
      combine_(Slot(i - 1), Slot(i), Slot(i - 1), width_);
    }
    return slots_;
  }

 private:
  T* Slot(int i) const { return slots_ + i * width_; }

  BinaryBlock<T> combine_;
  int64_t width_;
  T* slots_;
  uint64_t count_ = 0;
};

}  // namespace tensord::core
