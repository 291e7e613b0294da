#include "server/execution/background.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;

class TestJob final : public Background::Job {
 public:
  explicit TestJob(std::function<void()> work) : work_(std::move(work)) {}
  void Do() override { work_(); }

 private:
  const std::function<void()> work_;
};

/// What was done, in its order.
class Trace {
 public:
  void Add(std::string what) {
    absl::MutexLock lock(&mutex_);
    done_.push_back(std::move(what));
  }
  std::vector<std::string> Take() {
    absl::MutexLock lock(&mutex_);
    return done_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> done_ ABSL_GUARDED_BY(mutex_);
};

class BackgroundTest : public ::testing::Test {
 protected:
  TestJob* Named(const std::string& name) {
    return &jobs_.emplace_back([this, name] { trace_.Add(name); });
  }
  /// One that begins, and ends when it is told.
  TestJob* Held(absl::Notification& begun, absl::Notification& end) {
    return &jobs_.emplace_back([&begun, &end] {
      begun.Notify();
      end.WaitForNotification();
    });
  }

  Trace trace_;
  std::list<TestJob> jobs_;
};

TEST_F(BackgroundTest, ClientsTakeTurns) {
  absl::Notification begun, end;
  {
    Background background(1, 8);
    ASSERT_TRUE(background.Add({.number = 1}, Held(begun, end)).ok());
    begun.WaitForNotification();
    for (const char* name : {"1a", "1b", "1c"}) {
      ASSERT_TRUE(background.Add({.number = 1}, Named(name)).ok());
    }
    ASSERT_TRUE(background.Add({.number = 2}, Named("2a")).ok());
    ASSERT_TRUE(background.Add({.number = 2}, Named("2b")).ok());
    ASSERT_TRUE(background.Add({.number = 3}, Named("3a")).ok());
    end.Notify();
  }
  // Who is next depends on the time that each took, but for those that had
  // none.
  const std::vector<std::string> done = trace_.Take();
  ASSERT_EQ(done.size(), 6u);
  EXPECT_EQ(done[0], "2a");
  EXPECT_EQ(done[1], "3a");
}

TEST_F(BackgroundTest, AnOwnerLeavesAThreadToOthers) {
  absl::Notification begun, end, other_is_done;
  Background background(2, 8);
  ASSERT_TRUE(
      background.Add({.number = 1, .owner = "a"}, Held(begun, end)).ok());
  begun.WaitForNotification();
  // Of another client of the same owner: it waits, though a thread is free.
  ASSERT_TRUE(
      background.Add({.number = 2, .owner = "a"}, Named("second")).ok());
  TestJob other([&] { other_is_done.Notify(); });
  ASSERT_TRUE(background.Add({.number = 3, .owner = "b"}, &other).ok());
  other_is_done.WaitForNotification();
  EXPECT_THAT(trace_.Take(), ElementsAre());
  end.Notify();
}

TEST_F(BackgroundTest, AClientHasOneThreadAtATime) {
  absl::Notification begun, end, other_is_done;
  Background background(2, 8);
  ASSERT_TRUE(background.Add({.number = 1}, Held(begun, end)).ok());
  begun.WaitForNotification();
  ASSERT_TRUE(background.Add({.number = 1}, Named("1")).ok());
  TestJob other([&] { other_is_done.Notify(); });
  ASSERT_TRUE(background.Add({.number = 2}, &other).ok());
  other_is_done.WaitForNotification();
  EXPECT_THAT(trace_.Take(), ElementsAre());
  end.Notify();
}

TEST_F(BackgroundTest, WhatIsRemovedIsNotDone) {
  absl::Notification begun, end;
  {
    Background background(1, 8);
    TestJob* const first = Held(begun, end);
    ASSERT_TRUE(background.Add({.number = 1}, first).ok());
    begun.WaitForNotification();
    TestJob* const second = Named("1");
    TestJob* const third = Named("2");
    ASSERT_TRUE(background.Add({.number = 1}, second).ok());
    ASSERT_TRUE(background.Add({.number = 2}, third).ok());
    EXPECT_FALSE(background.Remove(1, first));
    EXPECT_TRUE(background.Remove(1, second));
    EXPECT_TRUE(background.Remove(2, third));
    EXPECT_FALSE(background.Remove(2, third));
    ASSERT_TRUE(background.Add({.number = 2}, Named("later")).ok());
    end.Notify();
  }
  EXPECT_THAT(trace_.Take(), ElementsAre("later"));
}

TEST_F(BackgroundTest, QueuesAreBoundedByClient) {
  absl::Notification begun, end;
  Background background(1, 2);
  ASSERT_TRUE(background.Add({.number = 1}, Held(begun, end)).ok());
  begun.WaitForNotification();
  EXPECT_TRUE(background.Add({.number = 1}, Named("a")).ok());
  EXPECT_TRUE(background.Add({.number = 1}, Named("b")).ok());
  EXPECT_EQ(core::ReasonOf(background.Add({.number = 1}, Named("c"))),
            "QUEUE_FULL");
  EXPECT_TRUE(background.Add({.number = 2}, Named("d")).ok());
  end.Notify();
}

}  // namespace
}  // namespace tensord::server
