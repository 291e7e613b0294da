// A loop nest in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/heap_bytes.h"
#include "core/base/layout.h"
#include "core/problem/loop_modes.h"

namespace tensord::core::cuda {

/// Nested loops over operands a, b, c and d, divided into parts: slow modes
/// element by element where they must be, then one mode by equal extents, of
/// which the last may be shorter; the others are whole in every part.
///
///   extents (1000, 6), at most 3000  ->  2 parts of (1000, 3)
///   extents (1000, 6), at most 2500  ->  3 parts of (1000, 2)
///   extents (1000, 3), at most 2500  ->  2 parts, (1000, 2) and (1000, 1)
///
/// Threads  immutable value; share freely.
class LoopParts {
 public:
  /// How many neighbours of an operand should stay in one part, which should
  /// begin at a multiple of them: at least 128 bytes of any type.
  static constexpr int64_t kRunElements = 128;

  /// Parts of at most `limit` elements. The mode that is divided is the slowest
  /// in operand `leading` that alone makes parts small enough and leaves
  /// kRunElements or more of every operand together; when there is none, the
  /// slowest modes are taken element by element until there is.
  ///
  /// Along it there are as few parts as possible, of the least extent that
  /// allows so few and keeps the parts' addresses as aligned as possible.
  ///
  /// Requires  limit >= 1.
  LoopParts(const LoopModes<4>& modes, size_t leading, int64_t limit);

  /// INT64_MAX when there are more.
  int64_t count() const { return count_; }

  /// Of the part `number`: its first coordinates, and its extents.
  /// Requires  0 <= number < count().
  ModeVector first(int64_t number) const;
  const ModeVector& extents(int64_t number) const {
    return shapes_[shape(number)].extents;
  }

  /// The different extents of parts, one or two, and how many have them.
  struct Shape {
    ModeVector extents;  // (mode)
    int64_t count;
  };
  const std::vector<Shape>& shapes() const { return shapes_; }
  /// Index of the part's extents in shapes().
  size_t shape(int64_t number) const;

  /// Bytes of memory beyond itself.
  int64_t heap_bytes() const {
    int64_t bytes = HeapBytes(whole_) + HeapBytes(part_) + HeapBytes(shapes_);
    for (const Shape& shape : shapes_) bytes += HeapBytes(shape.extents);
    return bytes;
  }

  /// Elements along `mode` from one part to the next; 0 when it is whole.
  int64_t step(size_t mode) const {
    return part_[mode] < whole_[mode] ? part_[mode] : 0;
  }

 private:
  ModeVector whole_;  // extents of the nest
  ModeVector part_;   // of every part but the last ones along the split mode
  size_t split_ = 0;  // the mode of equal extents
  int64_t split_count_ = 1;
  int64_t count_ = 1;
  std::vector<Shape> shapes_;
};

}  // namespace tensord::core::cuda
