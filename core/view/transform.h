// The ways to see modes differently without moving an element.
#pragma once

#include <cstdint>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/layout.h"

namespace tensord::core {

/// Each takes the indices of its upper modes, those of the new view, to the
/// indices of its lower modes, those of the view below. They are CK Tile's
/// coordinate transforms; what is said after "->" is how many upper modes they
/// make of how many lower ones.
namespace transform {

/// 1 -> 1. lower = upper.
struct PassThrough {
  bool operator==(const PassThrough&) const = default;
};

/// n -> 1. Counts through the lower modes, one of which is the fastest.
///
///   extents (2, 3), last mode fastest  ->  (6), 4 comes from (1, 1)
///   extents (2, 3), first mode fastest ->  (6), 4 comes from (0, 2)
struct Merge {
  Order order = Order::kLastModeFastest;

  bool operator==(const Merge&) const = default;
};

/// 1 -> n. Undoes the Merge of modes of these extents.
/// Requires  the product of the extents is the lower extent.
struct Unmerge {
  ModeVector extents;
  Order order = Order::kLastModeFastest;

  bool operator==(const Unmerge&) const = default;
};

/// 1 -> 1. The indices start, start + step, ... that come before stop: those
/// of Python's range(start, stop, step). No number counts from the end: all of
/// extent n backwards is {n - 1, -1, -1}.
///
/// Requires  step != 0. Unless it is empty: 0 <= start < extent and
///           -1 <= stop <= extent.
struct Slice {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;

  bool operator==(const Slice&) const = default;
};

/// 1 -> 1. lower = upper - before; the first `before` and the last `after`
/// indices have no element: they are padding.
/// Requires  both >= 0.
struct Pad {
  int64_t before = 0;
  int64_t after = 0;

  bool operator==(const Pad&) const = default;
};

/// 1 -> 0. lower = index.
/// Requires  0 <= index < extent.
struct Freeze {
  int64_t index = 0;

  bool operator==(const Freeze&) const = default;
};

/// 0 -> 1. Everything is there `extent` times.
struct Insert {
  int64_t extent = 1;

  bool operator==(const Insert&) const = default;
};

/// 0 -> n. Everything is there as often as there are indices.
struct Replicate {
  ModeVector extents;

  bool operator==(const Replicate&) const = default;
};

/// 1 -> n. lower = constant + sum of coefficient * upper.
/// Requires  as many coefficients as extents; no index leaves the lower mode.
struct Embed {
  ModeVector extents;
  ModeVector coefficients;  // (upper mode)
  int64_t constant = 0;

  bool operator==(const Embed&) const = default;
};

/// 1 -> 1. lower = upper mod modulus, for `extent` indices.
/// Requires  modulus >= 1; no index leaves the lower mode.
struct Modulo {
  int64_t modulus = 1;
  int64_t extent = 0;

  bool operator==(const Modulo&) const = default;
};

/// 2 -> 2. CK Tile's swizzle, which is its own inverse:
/// lower 0 = upper 0, lower 1 = upper 1 xor (upper 0 mod extent 1).
/// Requires  extent 1 is a power of two or 0.
struct Xor {
  bool operator==(const Xor&) const = default;
};

/// 1 -> 1. lower = upper + offset, for `extent` indices.
/// Requires  no index leaves the lower mode.
struct Offset {
  int64_t offset = 0;
  int64_t extent = 0;

  bool operator==(const Offset&) const = default;
};

/// n -> 1. Every lower index = upper.
/// Requires  at least one lower mode; all of equal extent.
struct Diagonal {
  bool operator==(const Diagonal&) const = default;
};

}  // namespace transform

using Transform =
    std::variant<transform::PassThrough, transform::Merge, transform::Unmerge,
                 transform::Slice, transform::Pad, transform::Freeze,
                 transform::Insert, transform::Replicate, transform::Embed,
                 transform::Modulo, transform::Xor, transform::Offset,
                 transform::Diagonal>;

/// "pass_through", "merge", ... for messages.
absl::string_view NameOf(const Transform& transform);

/// Indices that a slice selects.
/// Requires step != 0 and bounds as Slice has them.
int64_t SelectedCount(const transform::Slice& slice);

/// Extents of the upper modes that `transform` makes of lower modes of these
/// extents.
///
/// Errors  INVALID_ARGUMENT: a number of lower modes that the transform cannot
///         take, or a requirement that is not met. `where` begins the message.
absl::StatusOr<ModeVector> UpperExtents(const Transform& transform,
                                        absl::Span<const int64_t> lower_extents,
                                        absl::string_view where);

/// True when different upper indices always lead to different lower ones.
/// False may be said of an Embed that is injective all the same.
/// Requires  UpperExtents() accepts it.
bool IsInjective(const Transform& transform);

}  // namespace tensord::core
