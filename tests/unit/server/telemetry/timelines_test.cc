#include "server/telemetry/timelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace tensord::server {
namespace {

constexpr absl::Duration kNoWait = absl::ZeroDuration();
constexpr size_t kAll = 1'000'000;

Activity Call(const std::string& request_id, bool is_of_stream = false) {
  Activity activity;
  activity.request_id = request_id;
  activity.is_of_stream = is_of_stream;
  return activity;
}

std::vector<std::string> Ids(ActivityQueue& queue, size_t most = kAll) {
  std::vector<std::string> ids;
  for (const Activity& activity : queue.Take(most, kNoWait)) {
    ids.push_back(activity.request_id);
  }
  return ids;
}

TEST(ActivityQueueTest, WhatIsTooMuchIsDroppedAndCounted) {
  ActivityQueue queue(2);
  EXPECT_TRUE(queue.Add(Call("a")));
  EXPECT_TRUE(queue.Add(Call("b")));
  EXPECT_FALSE(queue.Add(Call("c")));
  EXPECT_EQ(queue.dropped_count(), 1);
  EXPECT_THAT(Ids(queue, 1), ::testing::ElementsAre("a"));
  EXPECT_TRUE(queue.Add(Call("d")));
  EXPECT_THAT(Ids(queue), ::testing::ElementsAre("b", "d"));
  EXPECT_EQ(queue.dropped_count(), 1);
}

TEST(ActivityQueueTest, TakeWaitsForEnoughOrForTheEnd) {
  ActivityQueue queue(10);
  std::thread adding([&] {
    absl::SleepFor(absl::Milliseconds(20));
    queue.Add(Call("a"));
    queue.Add(Call("b"));
    absl::SleepFor(absl::Milliseconds(20));
    queue.Close();
  });
  EXPECT_EQ(queue.Take(2, absl::InfiniteDuration()).size(), 2u);
  EXPECT_TRUE(queue.Take(1, absl::InfiniteDuration()).empty());
  adding.join();
  EXPECT_TRUE(queue.is_closed());
}

TEST(ActivityQueueTest, SpansAreOfACallAndOfEachPhaseItReached) {
  Activity activity;
  EXPECT_EQ(SpanCount(activity), 1);
  activity.phases = {absl::Seconds(1), absl::Seconds(2)};
  EXPECT_EQ(SpanCount(activity), 3);
}

TEST(TimelinesTest, NothingIsTakenWhenNobodyAsks) {
  Timelines timelines;
  EXPECT_FALSE(timelines.is_recording());
  timelines.Add(Call("before"));
  auto recording = timelines.Record("");
  ASSERT_TRUE(recording.ok());
  EXPECT_TRUE(timelines.is_recording());
  timelines.Add(Call("during"));
  EXPECT_THAT(Ids((*recording)->activities()),
              ::testing::ElementsAre("during"));
  recording->reset();
  EXPECT_FALSE(timelines.is_recording());
  timelines.Add(Call("after"));
}

TEST(TimelinesTest, OneCallIsRecordedUntilItEnds) {
  Timelines timelines;
  const auto recording = timelines.Record("job");
  ASSERT_TRUE(recording.ok());
  timelines.Add(Call("other"));
  timelines.Add(Call("job", /*is_of_stream=*/true));
  EXPECT_FALSE((*recording)->has_ended());
  timelines.Add(Call("job"));
  EXPECT_TRUE((*recording)->has_ended());
  EXPECT_THAT(Ids((*recording)->activities()),
              ::testing::ElementsAre("job", "job"));
}

TEST(TimelinesTest, AnotherTenantsCallOfTheSameIdIsNotMeant) {
  Timelines timelines;
  const auto recording = timelines.Record("job", "chemistry");
  ASSERT_TRUE(recording.ok());
  const auto all = timelines.Record("", "chemistry");
  Activity others = Call("job");
  others.tenant = "biology";
  timelines.Add(others);
  EXPECT_FALSE((*recording)->has_ended());
  Activity own = Call("job");
  own.tenant = "chemistry";
  timelines.Add(own);
  EXPECT_TRUE((*recording)->has_ended());
  EXPECT_THAT(Ids((*recording)->activities()), ::testing::ElementsAre("job"));
  EXPECT_THAT(Ids((*all)->activities()), ::testing::ElementsAre("job"));
}

TEST(TimelinesTest, SoManyAreRecordedAtATime) {
  Timelines timelines;
  std::vector<std::unique_ptr<Timelines::Recording>> recordings;
  for (int i = 0; i < 4; ++i) {
    recordings.push_back(timelines.Record("").value());
  }
  EXPECT_EQ(timelines.Record("").status().message(),
            "4 timelines are being recorded already, as many as may be; retry "
            "later");
  recordings.pop_back();
  EXPECT_TRUE(timelines.Record("").ok());
  timelines.Add(Call("a"));
  for (const auto& recording : recordings) {
    EXPECT_THAT(Ids(recording->activities()), ::testing::ElementsAre("a"));
  }
}

}  // namespace
}  // namespace tensord::server
