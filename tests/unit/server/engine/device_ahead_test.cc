// Workers of devices that work on their own: launching runs ahead of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/engine/device_worker.h"
#include "tests/testing/soon.h"
#include "tests/unit/server/engine/trace.h"
#include "tests/unit/server/engine/work_stream.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;

/// Leaves work on its stream, or finds no memory for it.
class WorkJob final : public DeviceWorker::Job {
 public:
  WorkJob(std::string name, Trace& trace, bool wants_device_alone)
      : Job(wants_device_alone), name_(std::move(name)), trace_(trace) {}

  Outcome Launch(core::Stream& stream) override {
    if (lacks_memory) {
      trace_.Add("no memory for " + name_);
      if (at_lack) at_lack();
      return {.status = absl::ResourceExhaustedError("no memory"),
              .may_be_repeated = true};
    }
    trace_.Add("launch " + name_);
    static_cast<WorkStream&>(stream).last = work;
    return {};
  }
  void Complete(const absl::Status& status,
                const DeviceWorker::Times& times) override {
    EXPECT_LE(times.begun, times.ended);
    if (at_end) at_end();
    trace_.Add((status.ok() ? "end " : std::string(status.message()) + ": ") +
               name_);
  }

  const std::shared_ptr<Work> work = std::make_shared<Work>();
  std::atomic<bool> lacks_memory = false;
  std::function<void()> at_end, at_lack;

 private:
  const std::string name_;
  Trace& trace_;
};

/// A worker of a device that works on its own.
class DeviceAheadTest : public ::testing::Test {
 protected:
  WorkJob& Add(uint64_t client, const std::string& name) {
    WorkJob& job = New(name);
    EXPECT_TRUE(worker_->Add({.number = client}, &job).ok());
    return job;
  }
  WorkJob& New(const std::string& name, bool wants_device_alone = false) {
    jobs_.push_back(
        std::make_unique<WorkJob>(name, trace_, wants_device_alone));
    return *jobs_.back();
  }
  /// Client `client`'s job "alone", which wants the device alone.
  WorkJob& AddAlone(uint64_t client) {
    WorkJob& job = New("alone", true);
    EXPECT_TRUE(worker_->Add({.number = client}, &job).ok());
    return job;
  }
  void End(WorkJob& job) { job.work->End(); }
  /// Client 1's job "1", launched, and behind it client 2's "2", which finds no
  /// memory.
  std::pair<WorkJob*, WorkJob*> AddOneThatLacksMemory() {
    WorkJob& first = Add(1, "1");
    trace_.Await(1);
    WorkJob& second = New("2");
    second.lacks_memory = true;
    EXPECT_TRUE(worker_->Add({.number = 2}, &second).ok());
    trace_.Await(2);
    return {&first, &second};
  }

  std::unique_ptr<DeviceWorker> NewWorker(absl::Duration patience) {
    return std::make_unique<DeviceWorker>(
        std::make_unique<WorkStream>(),
        [this]() -> absl::StatusOr<std::unique_ptr<core::Stream>> {
          if (!has_more_streams_) return absl::InternalError("no stream");
          return std::make_unique<WorkStream>();
        },
        DeviceWorker::Options{
            .queue_limit = 100, .is_synchronous = false, .patience = patience});
  }

  Trace trace_;
  std::vector<std::unique_ptr<WorkJob>> jobs_;
  bool has_more_streams_ = true;
  std::unique_ptr<DeviceWorker> worker_ = NewWorker(absl::InfiniteDuration());
};

TEST_F(DeviceAheadTest, JobsAreLaunchedBeforeEarlierOnesEnd) {
  WorkJob& first = Add(1, "1");
  WorkJob& second = Add(1, "2");
  trace_.Await(2);
  WorkJob& other = Add(2, "of another");
  trace_.Await(3);
  End(second);  // It ends in order all the same.
  End(other);
  trace_.Await(4);
  End(first);
  EXPECT_THAT(trace_.Await(6),
              ElementsAre("launch 1", "launch 2", "launch of another",
                          "end of another", "end 1", "end 2"));
}

TEST_F(DeviceAheadTest, ClientsDoNotWaitForEachOther) {
  WorkJob& slow = Add(1, "slow");
  trace_.Await(1);
  WorkJob& quick = Add(2, "quick");
  trace_.Await(2);
  End(quick);
  EXPECT_THAT(trace_.Await(3),
              ElementsAre("launch slow", "launch quick", "end quick"));
  End(slow);
}

TEST_F(DeviceAheadTest, JobThatWantsTheDeviceAloneGetsIt) {
  WorkJob& before = Add(1, "before");
  trace_.Await(1);
  WorkJob& alone = AddAlone(2);
  WorkJob& after = Add(3, "after");  // which need not wait for that
  trace_.Await(2);
  End(before);
  trace_.Await(3);
  End(after);
  EXPECT_THAT(trace_.Await(5),
              ElementsAre("launch before", "launch after", "end before",
                          "end after", "launch alone"));
  End(alone);
}

TEST_F(DeviceAheadTest, NobodyWaitsLongForOneThatWantsTheDeviceAlone) {
  worker_ = NewWorker(absl::Seconds(2));
  WorkJob& slow = Add(1, "slow");
  trace_.Await(1);
  WorkJob& alone = AddAlone(2);
  WorkJob& after = Add(3, "after");
  EXPECT_THAT(trace_.Await(3),
              ElementsAre("launch slow", "launch after", "launch alone"));
  End(slow);
  End(alone);
  End(after);
}

TEST_F(DeviceAheadTest, RemovingTheOneThatWaitsToBeAloneLetsOthersGo) {
  WorkJob& before = Add(1, "before");
  trace_.Await(1);
  WorkJob& alone = AddAlone(2);
  WorkJob& after = Add(2, "after");
  ASSERT_TRUE(worker_->Remove(2, &alone));
  EXPECT_THAT(trace_.Await(2), ElementsAre("launch before", "launch after"));
  End(before);
  End(after);
}

TEST_F(DeviceAheadTest, LaunchingRunsAheadByABoundedNumber) {
  std::vector<WorkJob*> jobs;
  for (int i = 0; i < 40; ++i) jobs.push_back(&Add(1, "x"));
  const int ahead = 16;
  trace_.Await(ahead);
  jobs.push_back(&Add(2, "whose turn is later"));
  EXPECT_EQ(trace_.Await(ahead + 1).back(), "launch whose turn is later");
  EXPECT_EQ(worker_->statistics().queued_count, 40 - ahead);
  for (WorkJob* const job : jobs) End(*job);
  worker_.reset();
  EXPECT_EQ(trace_.entries().size(), 82u);
}

/// Waits for some of its own work while it is being launched.
class WaitingJob final : public DeviceWorker::Job {
 public:
  explicit WaitingJob(Trace& trace) : trace_(trace) {
    set_predicted(absl::Seconds(1));
  }
  Outcome Launch(core::Stream& stream) override {
    trace_.Add("waits");
    stream.interruption()->Await(std::make_shared<WorkEnd>(work));
    trace_.Add(is_stopped() ? "is stopped" : "goes on");
    return {.status = is_stopped() ? absl::CancelledError("stopped")
                                   : absl::OkStatus()};
  }
  void Complete(const absl::Status& status,
                const DeviceWorker::Times&) override {
    trace_.Add(status.ok() ? "ends" : "fails");
  }

  const std::shared_ptr<Work> work = std::make_shared<Work>();

 private:
  Trace& trace_;
};

TEST_F(DeviceAheadTest, OthersAreLaunchedWhileOneWaits) {
  WaitingJob waiting(trace_);
  ASSERT_TRUE(worker_->Add({.number = 1}, &waiting).ok());
  trace_.Await(1);
  for (const char* const name : {"a", "b"}) {
    const int count = static_cast<int>(trace_.entries().size());
    WorkJob& other = Add(2, name);
    trace_.Await(count + 1);
    End(other);
    trace_.Await(count + 2);
  }
  waiting.work->End();
  worker_.reset();  // after all that is queued
  EXPECT_THAT(trace_.entries(),
              ElementsAre("waits", "launch a", "end a", "launch b", "end b",
                          "goes on", "ends"));
}

TEST_F(DeviceAheadTest, WhoWaitsForItsWorkCanBeStopped) {
  WaitingJob waiting(trace_);
  ASSERT_TRUE(worker_->Add({.number = 1}, &waiting).ok());
  trace_.Await(1);
  worker_->Stop(waiting);  // its work never ends
  EXPECT_THAT(trace_.Await(3), ElementsAre("waits", "is stopped", "fails"));
  WorkJob& next = Add(1, "next");
  trace_.Await(4);
  End(next);
}

TEST_F(DeviceAheadTest, WhatWaitsIsDoneBeforeTheWorkerEnds) {
  std::vector<std::unique_ptr<WaitingJob>> jobs;
  for (uint64_t client = 0; client < 20; ++client) {
    jobs.push_back(std::make_unique<WaitingJob>(trace_));
    ASSERT_TRUE(worker_->Add({.number = client}, jobs.back().get()).ok());
  }
  trace_.Await(20);
  std::thread end([&] {
    for (const auto& job : jobs) job->work->End();
  });
  worker_.reset();
  end.join();
  const std::vector<std::string> trace = trace_.entries();
  EXPECT_EQ(std::count(trace.begin(), trace.end(), "ends"), 20);
}

TEST_F(DeviceAheadTest, ErrorOfTheWorkReachesItsJob) {
  WorkJob& job = Add(1, "1");
  job.work->status = absl::UnavailableError("lost");
  End(job);
  EXPECT_THAT(trace_.Await(2), ElementsAre("launch 1", "lost: 1"));
}

TEST_F(DeviceAheadTest, WorkWithoutAnEventIsWaitedFor) {
  WorkJob& job = New("1");
  job.work->has_event = false;
  ASSERT_TRUE(worker_->Add({.number = 1}, &job).ok());
  job.work->AwaitWaiting();
  EXPECT_THAT(trace_.entries(), ElementsAre("launch 1"));
  End(job);
  EXPECT_THAT(trace_.Await(2), ElementsAre("launch 1", "no event: 1"));
}

TEST_F(DeviceAheadTest, ManyClientsShareStreams) {
  std::vector<WorkJob*> jobs;
  for (uint64_t client = 1; client <= 50; ++client) {
    jobs.push_back(&Add(client, "x"));
  }
  EXPECT_EQ(trace_.Await(50).size(), 50u);  // none of them has ended
  for (WorkJob* const job : jobs) End(*job);
  worker_.reset();
  EXPECT_EQ(trace_.entries().size(), 100u);
}

TEST_F(DeviceAheadTest, NoneIsLaunchedWhileOneWaitsThatSharesItsStream) {
  constexpr int kStreams = 32;
  std::vector<WorkJob*> jobs;
  for (uint64_t client = 1; client <= kStreams; ++client) {
    jobs.push_back(&Add(client, "x"));
  }
  trace_.Await(kStreams);
  WaitingJob waiting(trace_);
  ASSERT_TRUE(worker_->Add({.number = kStreams + 1}, &waiting).ok());
  trace_.Await(kStreams + 1);
  jobs.push_back(&Add(1, "next"));
  waiting.work->AwaitWaiting();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(trace_.entries().back(), "waits");
  waiting.work->End();
  const auto trace = trace_.Await(kStreams + 3);
  EXPECT_EQ(trace[kStreams + 1], "goes on");
  EXPECT_EQ(trace[kStreams + 2], "launch next");
  for (WorkJob* const job : jobs) End(*job);
  worker_.reset();
}

TEST_F(DeviceAheadTest, JobWithoutAStreamFails) {
  has_more_streams_ = false;
  WorkJob& first = Add(1, "1");
  trace_.Await(1);
  Add(2, "2");
  EXPECT_THAT(trace_.Await(2), ElementsAre("launch 1", "no stream: 2"));
  End(first);
}

TEST_F(DeviceAheadTest, MemoryThatComesBackIsAskedForAgain) {
  const auto [first, second] = AddOneThatLacksMemory();
  first->at_end = [job = second] { job->lacks_memory = false; };
  WorkJob& third = Add(3, "3");  // is not held up
  End(third);
  trace_.Await(4);
  End(*first);
  End(*second);
  worker_.reset();
  const std::vector<std::string> trace = trace_.entries();
  EXPECT_THAT(std::vector(trace.begin(), trace.begin() + 2),
              ElementsAre("launch 1", "no memory for 2"));
  EXPECT_EQ(trace.back(), "end 2");
  EXPECT_EQ(std::count(trace.begin(), trace.end(), "launch 2"), 1);
}

// It comes back between the attempt and the look at what is under way.
TEST_F(DeviceAheadTest, MemoryThatComesBackMeanwhileIsAskedForAgain) {
  WorkJob& first = Add(1, "1");
  trace_.Await(1);
  WorkJob& third = Add(3, "3");
  trace_.Await(2);
  WorkJob& second = New("2");
  second.lacks_memory = true;
  second.at_lack = [&] {
    End(first);
    trace_.Await(4);
    End(third);  // so that the first is done with when this one is told of
    trace_.Await(5);
    second.lacks_memory = false;
  };
  ASSERT_TRUE(worker_->Add({.number = 2}, &second).ok());
  trace_.Await(6);
  End(second);
  EXPECT_THAT(trace_.Await(7),
              ElementsAre("launch 1", "launch 3", "no memory for 2", "end 1",
                          "end 3", "launch 2", "end 2"));
}

TEST_F(DeviceAheadTest, MemoryThatDoesNotComeBackIsWaitedForOnce) {
  const auto [first, second] = AddOneThatLacksMemory();
  Add(1, "later");  // is not waited for
  trace_.Await(3);
  End(*first);
  EXPECT_THAT(trace_.Await(6),
              ElementsAre("launch 1", "no memory for 2", "launch later",
                          "end 1", "no memory for 2", "no memory: 2"));
  EXPECT_EQ(worker_->statistics().queued_count, 0);
  End(*jobs_.back());
}

TEST_F(DeviceAheadTest, JobThatWaitsForMemoryCanBeRemoved) {
  const auto [first, second] = AddOneThatLacksMemory();
  EXPECT_TRUE(test::Soon([&] { return worker_->Remove(2, second); }));
  End(*first);
  worker_.reset();
  EXPECT_THAT(trace_.entries(),
              ElementsAre("launch 1", "no memory for 2", "end 1"));
}

}  // namespace
}  // namespace tensord::server
