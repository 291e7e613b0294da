#include "core/view/frame.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"

namespace tensord::core {
namespace {

bool HasElements(const ModeVector& extents) {
  return std::find(extents.begin(), extents.end(), 0) == extents.end();
}

}  // namespace

absl::StatusOr<Framed> DivideIntoFrame(const Layout& layout,
                                       const Margins& margins) {
  Framed result{.block = {layout.extents, layout.strides, 0}, .frame = {}};
  for (int m = 0; m < layout.mode_count(); ++m) {
    const int64_t extent = layout.extents[m], stride = layout.strides[m];
    const int64_t before = margins.before[m], after = margins.after[m];
    if (before > extent || after > extent - before) {
      return InvalidArgument("PADDING_TOO_LARGE", "mode ", m,
                             " of d has extent ", extent, ", less than its ",
                             "padding, ", before, " and ", after);
    }
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

}  // namespace tensord::core
