#include "core/view/aligned_layout.h"

#include <limits>
#include <string>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;

constexpr auto kFirst = Order::kFirstModeFastest;
constexpr auto kLast = Order::kLastModeFastest;

// D3
TEST(AlignedLayoutTest, RowsBeginAtMultiples) {
  EXPECT_EQ(*AlignedLayout({4, 5}, 8, kLast), (Layout{{4, 5}, {8, 1}}));
  EXPECT_EQ(*AlignedLayout({5, 4}, 8, kFirst), (Layout{{5, 4}, {1, 8}}));
  EXPECT_EQ(*AlignedLayout({3, 4, 5}, 4, kLast),
            (Layout{{3, 4, 5}, {32, 8, 1}}));
  EXPECT_EQ(*AlignedLayout({4, 8}, 8, kLast), (Layout{{4, 8}, {8, 1}}));
  EXPECT_EQ(*AlignedLayout({5}, 8, kLast), (Layout{{5}, {1}}));
  EXPECT_EQ(*AlignedLayout({}, 8, kLast), Layout{});
}

TEST(AlignedLayoutTest, EmptyModesKeepTheirRows) {
  EXPECT_EQ(AlignedLayout({4, 0}, 8, kLast)->strides, (ModeVector{8, 1}));
  EXPECT_EQ(AlignedLayout({0, 5}, 8, kLast)->strides, (ModeVector{8, 1}));
}

TEST(AlignedLayoutTest, RefusalNamesWhatIsWrong) {
  const int64_t max = std::numeric_limits<int64_t>::max();
  const auto zero = AlignedLayout({4, 5}, 0, kLast).status();
  EXPECT_EQ(ReasonOf(zero), "ALIGNMENT_NOT_POSITIVE");
  EXPECT_THAT(std::string(zero.message()), HasSubstr("multiples of 0"));
  EXPECT_EQ(ReasonOf(AlignedLayout({4, -5}, 8, kLast).status()),
            "NEGATIVE_EXTENT");
  EXPECT_EQ(ReasonOf(AlignedLayout({1, max}, 8, kLast).status()),
            "SIZE_OVERFLOW");
  EXPECT_EQ(ReasonOf(AlignedLayout({4, 5}, max, kLast).status()),
            "SIZE_OVERFLOW");
  EXPECT_EQ(ReasonOf(AlignedLayout(ModeVector(65, 1), 8, kLast).status()),
            "TOO_MANY_MODES");
}

// D1, D2, D4: the page says 24 and 32, CK Tile's source 20 and 29.
TEST(AllocationTest, HasTheLastGapThatTheSpanLacks) {
  const Layout custom{{3, 4}, {8, 1}};
  EXPECT_EQ(SpanElements(custom), 20);
  EXPECT_EQ(AllocationElements(custom.extents, custom.strides), 24);
  const Layout aligned = *AlignedLayout({4, 5}, 8, kLast);
  EXPECT_EQ(SpanElements(aligned), 29);
  EXPECT_EQ(AllocationElements(aligned.extents, aligned.strides), 32);
  const Layout packed = PackedLayout({3, 4}, kLast);
  EXPECT_EQ(SpanElements(packed), 12);
  EXPECT_EQ(AllocationElements(packed.extents, packed.strides), 12);
}

TEST(AllocationTest, IsNeverBelowTheSpan) {
  EXPECT_EQ(AllocationElements({}, {}), 1);
  EXPECT_EQ(AllocationElements({0, 5}, {8, 1}), 0);
  EXPECT_EQ(AllocationElements({2, 2}, {1, 1}), 3) << "elements shared";
  EXPECT_EQ(AllocationElements({3, 4}, {-8, 1}), 24);
  EXPECT_EQ(AllocationElements({3, 4}, {0, 1}), 4);
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(AllocationElements({2, 1}, {max - 1, 1}), max);
}

}  // namespace
}  // namespace tensord::core
