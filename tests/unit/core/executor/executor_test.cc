#include "core/executor/executor.h"

#include "core/base/status.h"
#include "core/plan/plan_cache.h"
#include "core/plan/planner.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/fake_backend.h"

namespace tensord::core {
namespace {

using tensord::test::FakeBackend;
using tensord::test::FakeStream;
using tensord::test::Transpose;

PlanKey KeyOf(const PermutationProblem& problem) {
  return {.problem = problem, .device = "fake:0"};
}

TEST(ExecutorTest, LaunchesThePlannedKernelWithItsWorkspace) {
  int launches = 0;
  FakeBackend backend(
      {{.name = "only", .workspace_bytes = 512, .launch_count = &launches}});
  const Plan plan = MakePlan(backend, KeyOf(Transpose())).value();
  const Buffer scratch =
      Buffer::Allocate(backend.memory(), plan.workspace_bytes()).value();
  FakeStream stream;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(Execute(plan, PermutationOperands{}, scratch, stream).ok());
    EXPECT_EQ(launches, i);
  }
}

TEST(ExecutorTest, AThousandLaunchesOfOnePlanAreDecidedOnce) {
  int solved = 0, launched = 0;
  FakeBackend backend({{.name = "only",
                        .workspace_bytes = 512,
                        .launch_count = &launched,
                        .on_solve = [&] { ++solved; }}});
  const PlanKey key = KeyOf(Transpose());
  const Buffer scratch = Buffer::Allocate(backend.memory(), 512).value();
  FakeStream stream;
  PlanCache cache(10);
  for (int i = 0; i < 1000; ++i) {
    const auto lookup =
        cache.GetOrMake(key, [&] { return MakePlan(backend, key); });
    ASSERT_TRUE(lookup.ok()) << lookup.status();
    ASSERT_TRUE(
        Execute(*lookup->plan, PermutationOperands{}, scratch, stream).ok());
  }
  EXPECT_EQ(launched, 1000);
  EXPECT_EQ(solved, 1);
}

TEST(ExecutorTest, EmptyPlanLaunchesNothing) {
  int launches = 0;
  FakeBackend backend({{.name = "only", .launch_count = &launches}});
  const Plan plan = MakePlan(backend, KeyOf(Transpose(0, 5))).value();
  FakeStream stream;
  EXPECT_TRUE(Execute(plan, PermutationOperands{}, Buffer(), stream).ok());
  EXPECT_EQ(launches, 0);
}

TEST(ExecutorTest, ErrorsOfTheLaunchReachTheCaller) {
  FakeBackend failing(
      {{.name = "only", .launch = Internal("LAUNCH_FAILED", "launch")}});
  FakeStream stream;
  EXPECT_EQ(ReasonOf(Execute(MakePlan(failing, KeyOf(Transpose())).value(),
                             PermutationOperands{}, Buffer(), stream)),
            "LAUNCH_FAILED");
}

}  // namespace
}  // namespace tensord::core
