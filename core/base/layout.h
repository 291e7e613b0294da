// Where the elements of a tensor lie.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord::core {

/// Most modes that a tensor may have.
inline constexpr int kMaxModes = 64;

/// One number a mode: extents, strides or coordinates.
using ModeVector = absl::InlinedVector<int64_t, 8>;

/// Which mode of a packed tensor has stride 1.
enum class Order : uint8_t { kFirstModeFastest, kLastModeFastest };

/// Where the elements of one tensor lie, mode by mode, from its first element.
///
/// Units      `strides` counts elements, never bytes.
/// Invariant  extents.size() == strides.size().
/// Threads    immutable value; share freely.
struct Layout {
  ModeVector extents;  // (mode)
  ModeVector strides;  // (mode), elements

  int mode_count() const { return static_cast<int>(extents.size()); }
  bool operator==(const Layout&) const = default;
};

/// The layout without gaps of a tensor with these extents.
///
///   (2, 3, 4), first mode fastest  ->  strides (1, 2, 6)
///   (2, 3, 4), last mode fastest   ->  strides (12, 4, 1)
///
/// A mode after one of extent 0 gets the stride it would have with extent 1.
/// Requires  Validate() accepts the result: extents whose product overflows
///           give strides that saturate at INT64_MAX, which Validate() refuses.
Layout PackedLayout(const ModeVector& extents, Order order);

/// OK when every address the layout gives can be computed in int64.
///
/// Errors  INVALID_ARGUMENT: more than 64 modes, a negative extent, a stride
///         that is not positive, or a span of more than INT64_MAX bytes.
///         `what` names the tensor in the message.
absl::Status ValidateLayout(const Layout& layout, int64_t element_bytes,
                            absl::string_view what);

/// Product of the extents; 1 for a scalar.
/// Requires a valid layout.
int64_t ElementCount(const Layout& layout);

/// Elements from the first to the last one, gaps included: 0 when empty, else
/// 1 + sum of (extent - 1) * stride.
/// Requires a valid layout.
int64_t SpanElements(const Layout& layout);

/// True when no two coordinates can share an address. Decided by nesting:
/// with the modes sorted by stride, every stride must exceed the span of the
/// modes before it. Interleaved layouts that are injective all the same are
/// not recognised.
bool IsInjective(const Layout& layout);

/// True when the layout is injective and has no gaps.
bool IsDense(const Layout& layout);

/// True when both have the same elements in the same places. Strides of modes
/// of extent 1 do not matter, nor do any when there are no elements.
bool AreAlike(const Layout& x, const Layout& y);

/// "(2, 3, 4)" for messages.
std::string ToString(const ModeVector& values);

}  // namespace tensord::core
