#include "core/view/frame.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace tensord::core {
namespace {

/// Offsets of all elements, in no order.
std::vector<int64_t> OffsetsOf(const StridedView& view) {
  std::vector<int64_t> offsets = {view.offset};
  for (size_t m = 0; m < view.extents.size(); ++m) {
    std::vector<int64_t> next;
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < view.extents[m]; ++i) {
        next.push_back(offset + i * view.strides[m]);
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

TEST(FrameTest, OfAMatrixHasFourParts) {
  const Layout layout = PackedLayout({6, 4}, Order::kFirstModeFastest);
  const Framed framed = DivideIntoFrame(layout, {{1, 2}, {3, 1}});
  EXPECT_EQ(framed.block, (StridedView{{2, 1}, {1, 6}, 13}));
  EXPECT_EQ(framed.frame, (std::vector<StridedView>{{{1, 4}, {1, 6}, 0},
                                                    {{3, 4}, {1, 6}, 3},
                                                    {{2, 2}, {1, 6}, 1},
                                                    {{2, 1}, {1, 6}, 19}}));
}

TEST(FrameTest, WithoutMarginsThereIsNone) {
  const Layout layout = PackedLayout({6, 4}, Order::kFirstModeFastest);
  const Framed framed = DivideIntoFrame(layout, {{0, 0}, {0, 0}});
  EXPECT_EQ(framed.block, (StridedView{{6, 4}, {1, 6}, 0}));
  EXPECT_TRUE(framed.frame.empty());
  EXPECT_TRUE(DivideIntoFrame({}, {}).frame.empty());
}

TEST(FrameTest, EveryElementIsInOnePart) {
  std::mt19937 rng(7);
  const auto draw = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(rng);
  };
  for (int trial = 0; trial < 2000; ++trial) {
    ModeVector extents;
    Margins margins;
    for (int64_t m = draw(4); m > 0; --m) {
      const int64_t extent = draw(5);
      extents.push_back(extent);
      margins.before.push_back(draw(extent));
      margins.after.push_back(draw(extent - margins.before.back()));
    }
    Layout layout = PackedLayout(extents, Order::kLastModeFastest);
    for (int64_t& stride : layout.strides) stride *= 3;  // with gaps
    const Framed framed = DivideIntoFrame(layout, margins);
    std::multiset<int64_t> got;
    for (const StridedView& part : framed.frame) {
      const std::vector<int64_t> offsets = OffsetsOf(part);
      EXPECT_FALSE(offsets.empty());
      got.insert(offsets.begin(), offsets.end());
    }
    const std::vector<int64_t> block = OffsetsOf(framed.block);
    got.insert(block.begin(), block.end());
    const std::vector<int64_t> all =
        OffsetsOf({layout.extents, layout.strides, 0});
    ASSERT_EQ(got, std::multiset<int64_t>(all.begin(), all.end()))
        << ToString(extents) << " less " << ToString(margins.before) << " and "
        << ToString(margins.after);
  }
}

TEST(FrameTest, MarginsOfShortRowsAreFilledWithTheRows) {
  const auto parts = [](const ModeVector& extents, const Margins& margins) {
    const Layout layout = PackedLayout(extents, Order::kFirstModeFastest);
    return PartsToFill(layout, margins, DivideIntoFrame(layout, margins), 4);
  };
  EXPECT_EQ(parts({4, 100}, {{1, 0}, {1, 0}}),
            (std::vector<StridedView>{{{4, 100}, {1, 4}, 0}}));
  EXPECT_EQ(parts({1000, 100}, {{1, 0}, {1, 0}}).size(), 2u);
  EXPECT_EQ(parts({4, 100}, {{0, 1}, {0, 1}}).size(), 2u);
  EXPECT_TRUE(parts({4, 100}, {{0, 0}, {0, 0}}).empty());
}

TEST(FrameTest, ProductsOfLayoutsWithoutElementsNeedNotFit) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  const Layout nothing{{0, kLarge}, {1, kLarge}};
  EXPECT_TRUE(DivideIntoFrame(nothing, {{0, kLarge}, {0, 0}}).frame.empty());
  const Layout two{{2}, {std::numeric_limits<int64_t>::max()}};
  EXPECT_EQ(DivideIntoFrame(two, {{2}, {0}}).block.extents, ModeVector{0});
}

}  // namespace
}  // namespace tensord::core
