#include "client/load/workers.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"

namespace tensord::load {
namespace {

TEST(WorkersTest, RefuseWhatNoThreadIsLeftFor) {
  absl::Notification go;
  Workers workers(2);
  std::atomic<int> ran = 0;
  const auto wait = [&] {
    go.WaitForNotification();
    ++ran;
  };
  EXPECT_TRUE(workers.TryRun(wait));
  EXPECT_TRUE(workers.TryRun(wait));
  EXPECT_FALSE(workers.TryRun(wait));
  EXPECT_FALSE(workers.AwaitIdle(absl::Milliseconds(1)));
  go.Notify();
  EXPECT_TRUE(workers.AwaitIdle(absl::InfiniteDuration()));
  EXPECT_EQ(ran, 2);
  EXPECT_TRUE(workers.TryRun([&] { ++ran; }));
  EXPECT_TRUE(workers.AwaitIdle(absl::InfiniteDuration()));
  EXPECT_EQ(ran, 3);
}

TEST(WorkersTest, RunAllThatTheyTook) {
  std::atomic<int> ran = 0;
  int taken = 0;
  {
    Workers workers(4);
    for (int i = 0; i < 10000; ++i) {
      taken += workers.TryRun([&] { ++ran; }) ? 1 : 0;
    }
  }
  EXPECT_EQ(ran, taken);
  EXPECT_GE(taken, 4);
}

TEST(WorkersTest, WithoutWorkAreIdle) {
  Workers workers(1);
  EXPECT_TRUE(workers.AwaitIdle(absl::ZeroDuration()));
}

}  // namespace
}  // namespace tensord::load
