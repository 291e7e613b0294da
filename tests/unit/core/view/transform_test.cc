#include "core/view/transform.h"

#include <limits>
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
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr auto kFirst = Order::kFirstModeFastest;
constexpr auto kLast = Order::kLastModeFastest;

/// The view that one transform of all modes makes of a packed storage, last
/// mode fastest.
View ViewThrough(const ModeVector& extents, const Transform& transform) {
  PlacedTransform placed{transform, {}, {}};
  for (size_t i = 0; i < extents.size(); ++i) {
    placed.lower.push_back(static_cast<int>(i));
  }
  const auto upper = UpperExtents(transform, extents, "here");
  EXPECT_TRUE(upper.ok()) << upper.status();
  for (size_t i = 0; i < upper->size(); ++i) {
    placed.upper.push_back(static_cast<int>(i));
  }
  const auto view =
      View::Create(PackedLayout(extents, kLast), 0, {Stage{{placed}}});
  EXPECT_TRUE(view.ok()) << view.status();
  return *view;
}

// D6
TEST(TransformTest, PassThroughChangesNothing) {
  const View view = ViewThrough({4}, transform::PassThrough{});
  EXPECT_THAT(ElementsOf(view), ElementsAre(0, 1, 2, 3));
}

TEST(TransformTest, MergeCountsThroughTheFastestModeFirst) {
  EXPECT_THAT(ElementsOf(ViewThrough({2, 3}, transform::Merge{kLast})),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(ElementsOf(ViewThrough({2, 3}, transform::Merge{kFirst})),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(ViewThrough({2, 3, 4}, transform::Merge{}).extents(),
            (ModeVector{24}));
}

TEST(TransformTest, MergeOfNoModeIsAModeOfExtentOne) {
  const View view = ViewThrough({}, transform::Merge{});
  EXPECT_EQ(view.extents(), (ModeVector{1}));
  EXPECT_THAT(ElementsOf(view), ElementsAre(0));
}

TEST(TransformTest, UnmergeUndoesMergeInEitherOrder) {
  const View last = ViewThrough({6}, transform::Unmerge{{2, 3}, kLast});
  EXPECT_EQ(last.extents(), (ModeVector{2, 3}));
  EXPECT_THAT(ElementsOf(last), ElementsAre(0, 1, 2, 3, 4, 5));
  const View first = ViewThrough({6}, transform::Unmerge{{2, 3}, kFirst});
  EXPECT_EQ(first.extents(), (ModeVector{2, 3}));
  EXPECT_THAT(ElementsOf(first), ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST(TransformTest, UnmergeToNoModeDropsExtentOne) {
  transform::Unmerge to_none{{1}};
  to_none.extents.clear();
  const View view = ViewThrough({1}, to_none);
  EXPECT_EQ(view.extents(), ModeVector{});
  EXPECT_THAT(ElementsOf(view), ElementsAre(0));
}

// D11
TEST(TransformTest, SliceIsPythonsRange) {
  const auto slice = [](int64_t start, int64_t stop, int64_t step) {
    return ElementsOf(ViewThrough({6}, transform::Slice{start, stop, step}));
  };
  EXPECT_THAT(slice(1, 5, 1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(slice(1, 6, 2), ElementsAre(1, 3, 5));
  EXPECT_THAT(slice(0, 6, 5), ElementsAre(0, 5));
  EXPECT_THAT(slice(5, -1, -1), ElementsAre(5, 4, 3, 2, 1, 0));
  EXPECT_THAT(slice(4, 0, -2), ElementsAre(4, 2));
  EXPECT_THAT(slice(0, 6, kMax), ElementsAre(0));
  EXPECT_THAT(slice(5, -1, std::numeric_limits<int64_t>::min()),
              ElementsAre(5));
  EXPECT_THAT(slice(3, 3, 1), ElementsAre());
  EXPECT_THAT(slice(100, 2, 1), ElementsAre()) << "empty, wherever it is";
}

// D10
TEST(TransformTest, PadHasNoElementsBeforeAndAfter) {
  const View view = ViewThrough({3}, transform::Pad{2, 1});
  EXPECT_EQ(view.extents(), (ModeVector{6}));
  EXPECT_THAT(ElementsOf(view), ElementsAre(-1, -1, 0, 1, 2, -1));
  EXPECT_TRUE(view.may_pad());
  EXPECT_FALSE(view.strided().has_value());
}

TEST(TransformTest, PadOfAnEmptyModeIsPaddingAlone) {
  const View view = ViewThrough({0}, transform::Pad{1, 1});
  EXPECT_THAT(ElementsOf(view), ElementsAre(-1, -1));
  EXPECT_TRUE(view.is_padding());
  EXPECT_EQ(view.span_elements(), 0);
}

// D14
TEST(TransformTest, FreezeTakesOneIndex) {
  const View view = ViewThrough({5}, transform::Freeze{3});
  EXPECT_EQ(view.extents(), ModeVector{});
  EXPECT_THAT(ElementsOf(view), ElementsAre(3));
}

// D14
TEST(TransformTest, InsertAndReplicateRepeatEverything) {
  EXPECT_THAT(ElementsOf(ViewThrough({}, transform::Insert{3})),
              ElementsAre(0, 0, 0));
  const View view = ViewThrough({}, transform::Replicate{{2, 2}});
  EXPECT_THAT(ElementsOf(view), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(view.strided()->strides, (ModeVector{0, 0}));
  EXPECT_FALSE(view.IsInjective());
}

// D14
TEST(TransformTest, EmbedAddsUpCoefficients) {
  EXPECT_THAT(ElementsOf(ViewThrough({8}, transform::Embed{{3, 2}, {2, 3}, 0})),
              ElementsAre(0, 3, 2, 5, 4, 7));
  // The windows of a convolution.
  EXPECT_THAT(ElementsOf(ViewThrough({5}, transform::Embed{{3, 3}, {1, 1}, 0})),
              ElementsAre(0, 1, 2, 1, 2, 3, 2, 3, 4));
  EXPECT_THAT(ElementsOf(ViewThrough({5}, transform::Embed{{3}, {-2}, 4})),
              ElementsAre(4, 2, 0));
}

// D14
TEST(TransformTest, ModuloStartsAgain) {
  const View view = ViewThrough({4}, transform::Modulo{3, 8});
  EXPECT_THAT(ElementsOf(view), ElementsAre(0, 1, 2, 0, 1, 2, 0, 1));
  EXPECT_FALSE(view.IsInjective());
}

// D14: low 1 = up 1 ^ (up 0 % extent 1).
TEST(TransformTest, XorSwizzlesRows) {
  const View view = ViewThrough({6, 4}, transform::Xor{});
  EXPECT_EQ(view.extents(), (ModeVector{6, 4}));
  EXPECT_THAT(
      ElementsOf(view),
      ElementsAreArray({0,  1,  2,  3,  5,  4,  7,  6,  10, 11, 8,  9,
                        15, 14, 13, 12, 16, 17, 18, 19, 21, 20, 23, 22}));
  EXPECT_TRUE(view.IsInjective());
}

// D14
TEST(TransformTest, OffsetBeginsLater) {
  EXPECT_THAT(ElementsOf(ViewThrough({6}, transform::Offset{2, 3})),
              ElementsAre(2, 3, 4));
}

TEST(TransformTest, DiagonalAdvancesAllModes) {
  EXPECT_THAT(ElementsOf(ViewThrough({3, 3}, transform::Diagonal{})),
              ElementsAre(0, 4, 8));
  EXPECT_THAT(ElementsOf(ViewThrough({2, 2, 2}, transform::Diagonal{})),
              ElementsAre(0, 7));
}

TEST(TransformTest, InjectivityIsThatOfTheMap) {
  EXPECT_TRUE(IsInjective(transform::Merge{}));
  EXPECT_TRUE(IsInjective(transform::Insert{1}));
  EXPECT_FALSE(IsInjective(transform::Insert{2}));
  EXPECT_TRUE(IsInjective(transform::Replicate{{1, 1}}));
  EXPECT_TRUE(IsInjective(transform::Replicate{{0, 9}}));
  EXPECT_FALSE(IsInjective(transform::Replicate{{1, 2}}));
  EXPECT_TRUE(IsInjective(transform::Modulo{4, 4}));
  EXPECT_FALSE(IsInjective(transform::Modulo{4, 5}));
  EXPECT_TRUE(IsInjective(transform::Embed{{3, 2}, {-1, 3}, 2}));
  EXPECT_FALSE(IsInjective(transform::Embed{{3, 2}, {1, 2}, 0}));
  EXPECT_FALSE(IsInjective(transform::Embed{{2}, {0}, 0}));
}

struct RefusedTransform {
  ModeVector lower_extents;
  Transform transform;
  std::string reason;
  std::string message;
};

class TransformRefusalTest : public ::testing::TestWithParam<RefusedTransform> {
};

TEST_P(TransformRefusalTest, NamesWhatIsWrong) {
  const auto extents =
      UpperExtents(GetParam().transform, GetParam().lower_extents, "here");
  ASSERT_FALSE(extents.ok());
  EXPECT_EQ(extents.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(extents.status()), GetParam().reason);
  EXPECT_THAT(std::string(extents.status().message()),
              HasSubstr("here: " + GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Transforms, TransformRefusalTest,
    ::testing::Values(
        RefusedTransform{{2, 3},
                         transform::PassThrough{},
                         "MODE_COUNT_MISMATCH",
                         "names 2 lower modes, wanted 1"},
        RefusedTransform{{2},
                         transform::Insert{2},
                         "MODE_COUNT_MISMATCH",
                         "names 1 lower modes, wanted 0"},
        RefusedTransform{{2},
                         transform::Xor{},
                         "MODE_COUNT_MISMATCH",
                         "names 1 lower modes, wanted 2"},
        RefusedTransform{{},
                         transform::Diagonal{},
                         "MODE_COUNT_MISMATCH",
                         "names no lower mode, wanted at least 1"},
        RefusedTransform{{int64_t{1} << 40, int64_t{1} << 40},
                         transform::Merge{},
                         "SIZE_OVERFLOW",
                         "extents (1099511627776, 1099511627776)"},
        RefusedTransform{
            {6},
            transform::Unmerge{{2, 4}},
            "EXTENT_PRODUCT_MISMATCH",
            "extents (2, 4) do not multiply to the lower extent 6"},
        RefusedTransform{{6},
                         transform::Unmerge{{-2, -3}},
                         "NEGATIVE_EXTENT",
                         "extents are (-2, -3)"},
        RefusedTransform{{0},
                         transform::Unmerge{{0, kMax, 2}},
                         "EXTENT_PRODUCT_MISMATCH",
                         "extents (0,"},
        RefusedTransform{
            {6}, transform::Slice{0, 6, 0}, "SLICE_STEP_ZERO", "step is 0"},
        RefusedTransform{{6},
                         transform::Slice{0, 7, 1},
                         "SLICE_OUT_OF_RANGE",
                         "[0, 7) by 1 leaves the lower extent 6"},
        RefusedTransform{
            {6}, transform::Slice{-1, 3, 1}, "SLICE_OUT_OF_RANGE", "[-1, 3)"},
        RefusedTransform{{6},
                         transform::Slice{5, -2, -1},
                         "SLICE_OUT_OF_RANGE",
                         "[5, -2) by -1"},
        RefusedTransform{
            {6}, transform::Slice{6, 2, -1}, "SLICE_OUT_OF_RANGE", "[6, 2)"},
        RefusedTransform{{6},
                         transform::Pad{-1, 0},
                         "NEGATIVE_PADDING",
                         "padding is -1 before and 0 after"},
        RefusedTransform{
            {6}, transform::Pad{kMax, 0}, "SIZE_OVERFLOW", "padding of"},
        RefusedTransform{{6},
                         transform::Freeze{6},
                         "INDEX_OUT_OF_RANGE",
                         "index 6 leaves the lower extent 6"},
        RefusedTransform{
            {6}, transform::Freeze{-1}, "INDEX_OUT_OF_RANGE", "index -1"},
        RefusedTransform{
            {0}, transform::Freeze{0}, "INDEX_OUT_OF_RANGE", "index 0"},
        RefusedTransform{
            {}, transform::Insert{-1}, "NEGATIVE_EXTENT", "extents are (-1)"},
        RefusedTransform{{},
                         transform::Replicate{{2, -1}},
                         "NEGATIVE_EXTENT",
                         "extents are (2, -1)"},
        RefusedTransform{{6},
                         transform::Embed{{2, 2}, {1}, 0},
                         "COEFFICIENT_COUNT_MISMATCH",
                         "2 extents but 1 coefficients"},
        RefusedTransform{{6},
                         transform::Embed{{3, 3}, {2, 1}, 0},
                         "INDEX_OUT_OF_RANGE",
                         "indices 0 to 6 leave the lower extent 6"},
        RefusedTransform{{6},
                         transform::Embed{{3}, {-1}, 1},
                         "INDEX_OUT_OF_RANGE",
                         "indices -1 to 1"},
        RefusedTransform{{6},
                         transform::Embed{{kMax, 3}, {2, 1}, 0},
                         "SIZE_OVERFLOW",
                         "extents ("},
        RefusedTransform{{6},
                         transform::Modulo{0, 3},
                         "MODULUS_NOT_POSITIVE",
                         "modulus is 0"},
        RefusedTransform{{6},
                         transform::Modulo{7, 9},
                         "INDEX_OUT_OF_RANGE",
                         "indices 0 to 6"},
        RefusedTransform{{6},
                         transform::Modulo{2, -1},
                         "NEGATIVE_EXTENT",
                         "extents are (-1)"},
        RefusedTransform{{4, 6},
                         transform::Xor{},
                         "EXTENT_NOT_POWER_OF_TWO",
                         "the second lower extent is 6"},
        RefusedTransform{{6},
                         transform::Offset{4, 3},
                         "INDEX_OUT_OF_RANGE",
                         "indices 4 to 6"},
        RefusedTransform{{6},
                         transform::Offset{-1, 3},
                         "INDEX_OUT_OF_RANGE",
                         "indices -1 to 1"},
        RefusedTransform{
            {6}, transform::Offset{kMax, 3}, "SIZE_OVERFLOW", "offset"},
        RefusedTransform{{3, 4},
                         transform::Diagonal{},
                         "MODE_EXTENT_MISMATCH",
                         "lower extents are (3, 4), wanted equal ones"}));

}  // namespace
}  // namespace tensord::core::test
