#include "server/engine/device_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/status.h"
#include "core/device/host_stream.h"

namespace tensord::server {
namespace {

class FunctionJob final : public DeviceWorker::Job {
 public:
  explicit FunctionJob(std::function<void()> run) : run_(std::move(run)) {}
  void Run(core::Stream&) override { run_(); }

 private:
  std::function<void()> run_;
};

/// A worker whose thread is held until Release().
class DeviceWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(worker_->Add(0, &hold_).ok());
    held_.WaitForNotification();
  }
  /// Queues a job that writes down `name` when it runs.
  absl::Status Add(uint64_t client, std::string name) {
    jobs_.push_back(std::make_unique<FunctionJob>(
        [this, name = std::move(name)] { ran_.push_back(name); }));
    return worker_->Add(client, jobs_.back().get());
  }
  /// Lets everything run and stops the worker.
  void RunAll() {
    release_.Notify();
    worker_.reset();
  }

  absl::Notification held_, release_;
  std::vector<std::string> ran_;
  std::vector<std::unique_ptr<FunctionJob>> jobs_;
  FunctionJob hold_{[this] {
    held_.Notify();
    release_.WaitForNotification();
  }};
  std::unique_ptr<DeviceWorker> worker_ =
      std::make_unique<DeviceWorker>(std::make_unique<core::HostStream>(), 6);
};

TEST_F(DeviceWorkerTest, JobsOfOneClientRunInOrder) {
  for (const char* name : {"1", "2", "3"}) ASSERT_TRUE(Add(7, name).ok());
  RunAll();
  EXPECT_THAT(ran_, ::testing::ElementsAre("1", "2", "3"));
}

TEST_F(DeviceWorkerTest, ClientsTakeTurns) {
  for (const char* name : {"a1", "a2", "a3"}) ASSERT_TRUE(Add(1, name).ok());
  for (const char* name : {"b1", "b2"}) ASSERT_TRUE(Add(2, name).ok());
  RunAll();
  EXPECT_THAT(ran_, ::testing::ElementsAre("a1", "b1", "a2", "b2", "a3"));
}

TEST_F(DeviceWorkerTest, RemovedJobNeverRuns) {
  ASSERT_TRUE(Add(1, "keeps").ok());
  ASSERT_TRUE(Add(1, "goes").ok());
  ASSERT_TRUE(Add(2, "goes too").ok());
  EXPECT_TRUE(worker_->Remove(1, jobs_[1].get()));
  EXPECT_TRUE(worker_->Remove(2, jobs_[2].get()));
  EXPECT_FALSE(worker_->Remove(2, jobs_[2].get()));
  EXPECT_FALSE(worker_->Remove(9, jobs_[0].get()));
  EXPECT_EQ(worker_->statistics().queued_count, 1);
  RunAll();
  EXPECT_THAT(ran_, ::testing::ElementsAre("keeps"));
}

TEST_F(DeviceWorkerTest, RunningJobCannotBeRemoved) {
  EXPECT_FALSE(worker_->Remove(0, &hold_));
  RunAll();
}

TEST_F(DeviceWorkerTest, WhatOthersHaveQueuedDoesNotCount) {
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(Add(1, "x").ok());
    ASSERT_TRUE(Add(2, "y").ok());
  }
  EXPECT_FALSE(Add(2, "one too many").ok());
  RunAll();
  EXPECT_EQ(ran_.size(), 12u);
}

TEST_F(DeviceWorkerTest, FullQueueSaysHowManyWait) {
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Add(1, "x").ok());
  const absl::Status full = Add(1, "one too many");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core::ReasonOf(full), "QUEUE_FULL");
  EXPECT_THAT(std::string(full.message()), ::testing::HasSubstr("6"));
  RunAll();
  EXPECT_EQ(ran_.size(), 6u);
}

}  // namespace
}  // namespace tensord::server
