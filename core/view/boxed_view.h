// Views that have strides between margins of padding.
#pragma once

#include <optional>

#include "core/view/frame.h"
#include "core/view/view.h"

namespace tensord::core {

/// A view whose elements lie at strides, and whose padding lies around them.
struct BoxedView {
  Margins margins;  // in the view
  StridedView box;  // what is left between them, in the storage
};

/// `view` as that, if it is one: slices, permutations, pads, embeddings and
/// repetitions make such views, in any order, and so does all that simplifies
/// to them.
///
///   a (4, 5) matrix padded by 1 before, the last mode reversed
///     ->  margins (1, 0) and (0, 1), box (4, 5):(5, -1) from element 4
std::optional<BoxedView> BoxOf(const View& view);

}  // namespace tensord::core
