#include "client/load/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace tensord::load {
namespace {

constexpr absl::Duration kMeasured = absl::Seconds(10);
constexpr absl::Duration kGood = absl::Milliseconds(5);

/// A call that was sent when it was meant to be.
void Call(Statistics& statistics, absl::Duration intended,
          absl::Duration latency, const absl::Status& status = {}) {
  statistics.NoteSent(0, intended);
  statistics.NoteEnded(0, {intended, intended, intended + latency},
                       {.status = status});
}

TEST(StatisticsTest, LatencyCountsFromTheIntendedTime) {
  Statistics statistics(kMeasured, {kGood});
  statistics.NoteSent(0, absl::Seconds(1));
  statistics.NoteEnded(
      0, {absl::Seconds(1), absl::Seconds(3), absl::Seconds(4)}, {});
  const Counts counts = statistics.counts()[0];
  EXPECT_EQ(counts.latency.max(), absl::Seconds(3));
  EXPECT_EQ(counts.lateness.max(), absl::Seconds(2));
}

TEST(StatisticsTest, CountsAddUp) {
  Statistics statistics(kMeasured, {kGood, kGood});
  for (int i = 0; i < 10; ++i) {
    Call(statistics, absl::Seconds(1), absl::Milliseconds(i));
  }
  Call(statistics, absl::Seconds(1), absl::Seconds(1),
       absl::UnavailableError("gone"));
  Call(statistics, absl::Seconds(1), absl::Seconds(1),
       absl::UnavailableError("gone again"));
  Call(statistics, absl::Seconds(1), absl::Seconds(1),
       absl::DeadlineExceededError("late"));
  statistics.NoteNotSent(0, absl::Seconds(2));
  statistics.NoteSent(0, absl::Seconds(2));
  const Counts counts = statistics.counts()[0];
  EXPECT_EQ(counts.intended(), 15);
  EXPECT_EQ(counts.sent, 14);
  EXPECT_EQ(counts.ok, 10);
  EXPECT_EQ(counts.failed, 3);
  EXPECT_EQ(counts.not_sent, 1);
  EXPECT_EQ(counts.error_count(), 4);
  EXPECT_EQ(counts.unfinished(), 1);
  EXPECT_EQ(counts.good, 6);
  EXPECT_EQ(counts.latency.count(), counts.ok);
  ASSERT_EQ(counts.errors.size(), 2);
  const ErrorCount& gone = counts.errors.at({"UNAVAILABLE", ""});
  EXPECT_EQ(gone.count, 2);
  EXPECT_EQ(gone.example, "gone");
  EXPECT_EQ(statistics.counts()[1].sent, 0);
}

TEST(StatisticsTest, RatesAreOfWhatEndsWhileItIsMeasured) {
  Statistics statistics(kMeasured, {absl::InfiniteDuration()});
  Call(statistics, -absl::Seconds(2), absl::Seconds(1));   // before
  Call(statistics, -absl::Seconds(2), absl::Seconds(4));   // within
  Call(statistics, absl::Seconds(9), absl::Seconds(1));    // within
  Call(statistics, absl::Seconds(9), absl::Seconds(1.5));  // after
  Counts counts = statistics.counts()[0];
  EXPECT_EQ(counts.in_time, 2);
  EXPECT_EQ(counts.ok, 2) << "those that were meant to be sent within";
  statistics.CutShort(absl::Seconds(5));
  Call(statistics, absl::Seconds(5), absl::Seconds(1));
  counts = statistics.counts()[0];
  EXPECT_EQ(counts.in_time, 2);
  EXPECT_EQ(counts.ok, 3);
}

TEST(StatisticsTest, IntervalsHaveWhatHappenedSinceTheLastOne) {
  Statistics statistics(kMeasured, {kGood});
  Call(statistics, -absl::Seconds(1), absl::Milliseconds(1));
  statistics.NoteSent(0, absl::ZeroDuration());
  statistics.NoteNotSent(0, absl::ZeroDuration());
  Interval interval = statistics.TakeInterval();
  EXPECT_EQ(interval.sent, 2);
  EXPECT_EQ(interval.ok, 1);
  EXPECT_EQ(interval.not_sent, 1);
  EXPECT_EQ(interval.under_way, 1);
  EXPECT_EQ(interval.latency.count(), 1);
  interval = statistics.TakeInterval();
  EXPECT_EQ(interval.sent, 0);
  EXPECT_EQ(interval.under_way, 1);
  EXPECT_EQ(interval.latency.count(), 0);
}

TEST(CountsTest, SumsHaveTheErrorsOfBoth) {
  Statistics statistics(kMeasured, {kGood, kGood});
  Call(statistics, absl::Seconds(1), absl::Seconds(1),
       absl::UnavailableError("first"));
  statistics.NoteSent(1, absl::Seconds(1));
  statistics.NoteEnded(1, {}, {.status = absl::UnavailableError("second")});
  std::vector<Counts> counts = statistics.counts();
  counts[0].Add(counts[1]);
  EXPECT_EQ(counts[0].failed, 2);
  EXPECT_EQ(counts[0].errors.at({"UNAVAILABLE", ""}).count, 2);
  EXPECT_EQ(counts[0].errors.at({"UNAVAILABLE", ""}).example, "first");
}

}  // namespace
}  // namespace tensord::load
