#include "core/view/aligned_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {

absl::StatusOr<Layout> AlignedLayout(const ModeVector& extents,
                                     int64_t multiple, Order order) {
  if (multiple < 1) {
    return InvalidArgument("ALIGNMENT_NOT_POSITIVE", "rows are to begin at ",
                           "multiples of ", multiple, ", wanted >= 1");
  }
  Layout layout = PackedLayout(extents, order);
  TENSORD_RETURN_IF_ERROR(ValidateLayout(layout, 1, "the aligned layout"));
  if (extents.size() < 2) return layout;
  const size_t fastest =
      order == Order::kFirstModeFastest ? 0 : extents.size() - 1;
  // A fastest mode of extent 0 or 1 still makes a row of its own.
  const int64_t row = std::max<int64_t>(extents[fastest], 1);
  const int64_t gaps = (multiple - row % multiple) % multiple;
  const auto padded_row = CheckedAdd(row, gaps);
  if (!padded_row) {
    return InvalidArgument("SIZE_OVERFLOW", "extent ", row,
                           " rounded up to a multiple of ", multiple,
                           " is beyond 2^63 - 1");
  }
  ModeVector padded = extents;
  padded[fastest] = *padded_row;
  layout = {extents, PackedLayout(padded, order).strides};
  TENSORD_RETURN_IF_ERROR(ValidateLayout(layout, 1, "the aligned layout"));
  return layout;
}

int64_t AllocationElements(const ModeVector& extents,
                           const ModeVector& strides) {
  int64_t span = 1;
  int64_t largest = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0) return 0;
    const int64_t stride = std::abs(strides[i]);
    span += (extents[i] - 1) * stride;
    largest = std::max(largest, SaturatingMultiply(extents[i], stride));
  }
  return std::max(span, largest);
}

}  // namespace tensord::core
