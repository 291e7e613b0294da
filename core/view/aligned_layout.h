// Layouts whose rows begin at multiples of something.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/base/layout.h"

namespace tensord::core {

/// The layout that is packed but for gaps after each run along the fastest
/// mode, so that the next mode advances by a multiple of `multiple` elements.
///
///   (4, 5), multiple 8, last mode fastest  ->  strides (8, 1)
///
/// Errors  INVALID_ARGUMENT: multiple < 1, or extents that ValidateLayout()
///         refuses for one-byte elements.
absl::StatusOr<Layout> AlignedLayout(const ModeVector& extents,
                                     int64_t multiple, Order order);

/// Elements to reserve so that every run has its gap, the last one too: the
/// largest extent * stride, and SpanElements() at least. 0 when empty.
///
///   (3, 4) with strides (8, 1)  ->  24, where the span is 20
///   (4, 5) with strides (8, 1)  ->  32, where the span is 29
///
/// A stride of 0 or below counts by its magnitude.
/// Requires  a span that fits int64. INT64_MAX when the result does not.
int64_t AllocationElements(const ModeVector& extents,
                           const ModeVector& strides);

}  // namespace tensord::core
