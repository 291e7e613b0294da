#include "server/engine/device_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/device/host_stream.h"
#include "core/device/interruption.h"
#include "core/device/signal.h"
#include "server/engine/quota.h"
#include "tests/testing/no_threads.h"
#include "tests/testing/soon.h"
#include "tests/unit/server/engine/trace.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;

class FunctionJob final : public DeviceWorker::Job {
 public:
  explicit FunctionJob(std::function<void()> run) : run_(std::move(run)) {
    set_predicted(absl::Seconds(1));  // does not run beside another
  }
  Outcome Launch(core::Stream&) override {
    run_();
    return {};
  }
  void Complete(const absl::Status&, const DeviceWorker::Times&) override {}

 private:
  std::function<void()> run_;
};

/// A worker on the host whose thread is held until Release().
class DeviceWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(worker_->Add({.number = 0}, &hold_).ok());
    held_.WaitForNotification();
  }
  /// Queues a job that writes down `name` when it runs.
  absl::Status Add(uint64_t client, std::string name) {
    jobs_.push_back(std::make_unique<FunctionJob>(
        [this, name = std::move(name)] { trace_.Add(name); }));
    return worker_->Add({.number = client}, jobs_.back().get());
  }
  /// Lets everything run and stops the worker.
  std::vector<std::string> RunAll() {
    release_.Notify();
    worker_.reset();
    return trace_.entries();
  }

  static absl::StatusOr<std::unique_ptr<core::Stream>> NewStream() {
    return std::make_unique<core::HostStream>();
  }

  absl::Notification held_, release_;
  Trace trace_;
  std::vector<std::unique_ptr<FunctionJob>> jobs_;
  FunctionJob hold_{[this] {
    held_.Notify();
    release_.WaitForNotification();
  }};
  std::unique_ptr<DeviceWorker> worker_ = std::make_unique<DeviceWorker>(
      std::make_unique<core::HostStream>(), NewStream,
      DeviceWorker::Options{.queue_limit = 6});
};

TEST_F(DeviceWorkerTest, JobsOfOneClientRunInOrder) {
  for (const char* name : {"1", "2", "3"}) ASSERT_TRUE(Add(7, name).ok());
  EXPECT_THAT(RunAll(), ElementsAre("1", "2", "3"));
}

class DeviceWorkerSharesTest : public DeviceWorkerTest {
 protected:
  absl::Status AddOfTenant(uint64_t client, DeviceWorker::Job* job) {
    return worker_->Add({.number = client, .owner = "tenant", .share = share_},
                        job);
  }

  std::shared_ptr<QueueShare> share_ = std::make_shared<QueueShare>("red");
};

TEST_F(DeviceWorkerSharesTest, SoManyOfATenantMayWait) {
  share_->queued_limit = 2;
  FunctionJob jobs[] = {FunctionJob([] {}), FunctionJob([] {}),
                        FunctionJob([] {})};
  ASSERT_TRUE(AddOfTenant(1, &jobs[0]).ok());
  ASSERT_TRUE(AddOfTenant(2, &jobs[1]).ok());
  for (const uint64_t client : {1, 2, 3}) {
    const absl::Status refused = AddOfTenant(client, &jobs[2]);
    EXPECT_EQ(core::ReasonOf(refused), "TENANT_QUOTA_EXCEEDED");
    const auto quota = QuotaOf(refused);
    ASSERT_TRUE(quota.has_value());
    EXPECT_EQ(quota->quota, "queued");
    EXPECT_EQ(quota->limit, 2);
    EXPECT_EQ(quota->used, 2);
    EXPECT_TRUE(quota->retry_after.has_value());
  }
  ASSERT_TRUE(Add(4, "another's").ok());
  share_->queued_limit = 1;  // keeps those that wait
  EXPECT_TRUE(worker_->Remove(2, &jobs[1]));
  EXPECT_FALSE(AddOfTenant(2, &jobs[1]).ok());
  EXPECT_TRUE(worker_->Remove(1, &jobs[0]));
  EXPECT_TRUE(AddOfTenant(2, &jobs[1]).ok());
  RunAll();
  EXPECT_EQ(share_->queued, 0);
  EXPECT_EQ(share_->running, 0);
}

/// Runs small jobs beside large ones, as many as there are threads.
TEST_F(DeviceWorkerSharesTest, ATenantRunsNoMoreAtATimeThanItMay) {
  share_->running_limit = 1;
  std::atomic<int> running = 0, most = 0;
  const auto run = [&] {
    most = std::max<int>(most, ++running);
    absl::SleepFor(absl::Milliseconds(1));
    --running;
  };
  std::vector<std::unique_ptr<FunctionJob>> jobs;
  for (int i = 0; i < 12; ++i) {
    jobs.push_back(std::make_unique<FunctionJob>(run));
    ASSERT_TRUE(AddOfTenant(1 + i % 4, jobs.back().get()).ok());
  }
  RunAll();  // all of them, though only one at a time
  EXPECT_EQ(most, 1);
  EXPECT_EQ(share_->running, 0);
}

/// Those of `entries` that begin with `prefix`.
std::vector<std::string> Of(const std::vector<std::string>& entries,
                            absl::string_view prefix) {
  std::vector<std::string> of;
  std::copy_if(
      entries.begin(), entries.end(), std::back_inserter(of),
      [&](const std::string& x) { return absl::StartsWith(x, prefix); });
  return of;
}

TEST_F(DeviceWorkerTest, ClientsTakeTurns) {
  for (const char* name : {"a1", "a2", "a3"}) ASSERT_TRUE(Add(1, name).ok());
  for (const char* name : {"b1", "b2"}) ASSERT_TRUE(Add(2, name).ok());
  const std::vector<std::string> ran = RunAll();
  ASSERT_EQ(ran.size(), 5u);
  // Who is next depends on how long they took, except that the second client
  // had nothing when the first had something.
  EXPECT_EQ(ran[0], "a1");
  EXPECT_EQ(ran[1], "b1");
  EXPECT_THAT(Of(ran, "a"), ElementsAre("a1", "a2", "a3"));
  EXPECT_THAT(Of(ran, "b"), ElementsAre("b1", "b2"));
}

/// Runs in three parts.
class LongJob final : public DeviceWorker::Job {
 public:
  explicit LongJob(Trace& trace) : trace_(trace) {
    set_predicted(absl::Seconds(1));
  }
  Outcome Launch(core::Stream&) override {
    trace_.Add(absl::StrCat("part ", ++parts_));
    return {.is_part = parts_ < 3};
  }
  void Complete(const absl::Status&, const DeviceWorker::Times&) override {
    trace_.Add("complete");
  }

 private:
  Trace& trace_;
  int parts_ = 0;
};

TEST_F(DeviceWorkerTest, OthersHaveTurnsBetweenThePartsOfAJob) {
  LongJob job(trace_);
  ASSERT_TRUE(worker_->Add({.number = 1}, &job).ok());
  ASSERT_TRUE(Add(1, "the next").ok());
  for (const char* name : {"b1", "b2", "b3"}) ASSERT_TRUE(Add(2, name).ok());
  const std::vector<std::string> ran = RunAll();
  ASSERT_EQ(ran.size(), 8u);
  EXPECT_EQ(ran[0], "part 1");
  EXPECT_EQ(ran[1], "b1");
  EXPECT_THAT(Of(ran, "part"), ElementsAre("part 1", "part 2", "part 3"));
  EXPECT_THAT(Of(ran, "b"), ElementsAre("b1", "b2", "b3"));
  const auto part = std::find(ran.begin(), ran.end(), "part 3");
  EXPECT_EQ(part[1], "complete");
  EXPECT_EQ(std::count(part, ran.end(), "the next"), 1);
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
  EXPECT_THAT(RunAll(), ElementsAre("keeps"));
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
  EXPECT_EQ(RunAll().size(), 12u);
}

TEST_F(DeviceWorkerTest, FullQueueSaysHowManyWait) {
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Add(1, "x").ok());
  const absl::Status full = Add(1, "one too many");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core::ReasonOf(full), "QUEUE_FULL");
  EXPECT_THAT(std::string(full.message()), ::testing::HasSubstr("6"));
  EXPECT_EQ(RunAll().size(), 6u);
}

TEST_F(DeviceWorkerTest, WhatWaitsSaysWhenAnotherWouldEnd) {
  const absl::Duration job = absl::Seconds(1);  // that each is predicted
  EXPECT_EQ(worker_->PredictEnd({.number = 1}, job), job);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Add(1, "x").ok());
  // Behind three of its own; the one that is held is client 0's.
  EXPECT_EQ(worker_->PredictEnd({.number = 1}, job), 4 * job);
  // Three clients share, and one of theirs is as much as one of it.
  EXPECT_EQ(worker_->PredictEnd({.number = 2}, job), 3 * job);
  // Others have less than it asks for.
  EXPECT_EQ(worker_->PredictEnd({.number = 2}, 10 * job), 13 * job);
  RunAll();
}

TEST_F(DeviceWorkerTest, WhatIsPredictedBadlyForOneSaysNothingOfOthers) {
  release_.Notify();
  constexpr int kJobs = 48;  // each predicted a second, and done at once
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(Add(1, "x").ok());
    trace_.Await(i + 1);
  }
  const absl::Duration job = absl::Seconds(1);
  // What the last one took is learned after it ran.
  EXPECT_TRUE(test::Soon(
      [&] { return worker_->PredictEnd({.number = 1}, job) <= job / 2; }));
  EXPECT_EQ(worker_->PredictEnd({.number = 2}, job), job);
}

/// Takes long, and hears what it is asked.
class PatientJob final : public DeviceWorker::Job {
 public:
  PatientJob(Trace& trace, std::string name)
      : trace_(trace), name_(std::move(name)) {
    set_predicted(absl::Seconds(100));
  }
  Outcome Launch(core::Stream& stream) override {
    trace_.Add(absl::StrCat(name_, " begins"));
    const core::CurrentWork work(stream.interruption());
    while (!is_over_ && !core::CurrentWork::ShouldStop()) {
      if (others_ != nullptr && others_->HasBeenNotified()) break;
    }
    trace_.Add(absl::StrCat(name_, is_stopped() ? " is stopped" : " ends"));
    return {.status = is_stopped() ? absl::CancelledError("stopped")
                                   : absl::OkStatus()};
  }
  void Complete(const absl::Status& status,
                const DeviceWorker::Times&) override {
    status_ = status;
    completed.Notify();
  }
  void End() { is_over_ = true; }
  void EndWhen(const absl::Notification& others) { others_ = &others; }
  absl::StatusCode code() const { return status_.code(); }

  absl::Notification completed;

 private:
  Trace& trace_;
  const std::string name_;
  std::atomic<bool> is_over_ = false;
  const absl::Notification* others_ = nullptr;
  absl::Status status_;
};

TEST_F(DeviceWorkerTest, LongJobsGiveWayToEachOther) {
  release_.Notify();
  PatientJob first(trace_, "first"), second(trace_, "second");
  // The first can only end when the second, which comes later, has.
  first.EndWhen(second.completed);
  ASSERT_TRUE(worker_->Add({.number = 1}, &first).ok());
  trace_.Await(1);
  second.End();
  ASSERT_TRUE(worker_->Add({.number = 2}, &second).ok());
  first.completed.WaitForNotification();
  EXPECT_THAT(trace_.entries(), ElementsAre("first begins", "second begins",
                                            "second ends", "first ends"));
}

/// Gives way so often as it is asked, until that was in vain three times.
class ImpatientJob final : public DeviceWorker::Job {
 public:
  explicit ImpatientJob(Trace& trace) : trace_(trace) {
    set_predicted(absl::Seconds(100));
  }
  Outcome Launch(core::Stream& stream) override {
    trace_.Add("begins");
    core::Interruption& interruption = *stream.interruption();
    for (int asked = 0; asked < 3;) {
      if (!interruption.is_asked()) continue;
      interruption.GiveWay();
      ++asked;
    }
    const auto reached = std::make_shared<core::Signal>();
    reached->Notify();
    interruption.Await(reached);
    interruption.Outlast(reached);
    trace_.Add("ends");
    return {};
  }
  void Complete(const absl::Status&, const DeviceWorker::Times&) override {}

 private:
  Trace& trace_;
};

TEST_F(DeviceWorkerTest, AJobKeepsItsTurnWhereNoThreadIsLeft) {
  release_.Notify();
  EXPECT_TRUE(test::Soon([&] { return worker_->loads().empty(); }));
  ImpatientJob job(trace_);
  {
    const test::NoThreads no_threads;
    ASSERT_TRUE(worker_->Add({.number = 1}, &job).ok());
    trace_.Await(1);
    ASSERT_TRUE(Add(2, "next").ok());
    EXPECT_THAT(trace_.Await(3), ElementsAre("begins", "ends", "next"));
  }
  PatientJob first(trace_, "first"), second(trace_, "second");
  first.EndWhen(second.completed);  // for which it gives way again
  ASSERT_TRUE(worker_->Add({.number = 1}, &first).ok());
  trace_.Await(4);
  second.End();
  ASSERT_TRUE(worker_->Add({.number = 2}, &second).ok());
  first.completed.WaitForNotification();
  worker_.reset();
}

TEST_F(DeviceWorkerTest, SmallJobsRunBesideALongOne) {
  // hold_ does not give way, and a turn is short.
  class SmallJob final : public DeviceWorker::Job {
   public:
    SmallJob() { set_predicted(absl::Microseconds(20)); }
    Outcome Launch(core::Stream&) override { return {}; }
    void Complete(const absl::Status&, const DeviceWorker::Times&) override {
      completed.Notify();
    }
    absl::Notification completed;
  } small;
  ASSERT_TRUE(worker_->Add({.number = 1}, &small).ok());
  small.completed.WaitForNotification();
  EXPECT_FALSE(release_.HasBeenNotified());
  release_.Notify();
}

class BriefJob final : public DeviceWorker::Job {
 public:
  BriefJob() {
    set_predicted(absl::Microseconds(5));
    set_is_brief(true);
  }
  Outcome Launch(core::Stream&) override {
    thread = std::this_thread::get_id();
    return {};
  }
  void Complete(const absl::Status& status,
                const DeviceWorker::Times&) override {
    EXPECT_TRUE(status.ok());
    completed.Notify();
  }
  // Abseil's library is not built for TSan, which sees no order in its waits.
  std::atomic<std::thread::id> thread;
  absl::Notification completed;
};

TEST_F(DeviceWorkerTest, BriefJobsAreDoneByTheThreadThatAddsThem) {
  BriefJob beside, alone;
  ASSERT_TRUE(worker_->Add({.number = 1}, &beside).ok());
  EXPECT_TRUE(beside.completed.HasBeenNotified());
  EXPECT_EQ(beside.thread.load(), std::this_thread::get_id());
  release_.Notify();
  ASSERT_TRUE(test::Soon([&] { return worker_->loads().empty(); }));
  ASSERT_TRUE(worker_->Add({.number = 1}, &alone).ok());
  EXPECT_TRUE(alone.completed.HasBeenNotified());
  EXPECT_EQ(alone.thread.load(), std::this_thread::get_id());
}

TEST_F(DeviceWorkerTest, BriefJobsWaitBehindTheirClientsOthers) {
  BriefJob brief;
  ASSERT_TRUE(Add(1, "long").ok());
  ASSERT_TRUE(worker_->Add({.number = 1}, &brief).ok());
  EXPECT_FALSE(brief.completed.HasBeenNotified());
  release_.Notify();
  brief.completed.WaitForNotification();
  EXPECT_NE(brief.thread.load(), std::this_thread::get_id());
  EXPECT_THAT(trace_.entries(), ElementsAre("long"));
}

TEST_F(DeviceWorkerTest, WhatWaitsForABriefJobIsLaunchedAfterIt) {
  release_.Notify();
  for (int i = 0; i < 200; ++i) {
    BriefJob brief;
    std::thread adding(
        [&] { EXPECT_TRUE(worker_->Add({.number = 1}, &brief).ok()); });
    absl::Notification ran;
    FunctionJob other([&] { ran.Notify(); });
    ASSERT_TRUE(worker_->Add({.number = 2}, &other).ok());
    ran.WaitForNotification();
    brief.completed.WaitForNotification();
    adding.join();
    ASSERT_TRUE(test::Soon([&] { return worker_->loads().empty(); }));
  }
}

TEST_F(DeviceWorkerTest, StoppedJobsEnd) {
  release_.Notify();
  PatientJob running(trace_, "running"), parked(trace_, "parked"),
      queued(trace_, "queued");
  ASSERT_TRUE(worker_->Add({.number = 1}, &parked).ok());
  trace_.Await(1);
  ASSERT_TRUE(worker_->Add({.number = 2}, &running).ok());
  trace_.Await(2);  // the first one gave way
  ASSERT_TRUE(worker_->Add({.number = 2}, &queued).ok());
  worker_->Stop(parked);
  parked.completed.WaitForNotification();
  EXPECT_EQ(parked.code(), absl::StatusCode::kCancelled);
  worker_->StopAll();
  running.completed.WaitForNotification();
  queued.completed.WaitForNotification();
  EXPECT_EQ(running.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(queued.code(), absl::StatusCode::kCancelled);
}

TEST_F(DeviceWorkerTest, StoppingAClientLeavesOthersAlone) {
  release_.Notify();
  PatientJob mine(trace_, "mine"), other(trace_, "other");
  ASSERT_TRUE(worker_->Add({.number = 1}, &mine).ok());
  ASSERT_TRUE(worker_->Add({.number = 2}, &other).ok());
  trace_.Await(2);
  worker_->StopAll(1);
  mine.completed.WaitForNotification();
  other.End();
  other.completed.WaitForNotification();
  EXPECT_EQ(mine.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(other.code(), absl::StatusCode::kOk);
}

TEST_F(DeviceWorkerTest, BusyTimeCountsWhatIsUnderWay) {
  const absl::Duration before = worker_->statistics().busy;
  EXPECT_TRUE(test::Soon([&] { return worker_->statistics().busy > before; }));
  RunAll();
}

}  // namespace
}  // namespace tensord::server
