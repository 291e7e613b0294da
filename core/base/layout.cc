#include "core/base/layout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {

Layout PackedLayout(const ModeVector& extents, Order order) {
  Layout layout{extents, ModeVector(extents.size())};
  int64_t stride = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    const size_t mode =
        order == Order::kFirstModeFastest ? i : extents.size() - 1 - i;
    layout.strides[mode] = stride;
    stride = SaturatingMultiply(stride, std::max<int64_t>(extents[mode], 1));
  }
  return layout;
}

absl::Status ValidateLayout(const Layout& layout, int64_t element_bytes,
                            absl::string_view what) {
  if (layout.extents.size() > kMaxModes) {
    return InvalidArgument("TOO_MANY_MODES", what, " has ",
                           layout.extents.size(), " modes, wanted at most ",
                           kMaxModes);
  }
  if (layout.strides.size() != layout.extents.size()) {
    return InvalidArgument("STRIDE_COUNT_MISMATCH", what, " has ",
                           layout.extents.size(), " extents but ",
                           layout.strides.size(), " strides");
  }
  bool empty = false;
  for (int i = 0; i < layout.mode_count(); ++i) {
    if (layout.extents[i] < 0) {
      return InvalidArgument("NEGATIVE_EXTENT", "extent ", i, " of ", what,
                             " is ", layout.extents[i], ", wanted >= 0");
    }
    if (layout.strides[i] <= 0) {
      return InvalidArgument(
          "STRIDE_NOT_POSITIVE", "stride ", i, " of ", what, " is ",
          layout.strides[i],
          ", wanted >= 1; to broadcast a mode, leave it out of the operand");
    }
    empty = empty || layout.extents[i] == 0;
  }
  std::optional<int64_t> count = 1;
  std::optional<int64_t> span = 1;
  for (int i = 0; i < layout.mode_count(); ++i) {
    // An extent of 0 must not hide that the other extents overflow.
    const int64_t extent = std::max<int64_t>(layout.extents[i], 1);
    if (count) count = CheckedMultiply(*count, extent);
    const auto reach = CheckedMultiply(extent - 1, layout.strides[i]);
    span = span && reach ? CheckedAdd(*span, *reach) : std::nullopt;
  }
  if (count) count = CheckedMultiply(*count, element_bytes);
  if (span) span = CheckedMultiply(*span, element_bytes);
  if (!count || !span) {
    return InvalidArgument("SIZE_OVERFLOW", what, " with extents ",
                           ToString(layout.extents), " and strides ",
                           ToString(layout.strides), " of ", element_bytes,
                           "-byte elements spans more than 2^63 - 1 bytes");
  }
  return absl::OkStatus();
}

int64_t ElementCount(const Layout& layout) {
  int64_t count = 1;
  for (const int64_t extent : layout.extents) count *= extent;
  return count;
}

int64_t SpanElements(const Layout& layout) {
  int64_t span = 1;
  for (int i = 0; i < layout.mode_count(); ++i) {
    if (layout.extents[i] == 0) return 0;
    span += (layout.extents[i] - 1) * layout.strides[i];
  }
  return span;
}

bool IsInjective(const Layout& layout) {
  absl::InlinedVector<std::pair<int64_t, int64_t>, 8> modes;  // stride, extent
  for (int i = 0; i < layout.mode_count(); ++i) {
    if (layout.extents[i] == 0) return true;
    if (layout.extents[i] > 1) {
      modes.emplace_back(layout.strides[i], layout.extents[i]);
    }
  }
  std::sort(modes.begin(), modes.end());
  int64_t span = 1;
  for (const auto& [stride, extent] : modes) {
    if (stride < span) return false;
    span += (extent - 1) * stride;
  }
  return true;
}

bool IsDense(const Layout& layout) {
  return IsInjective(layout) && SpanElements(layout) == ElementCount(layout);
}

bool AreAlike(const Layout& x, const Layout& y) {
  if (x.extents != y.extents) return false;
  if (ElementCount(x) == 0) return true;
  for (int i = 0; i < x.mode_count(); ++i) {
    if (x.extents[i] != 1 && x.strides[i] != y.strides[i]) return false;
  }
  return true;
}

std::string ToString(const ModeVector& values) {
  return absl::StrCat("(", absl::StrJoin(values, ", "), ")");
}

}  // namespace tensord::core
