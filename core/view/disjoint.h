// Views of one storage that share no element.
#pragma once

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

}  // namespace tensord::core
