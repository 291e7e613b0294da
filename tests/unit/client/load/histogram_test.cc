#include "client/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tensord::load {
namespace {

TEST(HistogramTest, WithoutDurationsTellsZeroes) {
  const Histogram none;
  EXPECT_EQ(none.Quantile(0.99), absl::ZeroDuration());
  EXPECT_EQ(none.mean(), absl::ZeroDuration());
  EXPECT_EQ(none.AtRank(1), absl::InfiniteDuration());
  EXPECT_TRUE(none.buckets().empty());
}

TEST(HistogramTest, FewNanosecondsAreExact) {
  Histogram histogram;
  for (int i = 1; i <= 200; ++i) histogram.Add(absl::Nanoseconds(i));
  EXPECT_EQ(histogram.Quantile(0.5), absl::Nanoseconds(100));
  EXPECT_EQ(histogram.Quantile(0.99), absl::Nanoseconds(198));
  EXPECT_EQ(histogram.Quantile(1), absl::Nanoseconds(200));
  EXPECT_EQ(histogram.mean(), absl::Nanoseconds(100.5));
}

TEST(HistogramTest, QuantilesAreWithinTheStatedErrorOfTheSortedOnes) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::lognormal_distribution<double> seconds(-6, 1 + seed % 5);
    Histogram histogram;
    std::vector<absl::Duration> durations;
    for (int i = 0; i < 500; ++i) {
      durations.push_back(absl::Seconds(seconds(random)));
      histogram.Add(durations.back());
    }
    std::ranges::sort(durations);
    EXPECT_EQ(histogram.max(), durations.back());
    for (const double quantile : {0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const absl::Duration exact =
          durations[RankOf(quantile, std::ssize(durations)) - 1];
      const absl::Duration got = histogram.Quantile(quantile);
      // One nanosecond more, as buckets are cut to those.
      EXPECT_LE(absl::AbsDuration(got - exact),
                exact * Histogram::kRelativeError + absl::Nanoseconds(1))
          << quantile << " " << exact << " " << got;
    }
  }
}

TEST(HistogramTest, BucketsHoldAllThereIsBelowTheirBounds) {
  std::mt19937 random(1);
  std::exponential_distribution<double> seconds(100);
  Histogram histogram;
  std::vector<absl::Duration> durations;
  for (int i = 0; i < 1000; ++i) {
    durations.push_back(absl::Seconds(seconds(random)));
    histogram.Add(durations.back());
  }
  int64_t below = 0;
  for (const Histogram::Bucket& bucket : histogram.buckets()) {
    below += bucket.count;
    EXPECT_EQ(std::ranges::count_if(durations,
                                    [&](absl::Duration each) {
                                      return absl::Floor(each,
                                                         absl::Nanoseconds(1)) <
                                             bucket.upper;
                                    }),
              below);
  }
  EXPECT_EQ(below, 1000);
}

TEST(HistogramTest, AddingAnotherOneIsAddingItsDurations) {
  Histogram all, first, second;
  for (int i = 0; i < 100; ++i) {
    const absl::Duration duration = absl::Microseconds(i * i * i);
    all.Add(duration);
    (i % 3 == 0 ? first : second).Add(duration);
  }
  first.Add(second);
  EXPECT_EQ(first.count(), all.count());
  EXPECT_EQ(first.mean(), all.mean());
  EXPECT_EQ(first.max(), all.max());
  for (int rank = 1; rank <= 101; ++rank) {
    EXPECT_EQ(first.AtRank(rank), all.AtRank(rank)) << rank;
  }
}

TEST(HistogramTest, TheLongestDurationIsTold) {
  Histogram histogram;
  histogram.Add(absl::InfiniteDuration());
  histogram.Add(-absl::Seconds(1));
  EXPECT_EQ(histogram.AtRank(1), absl::ZeroDuration());
  EXPECT_GT(histogram.AtRank(2), absl::Hours(24 * 365 * 200));
}

TEST(RankOfTest, TakesThePartThatIsAsked) {
  EXPECT_EQ(RankOf(0.99, 100), 99);
  EXPECT_EQ(RankOf(0.99, 1000), 990);
  EXPECT_EQ(RankOf(0.999, 1000), 999);
  EXPECT_EQ(RankOf(0.5, 3), 2);
  EXPECT_EQ(RankOf(0.001, 3), 1);
  EXPECT_EQ(RankOf(0.5, 0), 1);
}

}  // namespace
}  // namespace tensord::load
