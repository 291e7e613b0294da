#include "core/backend/cuda/parts/loop_parts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/checked_math.h"

namespace tensord::core::cuda {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t Multiply(int64_t x, int64_t y) {
  return CheckedMultiply(x, y).value_or(kMost);
}

/// Of the extents, kMost when it does not fit.
int64_t Product(const ModeVector& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, Multiply);
}

/// Elements that parts may have along `mode` when all are to have at most
/// `limit`; 0 when not even one.
int64_t MostAlong(ModeVector extents, size_t mode, int64_t limit) {
  extents[mode] = 1;
  return limit / Product(extents);
}

/// Whether `extent` elements along the mode span a run in every operand.
bool KeepsRuns(const LoopMode<4>& mode, int64_t extent) {
  return std::all_of(
      mode.strides.begin(), mode.strides.end(), [&](int64_t stride) {
        return stride == 0 ||
               extent >= CeilDivide(LoopParts::kRunElements, stride);
      });
}

/// The least extent, a power of two, that moves every operand by a multiple of
/// kRunElements.
int64_t GrainOf(const LoopMode<4>& mode) {
  int64_t grain = 1;
  for (const int64_t stride : mode.strides) {
    grain = std::max(grain, LoopParts::kRunElements /
                                std::gcd(LoopParts::kRunElements, stride));
  }
  return grain;
}

/// The extent of as few parts of at most `most` elements as there can be.
int64_t PartExtent(const LoopMode<4>& mode, int64_t most) {
  const int64_t least = CeilDivide(mode.extent, CeilDivide(mode.extent, most));
  int64_t grain = GrainOf(mode);
  while (grain > 1 && RoundUp(least, grain) > most) grain /= 2;
  return RoundUp(least, grain);
}

}  // namespace

LoopParts::LoopParts(const LoopModes<4>& modes, size_t leading, int64_t limit) {
  std::vector<size_t> slowest_first(modes.size());
  std::iota(slowest_first.begin(), slowest_first.end(), size_t{0});
  std::stable_sort(
      slowest_first.begin(), slowest_first.end(), [&](size_t x, size_t y) {
        return modes[x].strides[leading] > modes[y].strides[leading];
      });
  for (const auto& mode : modes) whole_.push_back(mode.extent);
  part_ = whole_;
  const auto find = [&](auto&& accepts) -> std::optional<size_t> {
    for (const size_t m : slowest_first) {
      if (part_[m] > 1 && accepts(m)) return m;
    }
    return std::nullopt;
  };
  const auto most_along = [&](size_t m) { return MostAlong(part_, m, limit); };
  // Beyond the limit there is a mode that is not taken element by element yet,
  // and dividing the last such one suffices.
  while (Product(part_) > limit) {
    std::optional<size_t> divided = find([&](size_t m) {
      return most_along(m) >= 1 && KeepsRuns(modes[m], most_along(m));
    });
    std::optional<size_t> single;
    if (!divided) {
      single = find([&](size_t m) { return KeepsRuns(modes[m], 1); });
    }
    if (!divided && !single) {
      divided = find([&](size_t m) { return most_along(m) >= 1; });
    }
    if (divided) {
      split_ = *divided;
      part_[split_] = PartExtent(modes[split_], most_along(split_));
      split_count_ = CeilDivide(whole_[split_], part_[split_]);
      break;
    }
    if (!single) single = find([](size_t) { return true; });
    part_[*single] = 1;
    count_ = Multiply(count_, whole_[*single]);
  }
  const int64_t ends = count_;
  count_ = Multiply(count_, split_count_);
  shapes_ = {{part_, count_}};
  if (split_count_ > 1 && whole_[split_] % part_[split_] != 0) {
    shapes_[0].count -= ends;
    shapes_.push_back({part_, ends});
    shapes_[1].extents[split_] = whole_[split_] % part_[split_];
  }
}

size_t LoopParts::shape(int64_t number) const {
  const bool is_end = number % split_count_ == split_count_ - 1;
  return is_end ? shapes_.size() - 1 : 0;
}

ModeVector LoopParts::first(int64_t number) const {
  ModeVector first(whole_.size(), 0);
  if (split_count_ > 1) {
    first[split_] = number % split_count_ * part_[split_];
    number /= split_count_;
  }
  for (size_t m = 0; m < whole_.size(); ++m) {
    if (step(m) == 0 || (split_count_ > 1 && m == split_)) continue;
    first[m] = number % whole_[m];
    number /= whole_[m];
  }
  return first;
}

}  // namespace tensord::core::cuda
