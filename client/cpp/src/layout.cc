#include "tensord/layout.h"

#include <algorithm>

namespace tensord {
namespace {

/// a * b + c, or -1 when it exceeds int64.
int64_t MultiplyAdd(int64_t a, int64_t b, int64_t c) {
  int64_t product = 0;
  int64_t sum = 0;
  if (__builtin_mul_overflow(a, b, &product) ||
      __builtin_add_overflow(product, c, &sum)) {
    return -1;
  }
  return sum;
}

}  // namespace

std::vector<int64_t> PackedStrides(const std::vector<int64_t>& extents,
                                   Order order) {
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    const size_t mode =
        order == Order::kFirstModeFastest ? i : extents.size() - 1 - i;
    strides[mode] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(extents[mode], 1),
                               &stride)) {
      stride = INT64_MAX;
    }
  }
  return strides;
}

int64_t ElementCount(const std::vector<int64_t>& extents) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t extent : extents) {
    if (extent < 0) return -1;
    if (extent == 0) empty = true;
    if (count >= 0 && extent > 0) count = MultiplyAdd(count, extent, 0);
  }
  return empty ? 0 : count;
}

int64_t SpanElements(const Layout& layout) {
  const int64_t count = ElementCount(layout.extents);
  if (layout.strides.empty() || count <= 0) return count;
  int64_t last = 0;
  for (size_t mode = 0; mode < layout.extents.size(); ++mode) {
    if (layout.strides[mode] < 0) return -1;
    last = MultiplyAdd(layout.extents[mode] - 1, layout.strides[mode], last);
    if (last < 0) return -1;
  }
  return MultiplyAdd(last, 1, 1);
}

bool IsPacked(const Layout& layout, Order order) {
  const std::vector<int64_t> packed = PackedStrides(layout.extents, order);
  if (ElementCount(layout.extents) <= 1) return true;
  if (layout.strides.empty()) {
    return packed == PackedStrides(layout.extents, layout.order);
  }
  for (size_t mode = 0; mode < packed.size(); ++mode) {
    if (layout.extents[mode] != 1 && layout.strides[mode] != packed[mode]) {
      return false;
    }
  }
  return true;
}

}  // namespace tensord
