#include "core/plan/planner.h"

#include <string>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/fake_backend.h"

namespace tensord::core {
namespace {

using tensord::test::FakeBackend;
using tensord::test::Transpose;
using ::testing::HasSubstr;

PlanKey KeyFor(const AnyProblem& problem) {
  return {.problem = problem, .device = "fake:0, as it was measured"};
}

const FakeBackend& ThreeKernels() {
  static const auto& backend = *new FakeBackend(
      {{.name = "special",
        .supports = Unimplemented("EXTENT_ODD", "extent 5 is odd"),
        .nanoseconds = 1},
       {.name = "fast", .nanoseconds = 10, .workspace_bytes = 4096},
       {.name = "reference", .nanoseconds = 100}});
  return backend;
}

TEST(PlannerTest, TheKernelThatPredictsLeastIsTaken) {
  const auto plan = MakePlan(ThreeKernels(), KeyFor(Transpose()));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->kernel_name(), "fast");
  EXPECT_EQ(plan->workspace_bytes(), 4096);
  EXPECT_EQ(plan->predicted_nanoseconds(), 10);
  EXPECT_EQ(plan->solution->decision(), "as fast was told");
}

TEST(PlannerTest, OfEqualsTheFirstInTheListIsTaken) {
  const FakeBackend backend({{.name = "first", .nanoseconds = 7},
                             {.name = "second", .nanoseconds = 7}});
  EXPECT_EQ(MakePlan(backend, KeyFor(Transpose()))->kernel_name(), "first");
}

TEST(PlannerTest, CandidatesComeInOrderWithTheReasonOfEachRefusal) {
  const std::vector<Candidate> candidates =
      ListCandidates(ThreeKernels(), KeyFor(Transpose()));
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].name, "special");
  EXPECT_EQ(ReasonOf(candidates[0].refusal), "EXTENT_ODD");
  EXPECT_EQ(candidates[0].refusal.message(), "extent 5 is odd");
  EXPECT_TRUE(candidates[1].refusal.ok());
  EXPECT_EQ(candidates[1].solution->workspace_bytes(), 4096);
  EXPECT_EQ(candidates[2].solution->predicted_nanoseconds(), 100);
}

TEST(PlannerTest, WorkspaceLimitRulesKernelsOut) {
  PlanKey key = KeyFor(Transpose());
  key.workspace_limit_bytes = 4095;
  EXPECT_EQ(MakePlan(ThreeKernels(), key)->kernel_name(), "reference");
  key.workspace_limit_bytes = 4096;
  EXPECT_EQ(MakePlan(ThreeKernels(), key)->kernel_name(), "fast");
}

// A4.9
TEST(PlannerTest, TooLittleWorkspaceNamesTheSmallestNeed) {
  const FakeBackend backend({{.name = "large", .workspace_bytes = 4096},
                             {.name = "small", .workspace_bytes = 512}});
  PlanKey key = KeyFor(Transpose());
  key.workspace_limit_bytes = 100;
  const absl::Status status = MakePlan(backend, key).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "WORKSPACE_LIMIT");
  EXPECT_THAT(std::string(status.message()), HasSubstr("100 bytes"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("least needs 512"));
}

// A4.5
TEST(PlannerTest, NamedKernelIsTakenWhateverItPredicts) {
  PlanKey key = KeyFor(Transpose());
  key.kernel = "reference";
  EXPECT_EQ(MakePlan(ThreeKernels(), key)->kernel_name(), "reference");
}

// A4.5
TEST(PlannerTest, NamedKernelThatDeclinesSaysWhy) {
  PlanKey key = KeyFor(Transpose());
  key.kernel = "special";
  const absl::Status status = MakePlan(ThreeKernels(), key).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("special: extent 5 is odd"));
}

TEST(PlannerTest, UnknownKernelNamesThoseThereAre) {
  PlanKey key = KeyFor(Transpose());
  key.kernel = "quantum";
  const absl::Status status = MakePlan(ThreeKernels(), key).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'quantum' does not exist on fake:0, there are "
                        "special, fast, reference"));
}

TEST(PlannerTest, WhenNoneSupportsItEveryReasonIsGiven) {
  const FakeBackend backend(
      {{.name = "one", .supports = Unimplemented("A", "too flat")},
       {.name = "two", .supports = Unimplemented("B", "too tall")}});
  const absl::Status status = MakePlan(backend, KeyFor(Transpose())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("one: too flat; two: too tall"));
}

TEST(PlannerTest, OneKernelCanBeAskedAlone) {
  const auto fast = FindCandidate(ThreeKernels(), KeyFor(Transpose()), "fast");
  ASSERT_TRUE(fast);
  EXPECT_TRUE(fast->refusal.ok());
  EXPECT_EQ(fast->solution->workspace_bytes(), 4096);
  const auto special =
      FindCandidate(ThreeKernels(), KeyFor(Transpose()), "special");
  ASSERT_TRUE(special);
  EXPECT_EQ(ReasonOf(special->refusal), "EXTENT_ODD");
  EXPECT_FALSE(FindCandidate(ThreeKernels(), KeyFor(Transpose()), "quantum"));
}

TEST(PlannerTest, ListsAPlanForEachKernelThatCouldRun) {
  const std::vector<Plan> plans =
      ListPlans(ThreeKernels(), KeyFor(Transpose()));
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].kernel_name(), "fast");
  EXPECT_EQ(plans[0].workspace_bytes(), 4096);
  EXPECT_EQ(plans[1].kernel_name(), "reference");
  EXPECT_EQ(plans[1].predicted_nanoseconds(), 100);
  EXPECT_EQ(plans[1].solution->decision(), "as reference was told");
  EXPECT_TRUE(ListPlans(ThreeKernels(), KeyFor(Transpose(0, 5))).empty());
}

TEST(PlannerTest, EmptyOutputNeedsNoKernel) {
  const auto plan = MakePlan(ThreeKernels(), KeyFor(Transpose(0, 5)));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->kernel_name(), "");
  EXPECT_EQ(plan->workspace_bytes(), 0);
}

TEST(PlannerTest, EmptinessIsThatOfTheOutput) {
  ReductionProblem sum;
  sum.reduced = {{0, {0}}};
  EXPECT_FALSE(IsEmpty(sum)) << "a sum of nothing has a value";
  sum.kept = {{0, {0, 0, 0}}};
  EXPECT_TRUE(IsEmpty(sum));
  ContractionProblem product;
  product.k = {{0, {0, 0}}};
  EXPECT_FALSE(IsEmpty(product));
  product.n = {{0, {0, 0, 0}}};
  EXPECT_TRUE(IsEmpty(product));
}

}  // namespace
}  // namespace tensord::core
