#include "tensord/layout.h"

#include <gtest/gtest.h>

namespace tensord {
namespace {

using Extents = std::vector<int64_t>;

TEST(LayoutTest, PackedStridesFollowTheOrder) {
  EXPECT_EQ(PackedStrides({2, 3, 4}, Order::kFirstModeFastest),
            (Extents{1, 2, 6}));
  EXPECT_EQ(PackedStrides({2, 3, 4}, Order::kLastModeFastest),
            (Extents{12, 4, 1}));
  EXPECT_EQ(PackedStrides({2, 0, 4}, Order::kLastModeFastest),
            (Extents{4, 4, 1}));
}

TEST(LayoutTest, CountsElements) {
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ElementCount({2, 3, 4}), 24);
  EXPECT_EQ(ElementCount({int64_t{1} << 62, 4, 0}), 0);
  EXPECT_EQ(ElementCount({int64_t{1} << 62, 4}), -1);
  EXPECT_EQ(ElementCount({2, -1}), -1);
}

TEST(LayoutTest, SpanCountsGaps) {
  EXPECT_EQ(SpanElements({{2, 3}, {10, 1}}), 13);
  EXPECT_EQ(SpanElements({{2, 0}, {10, 1}}), 0);
  EXPECT_EQ(SpanElements({{}, {}}), 1);
  EXPECT_EQ(SpanElements({{2, 3}, {-10, 1}}), -1);
  EXPECT_EQ(SpanElements({{3}, {INT64_MAX}}), -1);
}

TEST(LayoutTest, StridesOfSingleElementsDoNotMatterToPacking) {
  const Order c = Order::kLastModeFastest;
  const Order fortran = Order::kFirstModeFastest;
  EXPECT_TRUE(IsPacked({{2, 1, 3}, {3, 99, 1}}, c));
  EXPECT_FALSE(IsPacked({{2, 3}, {3, 1}}, fortran));
  EXPECT_FALSE(IsPacked({{2, 3}, {4, 1}}, c));
  EXPECT_TRUE(IsPacked({{2, 3}, {}, fortran}, fortran));
  EXPECT_FALSE(IsPacked({{2, 3}, {}, fortran}, c));
  EXPECT_TRUE(IsPacked({{5}, {}, fortran}, c));
}

TEST(LayoutTest, HostViewKnowsItsElementType) {
  const std::vector<double> values(6);
  const HostView<double> view{values.data(), {2, 3}};
  const UntypedHostView untyped = view;
  EXPECT_EQ(untyped.element_type, ElementType::kFloat64);
  EXPECT_EQ(untyped.layout.extents, (Extents{2, 3}));
}

}  // namespace
}  // namespace tensord
