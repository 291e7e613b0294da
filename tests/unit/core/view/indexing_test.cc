#include "core/view/indexing.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/view/view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord::core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Items = std::vector<IndexItem>;

constexpr AllItem kAll;
constexpr NewModeItem kNewMode;
constexpr EllipsisItem kEllipsis;

StridedView Indexed(const Layout& layout, const Items& items) {
  const auto stage = IndexStage(items, layout.extents);
  EXPECT_TRUE(stage.ok()) << stage.status();
  const auto view = View::Create(layout, 0, {*stage});
  EXPECT_TRUE(view.ok()) << view.status();
  EXPECT_TRUE(view->strided().has_value());
  return *view->strided();
}

// E3
TEST(IndexStageTest, NoneAndOneTakeTheSecondColumn) {
  EXPECT_EQ(Indexed({{2, 2}, {2, 1}}, {kAll, 1}), (StridedView{{2}, {2}, 1}));
}

// E4
TEST(IndexStageTest, OneNoneNoneTakesTheSecondMatrix) {
  const StridedView slice = Indexed({{2, 2, 2}, {4, 2, 1}}, {1, kAll, kAll});
  EXPECT_EQ(slice, (StridedView{{2, 2}, {2, 1}, 4}));
  EXPECT_EQ(slice.offset * 4, 16) << "bytes of float32";
}

// E5
TEST(IndexStageTest, ZeroNoneOneTakesAVector) {
  EXPECT_EQ(Indexed({{2, 2, 2}, {4, 2, 1}}, {0, kAll, 1}),
            (StridedView{{2}, {2}, 1}));
}

// E9
TEST(IndexStageTest, OnlyNonesTakeAllAndNoNoneOneElement) {
  EXPECT_EQ(Indexed({{2, 3}, {3, 1}}, {kAll, kAll}),
            (StridedView{{2, 3}, {3, 1}, 0}));
  EXPECT_EQ(Indexed({{2, 3}, {3, 1}}, {1, 2}), (StridedView{{}, {}, 5}));
  EXPECT_EQ(Indexed({{}, {}}, {}), (StridedView{{}, {}, 0}));
}

TEST(IndexStageTest, UnnamedModesAreTakenWhole) {
  const Layout layout{{2, 3, 4}, {12, 4, 1}};
  EXPECT_EQ(Indexed(layout, {1}), (StridedView{{3, 4}, {4, 1}, 12}));
  EXPECT_EQ(Indexed(layout, {kEllipsis, 1}), (StridedView{{2, 3}, {12, 4}, 1}));
  EXPECT_EQ(Indexed(layout, {1, kEllipsis, 2}), (StridedView{{3}, {4}, 14}));
  EXPECT_EQ(Indexed(layout, {1, 1, 1, kEllipsis}), (StridedView{{}, {}, 17}));
  EXPECT_EQ(Indexed(layout, {}), (StridedView{{2, 3, 4}, {12, 4, 1}, 0}));
}

TEST(IndexStageTest, NewModesHaveExtentOneWhereTheyStand) {
  const Layout layout{{2, 3}, {3, 1}};
  EXPECT_EQ(Indexed(layout, {kNewMode, kAll, kNewMode}),
            (StridedView{{1, 2, 1, 3}, {1, 3, 1, 1}, 0}));
  EXPECT_EQ(Indexed(layout, {kEllipsis, kNewMode, 0}),
            (StridedView{{2, 1}, {3, 1}, 0}));
}

TEST(IndexStageTest, NegativeNumbersCountFromTheEnd) {
  EXPECT_EQ(Indexed({{2, 3}, {3, 1}}, {-1, -3}), (StridedView{{}, {}, 3}));
}

// What NumPy 1.26 gives for np.arange(6)[start:stop:step].
TEST(IndexStageTest, SlicesAreNumPys) {
  const std::optional<int64_t> none;
  const int64_t max = std::numeric_limits<int64_t>::max();
  const int64_t min = std::numeric_limits<int64_t>::min();
  const auto slice = [](std::optional<int64_t> start,
                        std::optional<int64_t> stop,
                        std::optional<int64_t> step) {
    const auto stage = IndexStage({SliceItem{start, stop, step}}, {6});
    EXPECT_TRUE(stage.ok()) << stage.status();
    return ElementsOf(*View::Create({{6}, {1}}, 0, {*stage}));
  };
  EXPECT_THAT(slice(none, none, none), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(slice(none, none, -1), ElementsAre(5, 4, 3, 2, 1, 0));
  EXPECT_THAT(slice(1, -1, 2), ElementsAre(1, 3));
  EXPECT_THAT(slice(-2, none, none), ElementsAre(4, 5));
  EXPECT_THAT(slice(-100, 100, none), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(slice(100, -100, -2), ElementsAre(5, 3, 1));
  EXPECT_THAT(slice(4, 1, -1), ElementsAre(4, 3, 2));
  EXPECT_THAT(slice(4, 1, none), ElementsAre());
  EXPECT_THAT(slice(1, 4, -1), ElementsAre());
  EXPECT_THAT(slice(-100, none, -1), ElementsAre());
  EXPECT_THAT(slice(100, none, none), ElementsAre());
  EXPECT_THAT(slice(min, max, max), ElementsAre(0));
  EXPECT_THAT(slice(max, min, min), ElementsAre(5));
}

TEST(IndexStageTest, SlicesOfAnEmptyModeAreEmpty) {
  for (const int64_t step : {1, -1}) {
    const auto stage = IndexStage({SliceItem{{}, {}, step}}, {0});
    ASSERT_TRUE(stage.ok()) << stage.status();
    EXPECT_EQ(*UpperExtents(*stage, {0}, 0), (ModeVector{0}));
  }
}

struct Refusal {
  Items items;
  std::string reason;
  std::string message;
};

class IndexRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(IndexRefusalTest, NamesThePosition) {
  const auto stage = IndexStage(GetParam().items, {2, 3});
  ASSERT_FALSE(stage.ok());
  EXPECT_EQ(stage.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(stage.status()), GetParam().reason);
  EXPECT_THAT(std::string(stage.status().message()),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Items, IndexRefusalTest,
    ::testing::Values(
        Refusal{{0, 3},
                "INDEX_OUT_OF_RANGE",
                "index 3 at position 1 is outside mode 1 of extent 3"},
        Refusal{{kNewMode, -3},
                "INDEX_OUT_OF_RANGE",
                "index -3 at position 1 is outside mode 0 of extent 2"},
        Refusal{{std::numeric_limits<int64_t>::min()},
                "INDEX_OUT_OF_RANGE",
                "at position 0"},
        Refusal{{kAll, SliceItem{{}, {}, 0}},
                "SLICE_STEP_ZERO",
                "the slice at position 1 has step 0"},
        Refusal{{0, 0, 0}, "TOO_MANY_INDICES", "3 indices for 2 modes"},
        Refusal{{0, kEllipsis, kAll, kAll},
                "TOO_MANY_INDICES",
                "3 indices for 2 modes"},
        Refusal{{kEllipsis, 0, kEllipsis},
                "ELLIPSIS_REPEATED",
                "position 2 holds a second ellipsis"}));

}  // namespace
}  // namespace tensord::core::test
