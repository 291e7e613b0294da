#include "core/view/gather_steps.h"

#include <cstddef>
#include <type_traits>
#include <vector>

#include "core/base/status.h"
#include "core/view/make_gather_steps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord::core::test {
namespace {

using ::testing::ElementsAre;

static_assert(std::is_trivially_copyable_v<GatherSteps>);
static_assert(sizeof(GatherSteps) <= 4096, "is passed to kernels by value");

/// 10 + 3 * floor(i / 4), by hand.
constexpr GatherSteps Example() {
  GatherSteps steps = {};
  steps.element_count = 12;
  steps.step_count = 2;
  steps.kinds[0] = GatherSteps::kQuotient;
  steps.numbers[0] = 4;
  steps.factors[0] = 1;
  steps.values[0] = 0;
  steps.term_ends[0] = 1;
  steps.kinds[1] = GatherSteps::kSum;
  steps.constants[1] = 10;
  steps.factors[1] = 3;
  steps.values[1] = 1;
  steps.term_ends[1] = 2;
  return steps;
}
static_assert(Locate(Example(), 3) == 10);
static_assert(Locate(Example(), 11) == 16);

std::vector<int64_t> Located(const GatherSteps& steps) {
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < steps.element_count; ++i) {
    elements.push_back(Locate(steps, i));
  }
  return elements;
}

View ViewOf(const Layout& storage, const std::vector<Stage>& stages) {
  const auto view = View::Create(storage, 0, stages);
  EXPECT_TRUE(view.ok()) << view.status();
  return *view;
}

TEST(GatherStepsTest, NestedModesTakeOneStep) {
  const View view = ViewOf({{4, 3, 2}, {6, 2, 1}}, {});
  const auto steps = MakeGatherSteps(view, Order::kLastModeFastest);
  EXPECT_EQ(steps->step_count, 1);
  EXPECT_EQ(Locate(*steps, 23), 23);
  EXPECT_EQ(MakeGatherSteps(view, Order::kFirstModeFastest)->step_count, 3);
}

TEST(GatherStepsTest, CountThroughTheModesInEitherOrder) {
  const View view =
      ViewOf({{2, 2}, {2, 1}}, {{{{transform::PassThrough{}, {0}, {0}},
                                  {transform::Pad{1, 0}, {1}, {1}}}}});
  EXPECT_THAT(Located(*MakeGatherSteps(view, Order::kLastModeFastest)),
              ElementsAre(-1, 0, 1, -1, 2, 3));
  EXPECT_THAT(Located(*MakeGatherSteps(view, Order::kFirstModeFastest)),
              ElementsAre(-1, -1, 0, 2, 1, 3));
}

TEST(GatherStepsTest, PaddingAloneIsPadding) {
  const View view = ViewOf({{0}, {1}}, {{{{transform::Pad{1, 1}, {0}, {0}}}}});
  EXPECT_THAT(Located(*MakeGatherSteps(view, Order::kLastModeFastest)),
              ElementsAre(-1, -1));
}

TEST(GatherStepsTest, ScalarsAndEmptyViewsHaveSteps) {
  const View scalar = ViewOf({{}, {}}, {});
  EXPECT_THAT(Located(*MakeGatherSteps(scalar, Order::kLastModeFastest)),
              ElementsAre(0));
  const View empty = ViewOf({{3, 0}, {1, 1}}, {});
  EXPECT_THAT(Located(*MakeGatherSteps(empty, Order::kLastModeFastest)),
              ElementsAre());
}

TEST(GatherStepsTest, SwizzleIsTwoQuotientsOneXor) {
  const View view =
      ViewOf({{6, 4}, {4, 1}}, {{{{transform::Xor{}, {0, 1}, {0, 1}}}}});
  const auto steps = MakeGatherSteps(view, Order::kLastModeFastest);
  EXPECT_EQ(Located(*steps), ElementsOf(view));
}

TEST(GatherStepsTest, ManyModesThatDoNotNestFit) {
  ModeVector extents(40, 2);
  const Layout storage = PackedLayout(extents, Order::kFirstModeFastest);
  Stage stage;
  for (int i = 0; i < 40; ++i) {
    stage.transforms.push_back({transform::Pad{i < 20 ? 1 : 0, 0}, {i}, {i}});
  }
  const View view = ViewOf(storage, {stage});
  const auto steps = MakeGatherSteps(view, Order::kLastModeFastest);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(Locate(*steps, 0), GatherSteps::kPadding);
  EXPECT_EQ(Locate(*steps, steps->element_count - 1), (int64_t{1} << 40) - 1);
}

TEST(GatherStepsTest, MoreStepsThanFitAreRefused) {
  // Sixty modes that do not nest and padding in as many: too much.
  Layout storage = PackedLayout(ModeVector(62, 2), Order::kFirstModeFastest);
  Stage stage;
  for (int i = 0; i < 62; ++i) {
    if (i < 4) {
      stage.transforms.push_back({transform::Freeze{0}, {i}, {}});
    } else {
      // Extent 2: one index of the mode and one of padding.
      stage.transforms.push_back({transform::Slice{0, 1, 1}, {i}, {i - 4}});
    }
  }
  Stage pads;
  for (int i = 0; i < 58; ++i) {
    pads.transforms.push_back({transform::Pad{0, 1}, {i}, {i}});
  }
  const View view = ViewOf(storage, {stage, pads});
  const auto steps = MakeGatherSteps(view, Order::kLastModeFastest);
  EXPECT_EQ(steps.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(steps.status()), "VIEW_TOO_COMPLEX");
}

}  // namespace
}  // namespace tensord::core::test
