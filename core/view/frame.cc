#include "core/view/frame.h"

#include <algorithm>
#include <utility>

namespace tensord::core {
namespace {

bool HasElements(const ModeVector& extents) {
  return std::find(extents.begin(), extents.end(), 0) == extents.end();
}

}  // namespace

Framed DivideIntoFrame(const Layout& layout, const Margins& margins) {
  Framed result{.block = {layout.extents, layout.strides, 0}, .frame = {}};
  for (int m = 0; m < layout.mode_count(); ++m) {
    const int64_t extent = layout.extents[m], stride = layout.strides[m];
    const int64_t before = margins.before[m], after = margins.after[m];
    // Of the modes before this one, the frame has their margins already.
    const auto add = [&](int64_t first, int64_t count) {
      StridedView part = result.block;
      part.extents[m] = count;
      if (!HasElements(part.extents)) return;
      part.offset += first * stride;
      result.frame.push_back(std::move(part));
    };
    add(0, before);
    add(extent - after, after);
    result.block.extents[m] = extent - before - after;
    // Where there are no elements, products need not fit.
    if (HasElements(result.block.extents)) {
      result.block.offset += before * stride;
    }
  }
  return result;
}

std::vector<StridedView> PartsToFill(const Layout& layout,
                                     const Margins& margins,
                                     const Framed& framed,
                                     int64_t element_bytes) {
  // Few lines of 64 bytes.
  constexpr int64_t kShortRow = 512;
  for (int m = 0; m < layout.mode_count(); ++m) {
    const bool has_margin = margins.before[m] > 0 || margins.after[m] > 0;
    if (has_margin && layout.strides[m] == 1 && layout.extents[m] > 1 &&
        layout.extents[m] * element_bytes <= kShortRow &&
        framed.frame.size() > 1) {
      return {{layout.extents, layout.strides, 0}};
    }
  }
  return framed.frame;
}

}  // namespace tensord::core
