// Products of packed panels in registers: the innermost loops of a contraction.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "core/base/element_type.h"

namespace tensord::core {

/// The piece of d that registers hold at a time.
struct TileShape {
  int64_t rows;  // whole vectors
  int64_t columns;
  int64_t lanes;  // elements of a vector

  int64_t vectors() const { return rows / lanes * columns; }

  bool operator==(const TileShape&) const = default;
};

/// The shapes with code for float32 or float64 on this CPU; none when the
/// length of its vectors is unknown.
absl::Span<const TileShape> TileShapes(ElementType type);

/// Neighbouring rows of a panel that are neighbours in c and in d.
struct RowRun {
  int64_t first;  // in the panel
  int64_t count;
  int64_t c, d;  // offsets of the first one
};

/// d = alpha * x * y + beta * c for a block of d whose operands lie packed in
/// panels of TileShapes()[shape]:
///   x (panel, term, row)      y (panel, term, column)
/// Rows of d outside of the runs are not touched.
///
/// Units  offsets count elements, from the block's first one.
template <typename T>
struct BlockProduct {
  static constexpr int64_t kNoColumn = std::numeric_limits<int64_t>::min();

  size_t shape;
  int64_t terms;
  const T* x;
  const T* y;
  absl::Span<const RowRun> runs;        // panel by panel
  absl::Span<const int64_t> run_ends;   // (panel) in runs
  absl::Span<const int64_t> columns_c;  // (column) offsets
  /// Likewise. kNoColumn: an empty one, at the end of a panel.
  absl::Span<const int64_t> columns_d;
  T alpha, beta;
  const T* c;  // not read when beta is 0; may be d then
  T* d;
  /// Whole vectors of d go past the caches where they are aligned; other
  /// threads see them after FlushStreamingStores().
  bool streams;
};

/// Aliasing  c may be d when its offsets are.
void Multiply(const BlockProduct<float>& block);
void Multiply(const BlockProduct<double>& block);

}  // namespace tensord::core
