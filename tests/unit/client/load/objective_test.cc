#include "client/load/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tensord::load {
namespace {

using ::testing::HasSubstr;

Judgement JudgeText(const std::string& text, const Counts& counts) {
  const absl::StatusOr<Objective> objective = ParseObjective(text);
  EXPECT_TRUE(objective.ok()) << objective.status();
  return objective.ok() ? Judge(*objective, counts, absl::Seconds(2))
                        : Judgement();
}

/// A hundred calls that took 1 to 100 ms.
Counts Hundred() {
  Counts counts;
  counts.sent = counts.ok = counts.good = 100;
  for (int i = 1; i <= 100; ++i) counts.latency.Add(absl::Milliseconds(i));
  return counts;
}

TEST(ObjectiveTest, PercentilesAreComparedWithDurations) {
  const Counts counts = Hundred();
  EXPECT_TRUE(JudgeText("p50<51ms", counts).met);
  EXPECT_FALSE(JudgeText("p50<49ms", counts).met);
  EXPECT_TRUE(JudgeText("p99<=0.1s", counts).met);
  EXPECT_TRUE(JudgeText("p99.9<=100ms", counts).met);
  EXPECT_FALSE(JudgeText("p99.9<100ms", counts).met);
  EXPECT_TRUE(JudgeText("p90>80ms", counts).met);
  EXPECT_NEAR(JudgeText("p99<10ms", counts).got, 0.099,
              0.099 * Histogram::kRelativeError);
}

TEST(ObjectiveTest, CallsThatFailedOrWereNotSentAreSlowerThanAllOthers) {
  Counts counts = Hundred();
  EXPECT_TRUE(JudgeText("p99<1s", counts).met);
  counts.not_sent = 1;
  EXPECT_TRUE(JudgeText("p99<1s", counts).met);
  counts.sent += 1;
  counts.failed = 1;
  const Judgement judgement = JudgeText("p99<1s", counts);
  EXPECT_FALSE(judgement.met);
  EXPECT_TRUE(std::isinf(judgement.got));
  EXPECT_TRUE(JudgeText("p98<1s", counts).met);
}

TEST(ObjectiveTest, NoCallsMeetNoLatency) {
  EXPECT_FALSE(JudgeText("p50<1h", {}).met);
}

TEST(ObjectiveTest, ErrorsAreCountedOrShared) {
  Counts counts = Hundred();
  EXPECT_TRUE(JudgeText("errors<=0", counts).met);
  counts.not_sent = 1;
  EXPECT_FALSE(JudgeText("errors<=0", counts).met);
  EXPECT_TRUE(JudgeText("errors<2", counts).met);
  EXPECT_TRUE(JudgeText("errors<1%", counts).met);
  EXPECT_FALSE(JudgeText("errors<0.9%", counts).met);
}

TEST(ObjectiveTest, GoodputIsOfGoodCallsInASecond) {
  EXPECT_TRUE(JudgeText("goodput>=50", Hundred()).met);
  EXPECT_FALSE(JudgeText("goodput>50/s", Hundred()).met);
  EXPECT_DOUBLE_EQ(JudgeText("goodput>1", Hundred()).got, 50);
}

TEST(ObjectiveTest, MayBeOfOneOperation) {
  const auto objective = ParseObjective("row sums:p99<10ms");
  ASSERT_TRUE(objective.ok()) << objective.status();
  EXPECT_EQ(objective->operation, "row sums");
}

TEST(ObjectiveTest, MalformedOnesAreQuoted) {
  for (const std::string text :
       {"", "p99", "p99=10ms", "p99<10", "p99<-1ms", "p99<fast", "p0<1ms",
        "p100<1ms", "px<1ms", "latency<1ms", "errors<x", "errors<-1",
        "errors<1ms", "goodput>", "goodput>1%", ":<1ms", "p99<<1ms"}) {
    const auto objective = ParseObjective(text);
    ASSERT_FALSE(objective.ok()) << text;
    EXPECT_THAT(std::string(objective.status().message()),
                HasSubstr("the objective '" + text + "'"));
    EXPECT_THAT(std::string(objective.status().message()),
                HasSubstr("wanted e.g. p99<10ms"));
  }
}

TEST(GoodWithinTest, IsTheMostLenientBoundOfTheOperationElseOfAll) {
  std::vector<Objective> objectives;
  EXPECT_EQ(GoodWithin(objectives, "a"), absl::InfiniteDuration());
  for (const char* text :
       {"p50<2ms", "p99<10ms", "p90>50ms", "errors<5", "a:p99<3ms"}) {
    objectives.push_back(*ParseObjective(text));
  }
  EXPECT_EQ(GoodWithin(objectives, "a"), absl::Milliseconds(3));
  EXPECT_EQ(GoodWithin(objectives, "b"), absl::Milliseconds(10));
}

}  // namespace
}  // namespace tensord::load
