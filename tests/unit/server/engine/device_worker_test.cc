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
#include "server/engine/quota.h"
#include "tests/unit/server/engine/work_stream.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;

/// What happened, in order.
class Trace {
 public:
  void Add(std::string what) {
    absl::MutexLock lock(&mutex_);
    entries_.push_back(std::move(what));
  }
  std::vector<std::string> entries() const {
    absl::MutexLock lock(&mutex_);
    return entries_;
  }
  /// Waits until `count` things have happened.
  std::vector<std::string> Await(int count) const {
    absl::MutexLock lock(&mutex_);
    const auto happened = [&] { return std::ssize(entries_) >= count; };
    mutex_.Await(absl::Condition(&happened));
    return entries_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> entries_ ABSL_GUARDED_BY(mutex_);
};

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
  while (worker_->statistics().busy == before) std::this_thread::yield();
  EXPECT_GT(worker_->statistics().busy, before);
  RunAll();
}

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

  Trace trace_;
  std::vector<std::unique_ptr<WorkJob>> jobs_;
  bool has_more_streams_ = true;
  std::unique_ptr<DeviceWorker> worker_ = std::make_unique<DeviceWorker>(
      std::make_unique<WorkStream>(),
      [this]() -> absl::StatusOr<std::unique_ptr<core::Stream>> {
        if (!has_more_streams_) return absl::InternalError("no stream");
        return std::make_unique<WorkStream>();
      },
      DeviceWorker::Options{.queue_limit = 100, .is_synchronous = false});
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
  while (!worker_->Remove(2, second)) std::this_thread::yield();
  End(*first);
  worker_.reset();
  EXPECT_THAT(trace_.entries(),
              ElementsAre("launch 1", "no memory for 2", "end 1"));
}

}  // namespace
}  // namespace tensord::server
