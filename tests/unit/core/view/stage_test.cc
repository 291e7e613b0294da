#include "core/view/stage.h"

#include <string>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;

// D9
TEST(StageTest, UpperModesGoWhereTheyAreNamed) {
  const Stage stage{{{transform::PassThrough{}, {0}, {2}},
                     {transform::Unmerge{{2, 3}}, {1}, {3, 0}},
                     {transform::Insert{7}, {}, {1}}}};
  const auto extents = UpperExtents(stage, {5, 6}, 0);
  ASSERT_TRUE(extents.ok()) << extents.status();
  EXPECT_EQ(*extents, (ModeVector{3, 7, 5, 2}));
}

TEST(StageTest, OfNoModesIsAScalar) {
  EXPECT_EQ(*UpperExtents(Stage{}, {}, 0), ModeVector{});
}

struct Refusal {
  ModeVector lower_extents;
  Stage stage;
  std::string reason;
  std::string message;
};

class StageRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(StageRefusalTest, NamesStageTransformAndMode) {
  const auto extents =
      UpperExtents(GetParam().stage, GetParam().lower_extents, 3);
  ASSERT_FALSE(extents.ok());
  EXPECT_EQ(extents.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(extents.status()), GetParam().reason);
  EXPECT_THAT(std::string(extents.status().message()),
              HasSubstr(GetParam().message));
}

Stage RepeatedInserts(int count, int64_t extent) {
  Stage stage;
  for (int i = 0; i < count; ++i) {
    stage.transforms.push_back({transform::Insert{extent}, {}, {i}});
  }
  return stage;
}

// D12
INSTANTIATE_TEST_SUITE_P(
    Stages, StageRefusalTest,
    ::testing::Values(
        Refusal{{2, 3},
                {{{transform::PassThrough{}, {1}, {0}}}},
                "MODE_MISSING",
                "stage 3: lower mode 0 is named by no transform, wanted "
                "exactly one"},
        Refusal{{2, 3},
                {{{transform::Merge{}, {0, 1}, {0}},
                  {transform::Freeze{0}, {1}, {}}}},
                "MODE_REPEATED",
                "stage 3, transform 1 (freeze) names lower mode 1, which "
                "transform 0 (merge) names already"},
        Refusal{{2, 3},
                {{{transform::Merge{}, {0, 2}, {0}}}},
                "MODE_OUT_OF_RANGE",
                "stage 3, transform 0 (merge) names lower mode 2, but there "
                "are 2"},
        Refusal{{2},
                {{{transform::PassThrough{}, {-1}, {0}}}},
                "MODE_OUT_OF_RANGE",
                "names lower mode -1, but there is 1"},
        Refusal{{2, 3},
                {{{transform::PassThrough{}, {0}, {0}},
                  {transform::PassThrough{}, {1}, {0}}}},
                "MODE_REPEATED",
                "stage 3, transform 1 (pass_through) names upper mode 0, "
                "which transform 0 (pass_through) names already"},
        Refusal{{2, 3},
                {{{transform::PassThrough{}, {0}, {0}},
                  {transform::PassThrough{}, {1}, {2}}}},
                "MODE_OUT_OF_RANGE",
                "names upper mode 2, but there are 2"},
        Refusal{{6},
                {{{transform::Unmerge{{2, 3}}, {0}, {0}}}},
                "MODE_COUNT_MISMATCH",
                "stage 3, transform 0 (unmerge): names 1 upper modes, wanted "
                "2"},
        Refusal{{6},
                {{{transform::Freeze{0}, {0}, {0}}}},
                "MODE_COUNT_MISMATCH",
                "names 1 upper modes, wanted 0"},
        Refusal{{6},
                {{{transform::Freeze{6}, {0}, {}}}},
                "INDEX_OUT_OF_RANGE",
                "stage 3, transform 0 (freeze): index 6"},
        Refusal{{},
                RepeatedInserts(65, 1),
                "TOO_MANY_MODES",
                "stage 3 makes 65 modes, wanted at most 64"},
        Refusal{{},
                RepeatedInserts(63, 2),
                "SIZE_OVERFLOW",
                "stage 3 makes extents (2, 2,"},
        // An extent of 0 must not hide that others overflow.
        Refusal{{},
                {{{transform::Replicate{{0}}, {}, {0}},
                  {transform::Insert{int64_t{1} << 40}, {}, {1}},
                  {transform::Insert{int64_t{1} << 40}, {}, {2}}}},
                "SIZE_OVERFLOW",
                "stage 3 makes extents (0,"}));

TEST(StageTest, SixtyFourModesAreTaken) {
  EXPECT_TRUE(UpperExtents(RepeatedInserts(64, 1), {}, 0).ok());
  EXPECT_TRUE(UpperExtents(RepeatedInserts(62, 2), {}, 0).ok());
}

}  // namespace
}  // namespace tensord::core
