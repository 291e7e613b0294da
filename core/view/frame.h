// A block of a layout, and what lies around it.
#pragma once

#include <vector>

#include "core/base/layout.h"
#include "core/view/view.h"

namespace tensord::core {

/// How many indices of each mode lie around a block.
struct Margins {
  ModeVector before;  // (mode), >= 0
  ModeVector after;   // (mode), >= 0
};

/// A layout divided into a block and its frame; offsets count from the layout's
/// first element. That of a block without elements means nothing.
struct Framed {
  StridedView block;
  /// Parts that have elements and share none: at most two a mode.
  std::vector<StridedView> frame;
};

/// The block of `layout` that is left between the margins.
///
///   (6, 4) less (1, 0) before and (2, 1) after  ->  block (3, 3) from (1, 0);
///   frame (1, 4) from (0, 0), (2, 4) from (4, 0), (3, 1) from (1, 3)
///
/// Requires  a valid layout; margins, one a mode, that it has room for.
Framed DivideIntoFrame(const Layout& layout, const Margins& margins);

/// What to fill of `layout`, before the block is written, so that its frame is
/// filled: the parts, or the whole layout where rows are so short that every
/// line of memory has some of the frame.
std::vector<StridedView> PartsToFill(const Layout& layout,
                                     const Margins& margins,
                                     const Framed& framed,
                                     int64_t element_bytes);

}  // namespace tensord::core
