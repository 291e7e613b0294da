#include "client/load/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tensord::load {
namespace {

constexpr int kCount = 100000;
// Six standard deviations: by chance, one of 5e8 seeds is beyond.
constexpr double kDeviations = 6;

TEST(PoissonScheduleTest, GapsAreExponentialWithTheRate) {
  constexpr double kRate = 250;
  PoissonSchedule schedule(kRate, absl::ZeroDuration(), 7);
  double sum = 0, square_sum = 0;
  int long_count = 0;  // gaps longer than the mean: one of e
  absl::Duration last;
  for (int i = 0; i < kCount; ++i) {
    const absl::Duration next = schedule.Next();
    ASSERT_GE(next, last);
    const double gap = absl::ToDoubleSeconds(next - last) * kRate;
    last = next;
    sum += gap;
    square_sum += gap * gap;
    long_count += gap > 1;
  }
  const double root = std::sqrt(kCount);
  EXPECT_NEAR(sum / kCount, 1, kDeviations / root);
  // The square of an exponential variable of mean 1 has the mean 2 and the
  // standard deviation sqrt(20).
  EXPECT_NEAR(square_sum / kCount, 2, kDeviations * std::sqrt(20) / root);
  const double part = std::exp(-1);
  EXPECT_NEAR(static_cast<double>(long_count) / kCount, part,
              kDeviations * std::sqrt(part * (1 - part)) / root);
}

TEST(PoissonScheduleTest, CountsOfSecondsHaveTheirMeanAsVariance) {
  constexpr double kRate = 40;
  constexpr int kSeconds = 5000;
  PoissonSchedule schedule(kRate, absl::ZeroDuration(), 3);
  std::vector<int> counts(kSeconds);
  while (true) {
    const auto second =
        static_cast<int>(absl::ToDoubleSeconds(schedule.Next()));
    if (second >= kSeconds) break;
    ++counts[second];
  }
  double sum = 0, deviation_sum = 0;
  for (const int count : counts) {
    sum += count;
    deviation_sum += (count - kRate) * (count - kRate);
  }
  EXPECT_NEAR(sum / kSeconds, kRate, kDeviations * std::sqrt(kRate / kSeconds));
  // The squared deviation has the mean `rate` and the variance
  // rate + 2 * rate^2.
  EXPECT_NEAR(deviation_sum / kSeconds, kRate,
              kDeviations * std::sqrt((kRate + 2 * kRate * kRate) / kSeconds));
}

TEST(PoissonScheduleTest, BeginsAtItsStartAndRepeatsWithItsSeed) {
  PoissonSchedule first(1000, absl::Seconds(-5), 1);
  PoissonSchedule second(1000, absl::Seconds(-5), 1);
  PoissonSchedule other(1000, absl::Seconds(-5), 2);
  const absl::Duration begun = first.Next();
  EXPECT_GT(begun, absl::Seconds(-5));
  EXPECT_LT(begun, absl::Seconds(-4.9));
  EXPECT_EQ(begun, second.Next());
  EXPECT_NE(begun, other.Next());
}

TEST(OperationChoiceTest, DrawsByWeightAndNeverAWeightOfZero) {
  OperationChoice choice({3, 0, 1}, 5);
  int counts[3] = {};
  for (int i = 0; i < kCount; ++i) ++counts[choice.Next()];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], kCount * 0.75,
              kDeviations * std::sqrt(kCount * 0.75 * 0.25));
}

}  // namespace
}  // namespace tensord::load
