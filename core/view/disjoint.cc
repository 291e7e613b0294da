#include "core/view/disjoint.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"

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

bool AreDisjoint(const std::vector<Range>& x, const std::vector<Range>& y) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (AreDisjoint(x[i], y[i])) return true;
  }
  return false;
}

bool IsEmpty(const StridedView& view) {
  return std::count(view.extents.begin(), view.extents.end(), 0) > 0;
}

/// A view with elements, and where it keeps to.
struct Placed {
  size_t number;
  bool is_written;
  std::vector<Range> modes;
};

using Pair = std::optional<std::pair<size_t, size_t>>;

/// The first that is written and another, if there are such.
Pair WrittenAndAnother(absl::Span<const Placed> placed) {
  for (const Placed& one : placed) {
    if (!one.is_written || placed.size() < 2) continue;
    const Placed& other = &one == &placed[0] ? placed[1] : placed[0];
    return std::pair(one.number, other.number);
  }
  return std::nullopt;
}

/// Looks for views that are not disjoint by dividing them, again and again,
/// into groups that are.
class Overlaps {
 public:
  explicit Overlaps(size_t count)
      : work_left_(kLeastWork + kWorkOfAView * static_cast<int64_t>(count)) {}

  Pair Find(absl::Span<Placed> placed) {
    groups_.push_back(placed);
    while (!groups_.empty()) {
      const absl::Span<Placed> group = groups_.back();
      groups_.pop_back();
      if (!WrittenAndAnother(group)) continue;
      work_left_ -= static_cast<int64_t>(group.size());
      if (Divide(group)) continue;
      if (const Pair found = Compare(group)) return found;
    }
    return std::nullopt;
  }

 private:
  // In views looked at: divisions of a grid take a few for each.
  static constexpr int64_t kLeastWork = 1'000'000;
  static constexpr int64_t kWorkOfAView = 64;

  /// Divides a group along some mode; false when it cannot.
  bool Divide(absl::Span<Placed> group) {
    for (size_t mode = 0; mode < group[0].modes.size(); ++mode) {
      if (ByRange(group, mode) || ByStep(group, mode)) return true;
    }
    return false;
  }

  bool ByRange(absl::Span<Placed> group, size_t mode) {
    std::ranges::sort(group, {}, [mode](const Placed& placed) {
      return placed.modes[mode].first;
    });
    int64_t last = group[0].modes[mode].last;
    size_t begin = 0;
    for (size_t i = 1; i < group.size(); ++i) {
      const Range& range = group[i].modes[mode];
      if (range.first > last) Add(group, std::exchange(begin, i), i);
      last = std::max(last, range.last);
    }
    if (begin == 0) return false;
    Add(group, begin, group.size());
    return true;
  }

  bool ByStep(absl::Span<Placed> group, size_t mode) {
    int64_t step = 0;
    for (const Placed& placed : group) {
      step = std::gcd(step, placed.modes[mode].step);
    }
    if (step <= 1) return false;
    const auto rest = [&](const Placed& placed) {
      return placed.modes[mode].first % step;
    };
    std::ranges::sort(group, {}, rest);
    size_t begin = 0;
    for (size_t i = 1; i < group.size(); ++i) {
      if (rest(group[i]) != rest(group[i - 1])) {
        Add(group, std::exchange(begin, i), i);
      }
    }
    if (begin == 0) return false;
    Add(group, begin, group.size());
    return true;
  }

  void Add(absl::Span<Placed> group, size_t begin, size_t end) {
    groups_.push_back(group.subspan(begin, end - begin));
  }

  Pair Compare(absl::Span<Placed> group) {
    for (const Placed& written : group) {
      if (!written.is_written) continue;
      work_left_ -= static_cast<int64_t>(group.size());
      for (const Placed& other : group) {
        if (&other == &written) continue;
        if (work_left_ < 0 || !AreDisjoint(written.modes, other.modes)) {
          return std::pair(written.number, other.number);
        }
      }
    }
    return std::nullopt;
  }

  std::vector<absl::Span<Placed>> groups_;
  int64_t work_left_;
};

}  // namespace

bool AreDisjoint(const Layout& storage, int64_t offset, const StridedView& x,
                 const StridedView& y) {
  if (IsEmpty(x) || IsEmpty(y)) return true;
  if (!IsInjective(storage)) return false;
  const auto x_ranges = RangesOf(storage, offset, x);
  const auto y_ranges = RangesOf(storage, offset, y);
  return x_ranges && y_ranges && AreDisjoint(*x_ranges, *y_ranges);
}

std::optional<std::pair<size_t, size_t>> FindOverlap(
    const Layout& storage, int64_t offset, absl::Span<const UsedView> views) {
  const bool is_injective = IsInjective(storage);
  std::vector<Placed> placed;
  std::optional<size_t> unknown;  // of `placed`: nobody knows where that is
  for (size_t i = 0; i < views.size(); ++i) {
    const auto& [view, is_written] = views[i];
    if (IsEmpty(view)) continue;
    Placed& one = placed.emplace_back(Placed{i, is_written, {}});
    auto modes = is_injective ? RangesOf(storage, offset, view) : std::nullopt;
    if (modes) {
      one.modes = *std::move(modes);
    } else if (!unknown || is_written) {
      unknown = placed.size() - 1;
    }
  }
  if (!unknown) return Overlaps(placed.size()).Find(absl::MakeSpan(placed));
  // With whatever else is written, or, if it is written, with anything else.
  std::swap(placed[0], placed[*unknown]);
  return WrittenAndAnother(placed);
}

}  // namespace tensord::core
