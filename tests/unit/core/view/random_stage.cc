#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "core/base/layout.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord::core::test {
namespace {

/// Makes one transform after another of the modes that are left.
class RandomStageBuilder {
 public:
  RandomStageBuilder(std::mt19937& rng, const ModeVector& extents)
      : rng_(rng), extents_(extents) {
    for (int mode = 0; mode < static_cast<int>(extents.size()); ++mode) {
      left_.push_back(mode);
    }
    std::shuffle(left_.begin(), left_.end(), rng_);
  }

  Stage Build() {
    if (Below(6) == 0) Place(transform::Insert{Below(4)}, 0, 1);
    if (Below(8) == 0) {
      Place(transform::Replicate{{1 + Below(3), 1 + Below(2)}}, 0, 2);
    }
    if (Below(20) == 0) Place(transform::Merge{AnyOrder()}, 0, 1);
    while (!left_.empty()) PlaceAny();
    std::vector<int> positions(static_cast<size_t>(upper_count_));
    for (int i = 0; i < upper_count_; ++i) positions[i] = i;
    if (Below(3) > 0) std::shuffle(positions.begin(), positions.end(), rng_);
    for (PlacedTransform& placed : stage_.transforms) {
      for (int& mode : placed.upper) mode = positions[mode];
    }
    std::shuffle(stage_.transforms.begin(), stage_.transforms.end(), rng_);
    return stage_;
  }

 private:
  int64_t Below(int64_t limit) {
    const uint64_t bits = uint64_t{rng_()} << 32 | rng_();
    return static_cast<int64_t>(bits % static_cast<uint64_t>(limit));
  }
  Order AnyOrder() {
    return Below(2) == 0 ? Order::kFirstModeFastest : Order::kLastModeFastest;
  }
  int64_t LeftExtent(size_t i) const { return extents_[left_[i]]; }

  void Place(Transform transform, size_t lower_count, int upper_count) {
    PlacedTransform placed{std::move(transform), {}, {}};
    placed.lower.assign(left_.begin(), left_.begin() + lower_count);
    left_.erase(left_.begin(), left_.begin() + lower_count);
    for (int i = 0; i < upper_count; ++i)
      placed.upper.push_back(upper_count_++);
    stage_.transforms.push_back(std::move(placed));
  }

  void PlaceAny() {
    const int64_t extent = LeftExtent(0);
    switch (Below(12)) {
      case 0: return Place(transform::PassThrough{}, 1, 1);
      case 1:
        return Place(
            transform::Merge{AnyOrder()},
            1 + Below(std::min<int64_t>(3, static_cast<int64_t>(left_.size()))),
            1);
      case 2: return PlaceUnmerge(extent);
      case 3: return PlaceSlice(extent);
      case 4: return Place(transform::Pad{Below(3), Below(3)}, 1, 1);
      case 5:
        if (extent == 0) return;
        return Place(transform::Freeze{Below(extent)}, 1, 0);
      case 6: return PlaceEmbed(extent);
      case 7: {
        if (extent == 0) return Place(transform::Modulo{1, 0}, 1, 1);
        const int64_t modulus = 1 + Below(extent);
        return Place(transform::Modulo{modulus, Below(2 * extent + 1)}, 1, 1);
      }
      case 8: return PlaceXor();
      case 9: {
        const int64_t offset = Below(extent + 1);
        return Place(transform::Offset{offset, Below(extent - offset + 1)}, 1,
                     1);
      }
      case 10: return PlaceDiagonal();
      default: return Place(transform::PassThrough{}, 1, 1);
    }
  }

  void PlaceUnmerge(int64_t extent) {
    ModeVector factors;
    int64_t rest = extent;
    for (int64_t i = Below(3); i > 0; --i) {
      int64_t divisor = 1 + Below(std::clamp<int64_t>(rest, 1, 64));
      while (rest % divisor != 0) --divisor;
      factors.push_back(divisor);
      rest /= divisor;
    }
    factors.push_back(rest);
    std::shuffle(factors.begin(), factors.end(), rng_);
    const auto count = static_cast<int>(factors.size());
    Place(transform::Unmerge{factors, AnyOrder()}, 1, count);
  }

  void PlaceSlice(int64_t extent) {
    if (extent == 0) return Place(transform::Slice{0, 0, 1}, 1, 1);
    const int64_t start = Below(extent);
    const int64_t step = 1 + Below(3);
    if (Below(2) == 0) {
      Place(transform::Slice{start, Below(extent + 1), step}, 1, 1);
    } else {
      Place(transform::Slice{start, Below(extent + 1) - 1, -step}, 1, 1);
    }
  }

  void PlaceEmbed(int64_t extent) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const transform::Embed embed{{1 + Below(4), 1 + Below(3)},
                                   {Below(7) - 3, Below(7) - 3},
                                   Below(extent + 1)};
      int64_t lowest = embed.constant;
      int64_t highest = embed.constant;
      for (int i = 0; i < 2; ++i) {
        const int64_t reach = (embed.extents[i] - 1) * embed.coefficients[i];
        (reach < 0 ? lowest : highest) += reach;
      }
      if (lowest >= 0 && highest < extent) return Place(embed, 1, 2);
    }
  }

  void PlaceXor() {
    for (size_t i = 1; i < left_.size(); ++i) {
      if (LeftExtent(i) == 0 ||
          std::has_single_bit(static_cast<uint64_t>(LeftExtent(i)))) {
        std::swap(left_[1], left_[i]);
        return Place(transform::Xor{}, 2, 2);
      }
    }
  }

  void PlaceDiagonal() {
    for (size_t i = 1; i < left_.size(); ++i) {
      if (LeftExtent(i) == LeftExtent(0)) {
        std::swap(left_[1], left_[i]);
        return Place(transform::Diagonal{}, 2, 1);
      }
    }
  }

  std::mt19937& rng_;
  const ModeVector& extents_;
  std::vector<int> left_;
  Stage stage_;
  int upper_count_ = 0;
};

}  // namespace

Stage RandomStage(std::mt19937& rng, const ModeVector& extents,
                  int64_t element_limit) {
  while (true) {
    const Stage stage = RandomStageBuilder(rng, extents).Build();
    const auto upper = UpperExtents(stage, extents, 0);
    if (!upper.ok() || upper->size() > 6) continue;
    const int64_t count = ElementCount(Layout{*upper, *upper});
    // Few empty ones: they stay so.
    if (count <= element_limit && (count > 0 || rng() % 8 == 0)) return stage;
  }
}

Layout RandomStorage(std::mt19937& rng, int64_t scale) {
  ModeVector extents(rng() % 5);
  constexpr int64_t kExtents[] = {1, 2, 2, 3, 4, 4, 5, 6, 8};
  for (int64_t& extent : extents) extent = kExtents[rng() % 9] * scale;
  if (!extents.empty() && rng() % 40 == 0) extents[0] = 0;
  Layout layout =
      PackedLayout(extents, rng() % 2 == 0 ? Order::kFirstModeFastest
                                           : Order::kLastModeFastest);
  for (int64_t& stride : layout.strides) {
    if (rng() % 4 == 0) stride += static_cast<int64_t>(rng() % 7);
  }
  std::vector<size_t> order(extents.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), rng);
  Layout shuffled;
  for (const size_t mode : order) {
    shuffled.extents.push_back(layout.extents[mode]);
    shuffled.strides.push_back(layout.strides[mode]);
  }
  return shuffled;
}

}  // namespace tensord::core::test
