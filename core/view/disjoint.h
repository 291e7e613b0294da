// Views of one storage that share no element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "core/base/layout.h"
#include "core/view/view.h"

namespace tensord::core {

/// True when `x` and `y`, both of a storage that lies as `storage` from element
/// `offset` on, are known to share no element: along some mode of the storage
/// they keep to different indices. False may be said of disjoint views whose
/// modes are not modes of the storage, or parts of them.
///
///   rows 0, 2, 4 and rows 1, 3, 5;  columns 0 to 3 and columns 4 to 7
///
/// Requires  strides >= 0.
bool AreDisjoint(const Layout& storage, int64_t offset, const StridedView& x,
                 const StridedView& y);

/// A view of a storage, and whether its elements are written.
struct UsedView {
  StridedView view;
  bool is_written = false;
};

/// Two of `views`, of one storage as above, that are not AreDisjoint(), and of
/// which the first is written; nothing when there are none.
///
/// Takes n log n time for n views that lie apart as the blocks of a grid do, or
/// one in n steps as the other; may also find two of many thousand that are
/// interleaved in other ways.
std::optional<std::pair<size_t, size_t>> FindOverlap(
    const Layout& storage, int64_t offset, absl::Span<const UsedView> views);

}  // namespace tensord::core
