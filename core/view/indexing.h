// Slicing as NumPy and CuTe write it.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/layout.h"
#include "core/view/stage.h"

namespace tensord::core {

/// Python's start:stop:step. Negative numbers count from the end; what leaves
/// the mode is cut off.
struct SliceItem {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  std::optional<int64_t> step;
};

/// All of one mode: NumPy's `:`, CuTe's None and `_`.
struct AllItem {};

/// A new mode of extent 1: NumPy's None.
struct NewModeItem {};

/// All of as many modes as nothing else names: `...`.
struct EllipsisItem {};

/// What stands at one position between the brackets. A number takes one index
/// of a mode, which is then gone; a negative one counts from the end.
using IndexItem =
    std::variant<int64_t, SliceItem, AllItem, NewModeItem, EllipsisItem>;

/// The stage that indexes a view of these extents as NumPy's basic indexing
/// does. Modes that no item names are taken whole, at the ellipsis or else at
/// the end.
///
///   a[1, ::-1]    of (3, 4)     ->  freeze 1; slice {3, -1, -1}
///   t(None, 1)    of (2, 2)     ->  pass_through; freeze 1
///
/// Errors  INVALID_ARGUMENT, naming the position: more items than modes, a
///         second ellipsis, a number outside its mode, a step of 0.
absl::StatusOr<Stage> IndexStage(absl::Span<const IndexItem> items,
                                 const ModeVector& extents);

}  // namespace tensord::core
