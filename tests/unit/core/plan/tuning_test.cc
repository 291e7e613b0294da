#include "core/plan/tuning.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

using ::testing::ElementsAre;

Tuning ThreeCandidates() {
  return Tuning({{"first", 1, 10}, {"second", 1, 20}, {"third", 1, 30}});
}

/// Tries until nobody is left; `times` gives a candidate's time.
std::vector<size_t> TryAll(Tuning& tuning, const std::vector<double>& times) {
  std::vector<size_t> tried;
  while (const auto next = tuning.NextToTry()) {
    tried.push_back(*next);
    tuning.AddSample(*next, times[*next]);
  }
  return tried;
}

TEST(ChooseMeasuredTest, TakesTheLeastTime) {
  const std::vector<KernelTime> kernels = {{10, 100}, {20, 50}, {30, 80}};
  EXPECT_EQ(ChooseMeasured(kernels), 1u);
}

TEST(ChooseMeasuredTest, WithinTheBandThePredictionDecides) {
  EXPECT_EQ(ChooseMeasured(std::vector<KernelTime>{{10, 104}, {20, 100}}), 0u);
  EXPECT_EQ(ChooseMeasured(std::vector<KernelTime>{{10, 106}, {20, 100}}), 1u);
  EXPECT_EQ(ChooseMeasured(std::vector<KernelTime>{{20, 100}, {10, 104}}), 1u);
}

TEST(ChooseMeasuredTest, OfEqualPredictionsTheFirstIsTaken) {
  EXPECT_EQ(ChooseMeasured(std::vector<KernelTime>{{10, 104}, {10, 100}}), 0u);
}

TEST(ChooseMeasuredTest, TheIncumbentStaysUnlessItIsBeatenByMoreThanTheBand) {
  const std::vector<KernelTime> near = {{10, 100}, {20, 104}};
  EXPECT_EQ(ChooseMeasured(near), 0u);
  EXPECT_EQ(ChooseMeasured(near, 1), 1u);
  const std::vector<KernelTime> far = {{10, 100}, {20, 106}};
  EXPECT_EQ(ChooseMeasured(far, 1), 0u);
}

TEST(ChooseMeasuredTest, WhatWasNotMeasuredIsNotTaken) {
  EXPECT_EQ(ChooseMeasured(std::vector<KernelTime>{{1, std::nullopt}, {9, 5}}),
            1u);
  EXPECT_EQ(
      ChooseMeasured(std::vector<KernelTime>{{1, std::nullopt}, {9, 5}}, 0),
      1u);
  EXPECT_EQ(ChooseMeasured(std::vector<KernelTime>{{1, std::nullopt}}),
            std::nullopt);
  EXPECT_EQ(ChooseMeasured({}), std::nullopt);
}

TEST(TuningTest, EachIsTriedInTurnUntilAllHaveTheirSamples) {
  Tuning tuning = ThreeCandidates();
  EXPECT_FALSE(tuning.is_complete());
  EXPECT_THAT(TryAll(tuning, {30, 10, 20}),
              ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2));
  EXPECT_TRUE(tuning.is_complete());
  EXPECT_EQ(tuning.sample_count(), 9);
  EXPECT_EQ(tuning.wanted_sample_count(), 9);
  EXPECT_EQ(tuning.Choice(), 1u);
  EXPECT_EQ(tuning.MeasuredNanoseconds(1), 10);
}

TEST(TuningTest, ExecutionsAtTheSameTimeTryDifferentCandidates) {
  Tuning tuning = ThreeCandidates();
  EXPECT_EQ(tuning.NextToTry(), 0u);
  EXPECT_EQ(tuning.NextToTry(), 1u);
  EXPECT_EQ(tuning.NextToTry(), 2u);
  EXPECT_EQ(tuning.NextToTry(), 0u);
  tuning.AddSample(1, 5);
  EXPECT_EQ(tuning.NextToTry(), 1u);
}

TEST(TuningTest, TheHopelessAreNotTried) {
  Tuning tuning({{"best", 1, 1}, {"hopeless", 1, 51}, {"slow", 1, 50}});
  EXPECT_THAT(TryAll(tuning, {2, 1, 3}), ElementsAre(0, 2, 0, 2, 0, 2));
  EXPECT_EQ(tuning.Choice(), 0u);
  EXPECT_EQ(tuning.wanted_sample_count(), 6);
}

TEST(TuningTest, TheLeastSampleCounts) {
  Tuning tuning({{"first", 1, 10}, {"second", 1, 20}});
  for (const double time : {900.0, 100.0, 120.0}) tuning.AddSample(0, time);
  for (const double time : {150.0, 150.0, 150.0}) tuning.AddSample(1, time);
  EXPECT_EQ(tuning.MeasuredNanoseconds(0), 100);
  EXPECT_EQ(tuning.Choice(), 0u);
}

TEST(TuningTest, WhatFailsIsNeitherTriedAgainNorTaken) {
  Tuning tuning({{"first", 1, 10}, {"second", 1, 20}});
  tuning.AddSample(*tuning.NextToTry(), 1);
  EXPECT_EQ(tuning.NextToTry(), 1u);
  tuning.AddFailure(0);
  EXPECT_THAT(TryAll(tuning, {1, 7}), ElementsAre(1, 1));
  tuning.AddSample(1, 7);
  EXPECT_TRUE(tuning.is_complete());
  EXPECT_EQ(tuning.Choice(), 1u);
  tuning.AddFailure(1);
  EXPECT_TRUE(tuning.is_complete());
  EXPECT_EQ(tuning.Choice(), std::nullopt);
}

TEST(TuningTest, WhatIsNeverHeardOfAgainIsTriedAgainAfterAWhile) {
  Tuning tuning({{"only", 1, 10}});
  for (int i = 0; i < kTuningSamples; ++i) EXPECT_EQ(tuning.NextToTry(), 0u);
  int calls = 0;
  while (!tuning.NextToTry()) ASSERT_LT(++calls, 1000);
  EXPECT_GT(calls, 10);
}

TEST(TuningTest, GoesOnWhereItWasLeft) {
  Tuning before = ThreeCandidates();
  for (int i = 0; i < 4; ++i) before.AddSample(*before.NextToTry(), 10.0 + i);
  Tuning after = ThreeCandidates();
  after.Restore(before.Times());
  EXPECT_EQ(after.Times(), before.Times());
  EXPECT_EQ(after.NextToTry(), 1u);
}

TEST(TuningTest, SamplesOfOtherVersionsAreNotTakenOver) {
  Tuning tuning({{"first", 2, 10}, {"second", 1, 20}});
  tuning.Restore(std::vector<KernelTimes>{
      {"first", 1, {5}}, {"second", 1, {6}}, {"gone", 1, {7}}});
  EXPECT_EQ(tuning.Times(), (std::vector<KernelTimes>{{"second", 1, {6}}}));
}

}  // namespace
}  // namespace tensord::core
