#include "core/executor/measure.h"

#include "core/base/status.h"
#include "core/memory/limiting_resource.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/fake_backend.h"

namespace tensord::core {
namespace {

using tensord::test::FakeBackend;
using tensord::test::FakeStream;
using tensord::test::Transpose;

class MeasurePlanTest : public ::testing::Test {
 protected:
  static PlanKey Key(const PermutationProblem& problem = Transpose()) {
    return {.problem = problem,
            .device = "fake:0",
            .selection = Selection::kMeasure};
  }
  absl::StatusOr<Plan> Measure(FakeBackend& backend) {
    TENSORD_ASSIGN_OR_RETURN(MeasuredPlan measured,
                             MeasurePlan(backend, Key(), PermutationOperands{},
                                         backend.memory(), stream_));
    EXPECT_TRUE(measured.is_complete);
    return std::move(measured.plan);
  }
  FakeStream stream_;
};

TEST_F(MeasurePlanTest, TakesTheFastestWhateverThePrediction) {
  FakeBackend backend({{.name = "slow",
                        .nanoseconds = 1,
                        .launch_time = absl::Milliseconds(30)},
                       {.name = "fast", .nanoseconds = 40}});
  const auto plan = Measure(backend);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->kernel_name(), "fast");
  EXPECT_EQ(plan->selection, Selection::kMeasure);
}

TEST_F(MeasurePlanTest, DoesNotTryTheHopelessOrThoseThatDecline) {
  int hopeless = 0, declining = 0;
  FakeBackend backend(
      {{.name = "best", .nanoseconds = 1},
       {.name = "hopeless", .nanoseconds = 51, .launch_count = &hopeless},
       {.name = "declining",
        .supports = Unimplemented("NO", "no"),
        .launch_count = &declining}});
  EXPECT_EQ(Measure(backend)->kernel_name(), "best");
  EXPECT_EQ(hopeless + declining, 0);
}

TEST_F(MeasurePlanTest, LeavesOutWhatGetsNoWorkspace) {
  FakeBackend backend(
      {{.name = "large", .workspace_bytes = 4096}, {.name = "small"}});
  LimitingResource memory(backend.memory(), 1024, "memory");
  const auto plan =
      MeasurePlan(backend, Key(), PermutationOperands{}, memory, stream_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->plan.kernel_name(), "small");
  EXPECT_FALSE(plan->is_complete);
}

TEST_F(MeasurePlanTest, WithoutWorkspaceForAnySaysSo) {
  FakeBackend backend({{.name = "large", .workspace_bytes = 4096}});
  LimitingResource memory(backend.memory(), 1024, "memory");
  EXPECT_EQ(MeasurePlan(backend, Key(), PermutationOperands{}, memory, stream_)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(MeasurePlanTest, ErrorsOfKernelsAndOfTheStreamReachTheCaller) {
  FakeBackend failing({{.name = "only", .launch = Internal("LAUNCH", "x")}});
  EXPECT_EQ(ReasonOf(Measure(failing).status()), "LAUNCH");
  FakeBackend backend({{.name = "only"}});
  stream_.status = Internal("KERNEL_FAILED", "later");
  EXPECT_EQ(ReasonOf(Measure(backend).status()), "KERNEL_FAILED");
}

TEST_F(MeasurePlanTest, NothingToComputeIsNotMeasured) {
  int launches = 0;
  FakeBackend backend({{.name = "only", .launch_count = &launches}});
  const auto plan =
      MeasurePlan(backend, Key(Transpose(0, 5)), PermutationOperands{},
                  backend.memory(), stream_);
  EXPECT_EQ(plan->plan.kernel_name(), "");
  EXPECT_EQ(launches, 0);
}

}  // namespace
}  // namespace tensord::core
