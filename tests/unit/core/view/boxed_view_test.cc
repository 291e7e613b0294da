#include "core/view/boxed_view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "core/view/indexing.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord::core {
namespace {

Stage Pads(const std::vector<transform::Pad>& pads) {
  Stage stage;
  for (int i = 0; i < static_cast<int>(pads.size()); ++i) {
    stage.transforms.push_back({pads[i], {i}, {i}});
  }
  return stage;
}

View Indexed(const View& view, const std::vector<IndexItem>& items) {
  return view.Then(IndexStage(items, view.extents()).value()).value();
}

/// Where the box says that each index leads, last mode fastest; -1 in padding.
std::vector<int64_t> ElementsOf(const BoxedView& boxed,
                                const ModeVector& extents) {
  std::vector<int64_t> elements;
  for (const test::Coordinates& at : test::AllCoordinates(extents)) {
    int64_t element = boxed.box.offset;
    for (size_t m = 0; m < at.size(); ++m) {
      const int64_t index = at[m] - boxed.margins.before[m];
      if (index < 0 || index >= boxed.box.extents[m]) {
        element = -1;
        break;
      }
      element += index * boxed.box.strides[m];
    }
    elements.push_back(element);
  }
  return elements;
}

void ExpectSame(const BoxedView& boxed, const View& view) {
  for (size_t m = 0; m < view.extents().size(); ++m) {
    ASSERT_EQ(
        boxed.margins.before[m] + boxed.box.extents[m] + boxed.margins.after[m],
        view.extents()[m]);
  }
  ASSERT_EQ(ElementsOf(boxed, view.extents()), test::ElementsOf(view));
}

TEST(BoxedViewTest, PadsAreMargins) {
  const Layout matrix = PackedLayout({4, 5}, Order::kLastModeFastest);
  const View padded = View::Create(matrix, 3, {Pads({{1, 2}, {0, 3}})}).value();
  const BoxedView boxed = BoxOf(padded).value();
  EXPECT_EQ(boxed.margins.before, (ModeVector{1, 0}));
  EXPECT_EQ(boxed.margins.after, (ModeVector{2, 3}));
  EXPECT_EQ(boxed.box, (StridedView{{4, 5}, {5, 1}, 3}));
  ExpectSame(boxed, padded);
}

TEST(BoxedViewTest, StepsOverPaddingLeaveABox) {
  const Layout matrix = PackedLayout({4, 5}, Order::kLastModeFastest);
  const View padded = View::Create(matrix, 0, {Pads({{3, 4}, {2, 5}})}).value();
  for (const int64_t step : {1, 2, 3, 7, -1, -2, -3, -9}) {
    const View view =
        Indexed(padded, {SliceItem{{}, {}, step}, SliceItem{{}, {}, -step}});
    const auto boxed = BoxOf(view);
    ASSERT_TRUE(boxed.has_value()) << step;
    ExpectSame(*boxed, view);
    const auto again = BoxOf(view.Then(Pads({{1, 0}, {0, 2}})).value());
    ASSERT_TRUE(again.has_value()) << step;
    ExpectSame(*again, view.Then(Pads({{1, 0}, {0, 2}})).value());
  }
}

TEST(BoxedViewTest, NothingButPaddingIsAnEmptyBox) {
  const Layout vector = PackedLayout({4}, Order::kLastModeFastest);
  const View padded = View::Create(vector, 0, {Pads({{6, 2}})}).value();
  const View margin = Indexed(padded, {SliceItem{0, 5, 1}});
  ExpectSame(BoxOf(margin).value(), margin);
  const View none = Indexed(padded, {SliceItem{3, 3, 1}});
  ExpectSame(BoxOf(none).value(), none);
}

TEST(BoxedViewTest, PaddingInTheMiddleIsNoBox) {
  // Rows of 4, padded to 5 and put behind each other.
  const Layout matrix = PackedLayout({3, 4}, Order::kLastModeFastest);
  const Stage merge = {
      {{transform::Merge{Order::kLastModeFastest}, {0, 1}, {0}}}};
  const View view =
      View::Create(matrix, 0, {Pads({{0, 0}, {0, 1}}), merge}).value();
  EXPECT_FALSE(BoxOf(view).has_value());
}

TEST(BoxedViewTest, RandomViewsAreWhatTheirBoxesSay) {
  int padded_count = 0, none_count = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    ModeVector extents;
    for (size_t m = rng() % 4; m > 0; --m) {
      extents.push_back(static_cast<int64_t>(rng() % 5));
    }
    View view =
        View::Create(PackedLayout(extents, Order::kLastModeFastest), rng() % 4)
            .value();
    for (size_t stages = 1 + rng() % 5; stages > 0; --stages) {
      view = view.Then(test::RandomStage(rng, view.extents(), 500)).value();
    }
    const auto boxed = BoxOf(view);
    if (!boxed) {
      EXPECT_FALSE(view.strided().has_value());
      ++none_count;
      continue;
    }
    padded_count += view.may_pad() ? 1 : 0;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(*boxed, view));
  }
  EXPECT_GT(padded_count, 200);
  EXPECT_GT(none_count, 200);
}

}  // namespace
}  // namespace tensord::core
