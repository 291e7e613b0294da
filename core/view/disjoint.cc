#include "core/view/disjoint.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace tensord::core {
namespace {

/// A mode of the storage, and which of its indices a view has: some of first,
/// first + step, ..., last.
struct Range {
  int64_t extent;
  int64_t stride;
  int64_t first = 0;
  int64_t last = 0;
  int64_t step = 0;  // 0: one index
};

/// The modes of `storage` that count, the slowest first.
std::vector<Range> ModesOf(const Layout& storage) {
  std::vector<Range> modes;
  for (int i = 0; i < storage.mode_count(); ++i) {
    if (storage.extents[i] > 1) {
      modes.push_back({storage.extents[i], storage.strides[i]});
    }
  }
  std::sort(modes.begin(), modes.end(),
            [](const Range& a, const Range& b) { return a.stride > b.stride; });
  return modes;
}

/// Adds a mode of a view to the ranges of the modes of the storage that it goes
/// along. False when it is not made of those.
bool AddMode(int64_t extent, int64_t stride, std::vector<Range>& modes) {
  if (extent == 1 || stride == 0) return true;
  auto mode = std::find_if(modes.begin(), modes.end(), [&](const Range& m) {
    return m.stride <= stride && stride % m.stride == 0;
  });
  if (mode == modes.end()) return false;
  // A mode that runs through whole modes of the storage goes on in the next.
  while (stride == mode->stride && mode->first == 0 && mode->last == 0 &&
         extent > mode->extent && extent % mode->extent == 0 &&
         mode != modes.begin() && (mode - 1)->stride == stride * mode->extent) {
    mode->last = mode->extent - 1;
    mode->step = 1;
    extent /= mode->extent;
    stride = (--mode)->stride;
  }
  const int64_t step = stride / mode->stride;
  if (extent - 1 > (mode->extent - 1 - mode->last) / step) return false;
  mode->last += step * (extent - 1);
  mode->step = std::gcd(mode->step, step);
  return true;
}

/// Where `view` keeps to, or nothing when it is not made of modes of the
/// storage.
std::optional<std::vector<Range>> RangesOf(const Layout& storage,
                                           int64_t offset,
                                           const StridedView& view) {
  std::vector<Range> modes = ModesOf(storage);
  int64_t rest = view.offset - offset;
  for (Range& mode : modes) {
    mode.first = mode.last = rest / mode.stride;
    rest %= mode.stride;
    if (mode.first >= mode.extent) return std::nullopt;
  }
  if (rest != 0) return std::nullopt;
  for (size_t i = 0; i < view.extents.size(); ++i) {
    if (!AddMode(view.extents[i], view.strides[i], modes)) return std::nullopt;
  }
  return modes;
}

bool AreDisjoint(const Range& x, const Range& y) {
  if (x.last < y.first || y.last < x.first) return true;
  const int64_t step = std::gcd(x.step, y.step);
  return step > 1 && (x.first - y.first) % step != 0;
}

}  // namespace

bool AreDisjoint(const Layout& storage, int64_t offset, const StridedView& x,
                 const StridedView& y) {
  const auto is_empty = [](const StridedView& view) {
    return std::count(view.extents.begin(), view.extents.end(), 0) > 0;
  };
  if (is_empty(x) || is_empty(y)) return true;
  if (!IsInjective(storage)) return false;
  const auto x_ranges = RangesOf(storage, offset, x);
  const auto y_ranges = RangesOf(storage, offset, y);
  if (!x_ranges || !y_ranges) return false;
  for (size_t i = 0; i < x_ranges->size(); ++i) {
    if (AreDisjoint((*x_ranges)[i], (*y_ranges)[i])) return true;
  }
  return false;
}

}  // namespace tensord::core
