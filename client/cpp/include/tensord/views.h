// Ways to see a tensor differently. The contract is tensord/v1/view.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "tensord/layout.h"
#include "tensord/operations.h"

namespace tensord {

// What stands between the brackets of NumPy's basic indexing and of CuTe's
// slicing: `t[1, ::-1]` is `t.Index({1, Range{.step = -1}})`.

/// Python's start:stop:step. Negative numbers count from the end. Indices
/// beyond the mode are left out.
struct Range {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  std::optional<int64_t> step;
};
/// All of one mode: `:`, CuTe's None.
struct All {};
/// A new mode of extent 1: NumPy's None.
struct NewMode {};
/// All of the modes that no other item names: `...`.
struct Ellipsis {};
/// A number takes one index and removes the mode. A negative one counts from
/// the end.
using IndexItem = std::variant<int64_t, Range, All, NewMode, Ellipsis>;

/// CK Tile's coordinate transforms. Each maps indices of upper modes, those of
/// the new view, to indices of lower modes, those of what it is a view of.
/// `n -> 1` says that n lower modes become one upper mode.
namespace transform {

/// 1 -> 1. lower = upper.
struct PassThrough {};
/// n -> 1. Counts through the lower modes, one of which is the fastest.
struct Merge {
  Order order = Order::kLastModeFastest;
};
/// 1 -> n. Undoes Merge. The product of the extents is the lower extent.
struct Unmerge {
  std::vector<int64_t> extents;
  Order order = Order::kLastModeFastest;
};
/// 1 -> 1. The indices start, start + step, ... before stop. Numbers do not
/// count from the end: 0 <= start < extent, -1 <= stop <= extent.
struct Slice {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
};
/// 1 -> 1. The first `before` and the last `after` indices are padding.
struct Pad {
  int64_t before = 0;
  int64_t after = 0;
};
/// 1 -> 0. lower = index.
struct Freeze {
  int64_t index = 0;
};
/// 0 -> 1. Everything is there `extent` times.
struct Insert {
  int64_t extent = 1;
};
/// 0 -> n. Everything is there once for each index of the new modes.
struct Replicate {
  std::vector<int64_t> extents;
};
/// 1 -> n. lower = constant + sum of coefficient * upper, which must be in the
/// mode.
struct Embed {
  std::vector<int64_t> extents;
  std::vector<int64_t> coefficients;  // (upper mode)
  int64_t constant = 0;
};
/// 1 -> 1. lower = upper mod modulus, for `extent` indices.
struct Modulo {
  int64_t modulus = 1;
  int64_t extent = 0;
};
/// 2 -> 2. lower 0 = upper 0, lower 1 = upper 1 xor (upper 0 mod extent 1).
/// Extent 1 must be a power of two.
struct Xor {};
/// 1 -> 1. lower = upper + offset, for `extent` indices that stay in the mode.
struct Offset {
  int64_t offset = 0;
  int64_t extent = 0;
};
/// n -> 1. Every lower index = upper. The lower modes have equal extents.
struct Diagonal {};

}  // namespace transform

using Transform =
    std::variant<transform::PassThrough, transform::Merge, transform::Unmerge,
                 transform::Slice, transform::Pad, transform::Freeze,
                 transform::Insert, transform::Replicate, transform::Embed,
                 transform::Modulo, transform::Xor, transform::Offset,
                 transform::Diagonal>;

/// A transform and the modes it is between.
struct PlacedTransform {
  Transform transform;
  std::vector<int> lower;  // positions below
  std::vector<int> upper;  // positions in the new view
};

/// Transforms side by side. Every lower and every upper mode belongs to exactly
/// one. Upper positions may be in any order, so a stage can permute, too.
///
///   (2, 6) -> (2, 2, 3): {{transform::PassThrough{}, {0}, {0}},
///                         {transform::Unmerge{{2, 3}}, {1}, {1, 2}}}
using Stage = std::vector<PlacedTransform>;

struct ViewOptions {
  std::string name;  // the last part; empty: the server chooses
  /// Value of all padding. Absent: that of the view below, or 0.
  std::optional<Scalar> padding;
  std::optional<absl::Duration> deadline;
};

/// What is particular to a view.
struct ViewInfo {
  std::string viewed;        // name of the tensor whose memory it sees
  bool is_gathered = false;  // operations copy it before they read it
  bool is_writable = false;  // it can be an output
  bool may_pad = false;
  bool has_strides = false;         // else the layout is a packed copy's
  int64_t span_elements = 0;        // from the lowest to the highest
  int64_t allocation_elements = 0;  // to reserve for its strides
};

}  // namespace tensord
