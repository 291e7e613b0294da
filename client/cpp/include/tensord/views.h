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

/// What stands between the brackets of NumPy's basic indexing, or of CuTe's
/// slicing: `t[1, ::-1]` is `t.Index({1, Range{.step = -1}})`.
///
/// Python's start:stop:step. Numbers below 0 count from the end; what leaves
/// the mode is cut off.
struct Range {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  std::optional<int64_t> step;
};
/// All of one mode: `:`, CuTe's None.
struct All {};
/// A new mode of extent 1: NumPy's None.
struct NewMode {};
/// All of as many modes as nothing else names: `...`.
struct Ellipsis {};
/// A number takes one index of a mode, which is gone then; below 0 it counts
/// from the end.
using IndexItem = std::variant<int64_t, Range, All, NewMode, Ellipsis>;

/// CK Tile's coordinate transforms. Each takes indices of upper modes, those of
/// the new view, to indices of lower ones, those below; what is said after
/// "->" is how many upper modes it makes of how many lower ones.
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
/// 1 -> 1. The indices start, start + step, ... before stop; no number counts
/// from the end: 0 <= start < extent, -1 <= stop <= extent.
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
/// 0 -> n. Everything is there as often as there are indices.
struct Replicate {
  std::vector<int64_t> extents;
};
/// 1 -> n. lower = constant + sum of coefficient * upper; never leaves the
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
/// 2 -> 2. lower 0 = upper 0, lower 1 = upper 1 xor (upper 0 mod extent 1),
/// which is a power of two.
struct Xor {};
/// 1 -> 1. lower = upper + offset, for `extent` indices that stay in the mode.
struct Offset {
  int64_t offset = 0;
  int64_t extent = 0;
};
/// n -> 1. Every lower index = upper; the lower modes have one extent.
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

/// Every mode below and every mode above belongs to exactly one transform;
/// positions above are free, so a stage permutes as it pleases.
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
  std::string viewed;        // name that the tensor had whose memory it sees
  bool is_gathered = false;  // operations copy it before they read it
  bool is_writable = false;  // it can be an output
  bool may_pad = false;
  bool has_strides = false;   // the layout has its own, not a packed copy's
  int64_t span_elements = 0;  // from the lowest to the highest
  int64_t allocation_elements = 0;  // to reserve for its strides
};

}  // namespace tensord
