#include "core/view/view.h"

#include <limits>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/view/aligned_layout.h"
#include "core/view/indexing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord::core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMostInt64 = std::numeric_limits<int64_t>::max();
constexpr auto kFirstFastest = Order::kFirstModeFastest;
constexpr auto kLastFastest = Order::kLastModeFastest;

View ViewOf(const Layout& storage, int64_t offset = 0,
            const std::vector<Stage>& stages = {}) {
  const auto view = View::Create(storage, offset, stages);
  EXPECT_TRUE(view.ok()) << view.status();
  return *view;
}

View Packed(const ModeVector& extents, const std::vector<Stage>& stages) {
  return ViewOf(PackedLayout(extents, kLastFastest), 0, stages);
}

// D1, D2, D3, D4
TEST(ViewTest, ThePagesDescriptorsHaveItsNumbers) {
  const View custom = ViewOf({{3, 4}, {8, 1}});
  EXPECT_EQ(custom.Locate({1, 2}), 10);
  EXPECT_EQ(custom.element_count(), 12);
  EXPECT_EQ(custom.span_elements(), 20);
  EXPECT_EQ(custom.allocation_elements(), 24);
  const View packed = Packed({3, 4}, {});
  EXPECT_EQ(packed.strided()->strides, (ModeVector{4, 1}));
  EXPECT_EQ(packed.Locate({1, 2}), 6);
  EXPECT_EQ(packed.span_elements(), 12);
  const View aligned = ViewOf(*AlignedLayout({4, 5}, 8, kLastFastest));
  EXPECT_EQ(aligned.strided()->strides, (ModeVector{8, 1}));
  EXPECT_EQ(aligned.span_elements(), 29);
  EXPECT_EQ(aligned.allocation_elements(), 32);
}

// E2
TEST(ViewTest, LastElementOfTheSquareIsTwelveBytesOn) {
  EXPECT_EQ(*ViewOf({{2, 2}, {2, 1}}).Locate({1, 1}) * 4, 12);
}

// E10: CuTe's page slices ((3,2),(2,5,2)):((4,1),(2,13,100). A number for modes
// that belong together counts through them, the first one fastest.
TEST(ViewTest, NestedModesAreIndexedTogetherOrOneByOne) {
  const Layout nested{{3, 2, 2, 5, 2}, {4, 1, 2, 13, 100}};
  using transform::Freeze, transform::Merge, transform::PassThrough;
  // A(2,_)
  const View row = ViewOf(nested, 0,
                          {{{{Merge{kFirstFastest}, {0, 1}, {0}},
                             {PassThrough{}, {2}, {1}},
                             {PassThrough{}, {3}, {2}},
                             {PassThrough{}, {4}, {3}}}},
                           {{{Freeze{2}, {0}, {}},
                             {PassThrough{}, {1}, {0}},
                             {PassThrough{}, {2}, {1}},
                             {PassThrough{}, {3}, {2}}}}});
  EXPECT_EQ(*row.strided(), (StridedView{{2, 5, 2}, {2, 13, 100}, 8}));
  // A(_,5)
  const View column = ViewOf(nested, 0,
                             {{{{PassThrough{}, {0}, {0}},
                                {PassThrough{}, {1}, {1}},
                                {Merge{kFirstFastest}, {2, 3, 4}, {2}}}},
                              {{{PassThrough{}, {0}, {0}},
                                {PassThrough{}, {1}, {1}},
                                {Freeze{5}, {2}, {}}}}});
  EXPECT_EQ(*column.strided(), (StridedView{{3, 2}, {4, 1}, 2 + 2 * 13}));
  const auto one_by_one = [&](const std::vector<IndexItem>& items) {
    return *ViewOf(nested, 0, {IndexStage(items, nested.extents).value()})
                .strided();
  };
  constexpr AllItem kAll;
  // A((_,1),(0,_,1))
  EXPECT_EQ(one_by_one({kAll, 1, 0, kAll, 1}),
            (StridedView{{3, 5}, {4, 13}, 1 + 100}));
  // A((2,_),(_,3,_))
  EXPECT_EQ(one_by_one({2, kAll, kAll, 3, kAll}),
            (StridedView{{2, 2, 2}, {1, 2, 100}, 8 + 3 * 13}));
}

// D5, D7
TEST(ViewTest, ThePagesUnmergeKeepsTheTwelveElements) {
  const View view =
      Packed({2, 6}, {{{{transform::PassThrough{}, {0}, {0}},
                        {transform::Unmerge{{2, 3}}, {1}, {1, 2}}}}});
  EXPECT_EQ(view.extents(), (ModeVector{2, 2, 3}));
  EXPECT_THAT(ElementsOf(view),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

// D8
TEST(ViewTest, ThePagesBlockMergesToThreeModes) {
  constexpr int64_t kBlockM = 256, kWarps = 8, kWarpSize = 64, kVector = 4;
  constexpr int64_t kWavesPerK = 2, kWavesPerM = kWarps / kWavesPerK;
  constexpr int64_t kIssues = kBlockM / kWavesPerM;
  const View view =
      Packed({kIssues, kWavesPerM, kWavesPerK, kWarpSize, kVector},
             {{{{transform::PassThrough{}, {0}, {0}},
                {transform::Merge{}, {1, 2}, {1}},
                {transform::Merge{}, {3, 4}, {2}}}}});
  ASSERT_TRUE(view.strided().has_value());
  EXPECT_EQ(*view.strided(), (StridedView{{64, 8, 256}, {2048, 256, 1}, 0}));
}

// D9
TEST(ViewTest, ThePagesTransposeSwapsStrides) {
  const View view = Packed({3, 4}, {{{{transform::PassThrough{}, {1}, {0}},
                                      {transform::PassThrough{}, {0}, {1}}}}});
  EXPECT_EQ(*view.strided(), (StridedView{{4, 3}, {1, 4}, 0}));
}

// D10
TEST(ViewTest, ThePagesConvolutionPadIsPaddingAllAround) {
  const View view =
      Packed({2, 3, 5, 6}, {{{{transform::PassThrough{}, {0}, {0}},
                              {transform::PassThrough{}, {1}, {1}},
                              {transform::Pad{1, 1}, {2}, {2}},
                              {transform::Pad{2, 2}, {3}, {3}}}}});
  EXPECT_EQ(view.extents(), (ModeVector{2, 3, 7, 10}));
  EXPECT_EQ(view.Locate({1, 2, 0, 5}), std::nullopt);
  EXPECT_EQ(view.Locate({1, 2, 6, 5}), std::nullopt);
  EXPECT_EQ(view.Locate({1, 2, 3, 1}), std::nullopt);
  EXPECT_EQ(view.Locate({1, 2, 3, 8}), std::nullopt);
  EXPECT_EQ(view.Locate({0, 0, 1, 2}), 0);
  EXPECT_EQ(view.Locate({1, 2, 5, 7}), 179);
  EXPECT_TRUE(view.IsInjective());
  EXPECT_EQ(view.span_elements(), 180);
}

// D13
TEST(ViewTest, SliceOfAMergeOfAPadIsWhatItsStagesSay) {
  const View view = Packed(
      {2, 3},
      {{{{transform::Pad{0, 1}, {0}, {0}}, {transform::Pad{1, 0}, {1}, {1}}}},
       {{{transform::Merge{}, {0, 1}, {0}}}},
       {{{transform::Slice{1, 12, 2}, {0}, {0}}}}});
  // -1 0 1 2, -1 3 4 5, -1 -1 -1 -1
  EXPECT_THAT(ElementsOf(view), ElementsAre(0, 2, 3, 5, -1, -1));
}

/// A view that must come out strided, however large.
struct Simplifies {
  std::string name;
  Layout storage;
  std::vector<Stage> stages;
  StridedView wanted;
};

class SimplifiesTest : public ::testing::TestWithParam<Simplifies> {};

TEST_P(SimplifiesTest, ToStrides) {
  const View view = ViewOf(GetParam().storage, 5, GetParam().stages);
  ASSERT_TRUE(view.strided().has_value());
  EXPECT_EQ(*view.strided(), GetParam().wanted);
  EXPECT_FALSE(view.may_pad());
}

constexpr int64_t kBillion = 1000000000;
constexpr int64_t kBits = int64_t{1} << 30;

Stage One(Transform transform, ModePositions lower, ModePositions upper) {
  return {{{std::move(transform), std::move(lower), std::move(upper)}}};
}

INSTANTIATE_TEST_SUITE_P(
    Views, SimplifiesTest,
    ::testing::Values(
        Simplifies{"NestedMerge",
                   {{3, 4, kBillion}, {8 * kBillion, 2 * kBillion, 2}},
                   {One(transform::Merge{}, {0, 1, 2}, {0})},
                   {{12 * kBillion}, {2}, 5}},
        Simplifies{"NestedMergeTheOtherWay",
                   {{kBillion, 4}, {2, 2 * kBillion}},
                   {One(transform::Merge{kFirstFastest}, {0, 1}, {0})},
                   {{4 * kBillion}, {2}, 5}},
        Simplifies{"Unmerge",
                   {{kBillion}, {3}},
                   {One(transform::Unmerge{{10, kBillion / 10}}, {0}, {0, 1})},
                   {{10, kBillion / 10}, {3 * kBillion / 10, 3}, 5}},
        Simplifies{"NegativeStep",
                   {{kBillion}, {3}},
                   {One(transform::Slice{kBillion - 1, -1, -2}, {0}, {0})},
                   {{kBillion / 2}, {-6}, 5 + 3 * (kBillion - 1)}},
        Simplifies{"SliceInsideThePad",
                   {{kBillion}, {3}},
                   {One(transform::Pad{7, 9}, {0}, {0}),
                    One(transform::Slice{7, kBillion + 7, 1}, {0}, {0})},
                   {{kBillion}, {3}, 5}},
        Simplifies{"OffsetInsideThePad",
                   {{kBillion}, {3}},
                   {One(transform::Pad{7, 9}, {0}, {0}),
                    One(transform::Offset{10, 100}, {0}, {0})},
                   {{100}, {3}, 14}},
        Simplifies{"FreezeInsideThePad",
                   {{4, kBillion}, {kBillion, 1}},
                   {{{{transform::Pad{1, 1}, {0}, {0}},
                      {transform::PassThrough{}, {1}, {1}}}},
                    {{{transform::Freeze{2}, {0}, {}},
                      {transform::PassThrough{}, {1}, {0}}}}},
                   {{kBillion}, {1}, 5 + kBillion}},
        Simplifies{"PadByNothing",
                   {{kBillion}, {1}},
                   {One(transform::Pad{0, 0}, {0}, {0})},
                   {{kBillion}, {1}, 5}},
        Simplifies{"SliceWithinOneRunOfAMerge",
                   {{4, kBillion}, {9 * kBillion, 1}},
                   {One(transform::Merge{}, {0, 1}, {0}),
                    One(transform::Slice{kBillion, 2 * kBillion, 1}, {0}, {0})},
                   {{kBillion}, {1}, 5 + 9 * kBillion}},
        Simplifies{"SliceAcrossAMergeByItsRuns",
                   {{kBillion, 4}, {9, 1}},
                   {One(transform::Merge{}, {0, 1}, {0}),
                    One(transform::Slice{2, 4 * kBillion, 4}, {0}, {0})},
                   {{kBillion}, {9}, 7}},
        Simplifies{
            "DiagonalAsSliceOfAMerge",
            {{kBits, kBits}, {2 * kBits, 1}},
            {One(transform::Merge{}, {0, 1}, {0}),
             One(transform::Slice{0, kBits* kBits, kBits + 1}, {0}, {0})},
            {{kBits}, {2 * kBits + 1}, 5}},
        Simplifies{"UnmergeOfAMerge",
                   {{7, kBillion}, {1, 7}},
                   {One(transform::Merge{}, {0, 1}, {0}),
                    One(transform::Unmerge{{7, kBillion}}, {0}, {0, 1})},
                   {{7, kBillion}, {1, 7}, 5}},
        Simplifies{
            "FinerUnmergeOfAMerge",
            {{8, kBits}, {1, 100}},
            {One(transform::Merge{}, {0, 1}, {0}),
             One(transform::Unmerge{{2, 4, kBits / 2, 2}}, {0}, {0, 1, 2, 3})},
            {{2, 4, kBits / 2, 2}, {4, 1, 200, 100}, 5}},
        Simplifies{"MergeOfOtherUnmergeOfAMerge",
                   {{4, 6}, {kBillion, 1}},
                   {One(transform::Merge{}, {0, 1}, {0}),
                    One(transform::Unmerge{{3, 8}}, {0}, {0, 1}),
                    One(transform::Merge{}, {0, 1}, {0}),
                    One(transform::Unmerge{{4, 6}}, {0}, {0, 1})},
                   {{4, 6}, {kBillion, 1}, 5}},
        Simplifies{
            "BackwardsThroughAMerge",
            {{kBillion, 4}, {1, kBillion}},
            {One(transform::Merge{}, {0, 1}, {0}),
             One(transform::Slice{4 * kBillion - 1, -1, -1}, {0}, {0}),
             One(transform::Unmerge{{kBillion, 4}}, {0}, {0, 1})},
            {{kBillion, 4}, {-1, -kBillion}, 5 + kBillion - 1 + 3 * kBillion}},
        Simplifies{"UnmergeOfAMergeThroughAPad",
                   {{4, kBillion}, {1, 4}},
                   {{{{transform::Pad{1, 1}, {0}, {0}},
                      {transform::PassThrough{}, {1}, {1}}}},
                    One(transform::Merge{}, {0, 1}, {0}),
                    One(transform::Slice{kBillion, 5 * kBillion, 1}, {0}, {0}),
                    One(transform::Unmerge{{4, kBillion}}, {0}, {0, 1})},
                   {{4, kBillion}, {1, 4}, 5}},
        Simplifies{"FreezeOfAMerge",
                   {{7, kBillion, 3}, {1, 100, 7}},
                   {{{{transform::Merge{}, {0, 1}, {0}},
                      {transform::PassThrough{}, {2}, {1}}}},
                    {{{transform::Freeze{kBillion + 2}, {0}, {}},
                      {transform::PassThrough{}, {1}, {0}}}}},
                   {{3}, {7}, 5 + 1 + 200}},
        Simplifies{"ModuloThatNeverTurns",
                   {{kBillion}, {3}},
                   {One(transform::Modulo{kBillion, kBillion / 2}, {0}, {0})},
                   {{kBillion / 2}, {3}, 5}},
        Simplifies{"UnmergedModulo",
                   {{kBillion}, {3}},
                   {One(transform::Modulo{kBillion, 4 * kBillion}, {0}, {0}),
                    One(transform::Unmerge{{4, kBillion}}, {0}, {0, 1})},
                   {{4, kBillion}, {0, 3}, 5}},
        Simplifies{"XorOfTheFirstRow",
                   {{8, kBits}, {kBits, 1}},
                   {One(transform::Xor{}, {0, 1}, {0, 1}),
                    {{{transform::Freeze{0}, {0}, {}},
                      {transform::PassThrough{}, {1}, {0}}}}},
                   {{kBits}, {1}, 5}},
        Simplifies{"XorOfOneColumnBlock",
                   {{8, kBits}, {kBits, 1}},
                   {One(transform::Xor{}, {0, 1}, {0, 1}),
                    {{{transform::Freeze{4}, {0}, {}},
                      {transform::Slice{8, 12, 1}, {1}, {0}}}}},
                   {{4}, {1}, 5 + 4 * kBits + 12}},
        Simplifies{"XorTwice",
                   {{kBits, kBits}, {kBits, 1}},
                   {One(transform::Xor{}, {0, 1}, {0, 1}),
                    One(transform::Xor{}, {0, 1}, {0, 1})},
                   {{kBits, kBits}, {kBits, 1}, 5}},
        Simplifies{"XorByAllOnes",
                   {{4 * kBits, kBits}, {kBits, 1}},
                   {One(transform::Xor{}, {0, 1}, {0, 1}),
                    {{{transform::Freeze{kBits - 1}, {0}, {}},
                      {transform::PassThrough{}, {1}, {0}}}}},
                   {{kBits}, {-1}, 5 + (kBits - 1) * kBits + kBits - 1}},
        Simplifies{"XorOfBlocksByLowBits",
                   {{8, kBits}, {kBits, 1}},
                   {One(transform::Xor{}, {0, 1}, {0, 1}),
                    {{{transform::PassThrough{}, {0}, {0}},
                      {transform::Slice{0, kBits, 8}, {1}, {1}}}}},
                   {{8, kBits / 8}, {kBits + 1, 8}, 5}},
        Simplifies{"ExtentOne",
                   {{1, 1}, {9, 3}},
                   {One(transform::Xor{}, {0, 1}, {0, 1}),
                    One(transform::Merge{}, {0, 1}, {0})},
                   {{1}, {1}, 5}},
        Simplifies{"EmptyView",
                   {{kBillion, 4}, {1, kBillion}},
                   {{{{transform::Pad{1, 1}, {0}, {0}},
                      {transform::Slice{0, 0, 1}, {1}, {1}}}},
                    One(transform::Merge{}, {0, 1}, {0})},
                   {{0}, {1}, 0}},
        Simplifies{"EmptyStorage",
                   {{0, 4}, {1, 1}},
                   {One(transform::Merge{}, {0, 1}, {0})},
                   {{0}, {1}, 0}},
        Simplifies{"EmbedAndDiagonal",
                   {{kBillion, kBillion}, {kBillion, 1}},
                   {One(transform::Diagonal{}, {0, 1}, {0}),
                    One(transform::Embed{{9, 100}, {-1, 10}, 20}, {0}, {1, 0})},
                   {{100, 9},
                    {10 * (kBillion + 1), -(kBillion + 1)},
                    5 + 20 * (kBillion + 1)}}),
    [](const auto& info) { return info.param.name; });

struct StaysGeneral {
  std::string name;
  Layout storage;
  std::vector<Stage> stages;
};

class StaysGeneralTest : public ::testing::TestWithParam<StaysGeneral> {};

TEST_P(StaysGeneralTest, WithoutStrides) {
  EXPECT_FALSE(ViewOf(GetParam().storage, 5, GetParam().stages).strided());
}

INSTANTIATE_TEST_SUITE_P(
    Views, StaysGeneralTest,
    ::testing::Values(
        StaysGeneral{"MergeOfModesThatDoNotNest",
                     {{4, kBillion}, {1, 4}},
                     {One(transform::Merge{}, {0, 1}, {0})}},
        StaysGeneral{"MergeThatNestsTheOtherWay",
                     {{4, kBillion}, {kBillion, 1}},
                     {One(transform::Merge{kFirstFastest}, {0, 1}, {0})}},
        StaysGeneral{
            "Pad", {{kBillion}, {1}}, {One(transform::Pad{0, 1}, {0}, {0})}},
        StaysGeneral{"SliceThatTouchesThePad",
                     {{kBillion}, {1}},
                     {One(transform::Pad{1, 0}, {0}, {0}),
                      One(transform::Slice{0, kBillion, 1}, {0}, {0})}},
        StaysGeneral{
            "Modulo",
            {{kBillion}, {1}},
            {One(transform::Modulo{kBillion - 1, kBillion}, {0}, {0})}},
        StaysGeneral{"Xor",
                     {{8, kBits}, {kBits, 1}},
                     {One(transform::Xor{}, {0, 1}, {0, 1})}},
        StaysGeneral{"FreezeInThePad",
                     {{4, kBillion}, {kBillion, 1}},
                     {{{{transform::Pad{1, 1}, {0}, {0}},
                        {transform::PassThrough{}, {1}, {1}}}},
                      {{{transform::Freeze{0}, {0}, {}},
                        {transform::PassThrough{}, {1}, {0}}}}}}),
    [](const auto& info) { return info.param.name; });

TEST(ViewTest, SpanOfNegativeStridesCountsTheirMagnitude) {
  const View view = ViewOf({{4, 5}, {10, 2}}, 100,
                           {{{{transform::Slice{3, -1, -1}, {0}, {0}},
                              {transform::PassThrough{}, {1}, {1}}}}});
  EXPECT_EQ(*view.strided(), (StridedView{{4, 5}, {-10, 2}, 130}));
  EXPECT_EQ(view.span_elements(), 1 + 3 * 10 + 4 * 2);
  EXPECT_TRUE(view.IsInjective());
}

TEST(ViewTest, BroadcastIsNotInjectiveUntilItIsFrozen) {
  const View repeated = Packed({4}, {{{{transform::Insert{3}, {}, {0}},
                                       {transform::PassThrough{}, {0}, {1}}}}});
  EXPECT_FALSE(repeated.IsInjective());
  EXPECT_EQ(*repeated.strided(), (StridedView{{3, 4}, {0, 1}, 0}));
  const auto frozen = repeated.Then({{{transform::Freeze{2}, {0}, {}},
                                      {transform::PassThrough{}, {1}, {0}}}});
  EXPECT_TRUE(frozen->IsInjective());
  EXPECT_TRUE(
      repeated.Then(One(transform::Pad{1, 1}, {0}, {0})).status().code() ==
      absl::StatusCode::kInvalidArgument);
}

TEST(ViewTest, InterleavedStorageStaysNotKnownToBeInjective) {
  // Injective, but not by nesting; as IsInjective(Layout) has it.
  EXPECT_FALSE(ViewOf({{2, 3}, {3, 2}}).IsInjective());
  EXPECT_TRUE(ViewOf({{2, 2}, {3, 2}}).IsInjective());
}

TEST(ViewTest, PaddingAloneHasNoElements) {
  const View view = Packed({4}, {One(transform::Pad{3, 3}, {0}, {0}),
                                 One(transform::Slice{0, 3, 1}, {0}, {0})});
  EXPECT_TRUE(view.is_padding());
  EXPECT_TRUE(view.may_pad());
  EXPECT_FALSE(view.strided().has_value());
  EXPECT_TRUE(view.IsInjective());
  EXPECT_EQ(view.span_elements(), 0);
  EXPECT_EQ(view.Locate({1}), std::nullopt);
}

TEST(ViewTest, TwoPadsThatNeverMeetArePaddingAlone) {
  // What is within the one pad along the diagonal is outside the other.
  const View view = Packed(
      {4, 4},
      {{{{transform::Pad{4, 0}, {0}, {0}}, {transform::Pad{0, 4}, {1}, {1}}}},
       One(transform::Diagonal{}, {0, 1}, {0})});
  EXPECT_TRUE(view.is_padding());
}

TEST(ViewTest, APadAroundAnEmptyViewIsPadding) {
  const View empty = Packed({4}, {One(transform::Slice{0, 0, 1}, {0}, {0})});
  EXPECT_EQ(*empty.strided(), (StridedView{{0}, {1}, 0}));
  EXPECT_EQ(empty.element_count(), 0);
  EXPECT_EQ(empty.span_elements(), 0);
  const auto padded = empty.Then(One(transform::Pad{1, 1}, {0}, {0}));
  EXPECT_THAT(ElementsOf(*padded), ElementsAre(-1, -1));
}

TEST(ViewTest, InvalidStorageIsRefused) {
  EXPECT_EQ(ReasonOf(View::Create({{2}, {0}}, 0).status()),
            "STRIDE_NOT_POSITIVE");
  EXPECT_EQ(
      ReasonOf(
          View::Create({ModeVector(65, 1), ModeVector(65, 1)}, 0).status()),
      "TOO_MANY_MODES");
  const absl::Status negative = View::Create({{2}, {1}}, -1).status();
  EXPECT_EQ(ReasonOf(negative), "NEGATIVE_OFFSET");
  EXPECT_THAT(std::string(negative.message()), HasSubstr("offset is -1"));
  EXPECT_EQ(ReasonOf(View::Create({{2}, {1}}, kMostInt64 - 1).status()),
            "SIZE_OVERFLOW");
  EXPECT_TRUE(View::Create({{2}, {1}}, kMostInt64 - 2).ok());
}

TEST(ViewTest, StagesAreNumberedThroughAllViews) {
  const View view = Packed({4}, {One(transform::PassThrough{}, {0}, {0})});
  const auto refused = view.Then(One(transform::Freeze{4}, {0}, {}));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("stage 1, transform 0 (freeze): index 4"));
  const auto missing = View::Create({{4}, {1}}, 0, {Stage{}, Stage{}});
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("stage 0: lower mode 0"));
}

TEST(ViewTest, LargestLayoutsAreTaken) {
  const View tall = ViewOf({{2}, {kMostInt64 - 1}});
  EXPECT_EQ(tall.Locate({1}), kMostInt64 - 1);
  EXPECT_EQ(tall.span_elements(), kMostInt64);
  const View wide =
      ViewOf({{kMostInt64}, {1}}, 0,
             {One(transform::Slice{kMostInt64 - 1, -1, -1}, {0}, {0})});
  EXPECT_EQ(*wide.strided(), (StridedView{{kMostInt64}, {-1}, kMostInt64 - 1}));
  EXPECT_EQ(wide.Locate({kMostInt64 - 1}), 0);
}

TEST(ViewTest, SixtyFourModesMergeAndReturn) {
  ModeVector extents(64, 1);
  for (int i = 0; i < 62; ++i) extents[i] = 2;
  PlacedTransform merge{transform::Merge{kFirstFastest}, {}, {0}};
  PlacedTransform unmerge{transform::Unmerge{extents, kFirstFastest}, {0}, {}};
  for (int i = 0; i < 64; ++i) {
    merge.lower.push_back(i);
    unmerge.upper.push_back(i);
  }
  // The last mode is the fastest of the storage, the first one of the merge.
  const Layout storage = PackedLayout(extents, kLastFastest);
  const View merged = ViewOf(storage, 0, {{{merge}}});
  EXPECT_FALSE(merged.strided());
  EXPECT_EQ(merged.Locate({1}), int64_t{1} << 61);
  EXPECT_EQ(merged.Locate({(int64_t{1} << 62) - 1}), (int64_t{1} << 62) - 1);
  const auto back = merged.Then({{unmerge}});
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_TRUE(back->strided().has_value());
  EXPECT_EQ(*back->strided(), (StridedView{extents, storage.strides, 0}));
}

TEST(ViewTest, EndlessNestingIsRefused) {
  View view = Packed({kBillion}, {});
  absl::Status status;
  int stage_count = 0;
  while (status.ok() && stage_count < 1000) {
    const int64_t extent = view.extents()[0];
    for (const Stage& stage :
         {One(transform::Pad{0, 1007 - extent % 1007}, {0}, {0}),
          One(transform::Unmerge{{1007, (extent / 1007) + 1}}, {0}, {1, 0}),
          One(transform::Merge{}, {0, 1}, {0})}) {
      ++stage_count;
      auto next = view.Then(stage);
      status = next.status();
      if (!status.ok()) break;
      view = *std::move(next);
    }
  }
  EXPECT_GT(stage_count, 9);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(status), "VIEW_TOO_COMPLEX");
  EXPECT_THAT(std::string(status.message()), HasSubstr("copy the view"));
}

}  // namespace
}  // namespace tensord::core::test
