#include "core/base/layout.h"

#include <limits>
#include <random>
#include <set>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;

/// Offset of every element, in elements from the first.
std::vector<int64_t> Offsets(const Layout& layout) {
  std::vector<int64_t> offsets = {0};
  for (int mode = 0; mode < layout.mode_count(); ++mode) {
    std::vector<int64_t> longer;
    for (int64_t i = 0; i < layout.extents[mode]; ++i) {
      for (const int64_t offset : offsets) {
        longer.push_back(offset + i * layout.strides[mode]);
      }
    }
    offsets = std::move(longer);
  }
  return offsets;
}

Layout RandomLayout(std::mt19937& rng) {
  Layout layout;
  const auto rank = rng() % 5;
  for (size_t i = 0; i < rank; ++i) {
    layout.extents.push_back(
        static_cast<int64_t>(rng() % 20 == 0 ? 0 : 1 + rng() % 5));
    layout.strides.push_back(static_cast<int64_t>(1 + rng() % 30));
  }
  return layout;
}

// A0.4
TEST(PackedLayoutTest, StridesGrowFromTheFastestMode) {
  EXPECT_EQ(PackedLayout({4, 8, 12}, Order::kFirstModeFastest).strides,
            (ModeVector{1, 4, 32}));
  EXPECT_EQ(PackedLayout({2, 3, 4}, Order::kLastModeFastest).strides,
            (ModeVector{12, 4, 1}));
}

TEST(PackedLayoutTest, EmptyModeCountsAsOneForTheNext) {
  EXPECT_EQ(PackedLayout({3, 0, 5}, Order::kFirstModeFastest).strides,
            (ModeVector{1, 3, 3}));
}

// A0.11
TEST(PackedLayoutTest, ScalarHasOneElement) {
  const Layout scalar = PackedLayout({}, Order::kFirstModeFastest);
  EXPECT_EQ(ElementCount(scalar), 1);
  EXPECT_EQ(SpanElements(scalar), 1);
  EXPECT_TRUE(IsDense(scalar));
  EXPECT_TRUE(ValidateLayout(scalar, 16, "a").ok());
}

TEST(PackedLayoutTest, OverflowIsRefusedLater) {
  const int64_t large = int64_t{1} << 40;
  for (const Order order :
       {Order::kFirstModeFastest, Order::kLastModeFastest}) {
    EXPECT_EQ(ReasonOf(ValidateLayout(PackedLayout({large, large, 2}, order), 1,
                                      "a")),
              "SIZE_OVERFLOW");
  }
}

struct RefusedLayout {
  Layout layout;
  std::string reason;
  std::string message;
};

class ValidateLayoutTest : public ::testing::TestWithParam<RefusedLayout> {};

TEST_P(ValidateLayoutTest, RefusalNamesWhatIsWrong) {
  const absl::Status status = ValidateLayout(GetParam().layout, 4, "a");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), GetParam().reason);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ValidateLayoutTest,
    ::testing::Values(
        RefusedLayout{{ModeVector(65, 1), ModeVector(65, 1)},
                      "TOO_MANY_MODES",
                      "a has 65 modes, wanted at most 64"},
        RefusedLayout{
            {{2, 3}, {1}}, "STRIDE_COUNT_MISMATCH", "2 extents but 1"},
        RefusedLayout{
            {{2, -3}, {1, 2}}, "NEGATIVE_EXTENT", "extent 1 of a is -3"},
        // A0.6
        RefusedLayout{
            {{2, 3}, {1, 0}}, "STRIDE_NOT_POSITIVE", "stride 1 of a is 0"},
        RefusedLayout{
            {{2, 3}, {1, -2}}, "STRIDE_NOT_POSITIVE", "stride 1 of a is -2"},
        RefusedLayout{
            {{3}, {int64_t{1} << 62}}, "SIZE_OVERFLOW", "extents (3)"},
        RefusedLayout{
            {{int64_t{1} << 61}, {1}}, "SIZE_OVERFLOW", "2^63 - 1 bytes"},
        // An extent of 0 must not hide that others overflow.
        RefusedLayout{{{0, int64_t{1} << 62}, {1, 4}}, "SIZE_OVERFLOW", "(0,"},
        RefusedLayout{{{2, 2}, {int64_t{1} << 60, int64_t{1} << 60}},
                      "SIZE_OVERFLOW",
                      "spans more"}));

TEST(ValidateLayoutTest, LargestSpanIsTaken) {
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(ValidateLayout({{max / 8}, {1}}, 8, "a").ok());
  EXPECT_TRUE(ValidateLayout({{2}, {max / 8 - 1}}, 8, "a").ok());
  EXPECT_FALSE(ValidateLayout({{2}, {max / 8}}, 8, "a").ok());
  EXPECT_TRUE(
      ValidateLayout({ModeVector(64, 1), ModeVector(64, 1)}, 8, "a").ok());
}

TEST(LayoutTest, SpanReachesTheLastElement) {
  EXPECT_EQ(SpanElements({{3, 4}, {1, 8}}), 1 + 2 + 24);
  EXPECT_EQ(SpanElements({{3, 0}, {1, 8}}), 0);
}

TEST(LayoutTest, PropertiesAgreeWithTheAddresses) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Layout layout = RandomLayout(rng);
    ASSERT_TRUE(ValidateLayout(layout, 8, "a").ok());
    const std::vector<int64_t> offsets = Offsets(layout);
    const std::set<int64_t> distinct(offsets.begin(), offsets.end());
    EXPECT_EQ(ElementCount(layout), static_cast<int64_t>(offsets.size()));
    EXPECT_EQ(SpanElements(layout),
              offsets.empty() ? 0 : *distinct.rbegin() + 1);
    // IsInjective may miss an injective layout, never the other way round.
    if (IsInjective(layout)) {
      EXPECT_EQ(distinct.size(), offsets.size());
    }
    if (IsDense(layout)) {
      EXPECT_EQ(static_cast<int64_t>(distinct.size()), SpanElements(layout));
    }
  }
}

TEST(LayoutTest, PackedIsDenseInEitherOrder) {
  for (const Order order :
       {Order::kFirstModeFastest, Order::kLastModeFastest}) {
    EXPECT_TRUE(IsDense(PackedLayout({3, 1, 4, 5}, order)));
  }
  EXPECT_FALSE(IsDense({{3, 4}, {1, 8}}));
  EXPECT_TRUE(IsInjective({{3, 4}, {1, 8}}));
  EXPECT_FALSE(IsInjective({{3, 4}, {1, 2}}));
  EXPECT_TRUE(IsInjective({{3, 0}, {1, 1}})) << "an empty one shares nothing";
}

}  // namespace
}  // namespace tensord::core
