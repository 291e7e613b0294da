// Whatever happens to jobs, in whatever order, each ends once, as it should.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/device/device.h"
#include "server/engine/device_worker.h"
#include "tests/unit/server/engine/work_stream.h"

namespace tensord::server {
namespace {

/// What a job does besides ending when its work does.
enum class Kind { kPlain, kInParts, kLacksMemoryOnce };
constexpr int kParts = 3;

/// A device, the jobs on it, and what becomes of them. "a" runs and "b" waits
/// behind it; "c" is another client's.
class Driver {
 public:
  enum class Event { kComplete, kCancel, kDeadline, kDisconnect, kDrain };
  static constexpr std::array kEvents = {Event::kComplete, Event::kCancel,
                                         Event::kDeadline, Event::kDisconnect,
                                         Event::kDrain};
  static constexpr std::array kNames = {"complete", "cancel", "deadline",
                                        "disconnect", "drain"};

  Driver(bool is_synchronous, Kind kind)
      : is_synchronous_(is_synchronous),
        jobs_{Job(*this, kind == Kind::kInParts ? kind : Kind::kPlain),
              Job(*this, kind), Job(*this, kind)},
        worker_(std::make_unique<DeviceWorker>(
            std::make_unique<WorkStream>(),
            [] { return std::make_unique<WorkStream>(); },
            DeviceWorker::Options{.is_synchronous = is_synchronous})) {
    EXPECT_TRUE(worker_->Add({.number = 1}, &a()).ok());
    Await([this] { return a().launches_ > 0; });
    EXPECT_TRUE(worker_->Add({.number = 1}, &b()).ok());
    EXPECT_TRUE(worker_->Add({.number = 2}, &c()).ok());
  }

  /// Makes it happen, and does not wait for what comes of it.
  void Do(Event event) {
    switch (event) {
      case Event::kComplete: a().work_->End(); break;
      case Event::kCancel: RemoveOrStop(1, a()); break;
      case Event::kDeadline: RemoveOrStop(1, b()); break;
      case Event::kDisconnect: worker_->StopAll(1); break;
      case Event::kDrain: worker_->StopAll(); break;
    }
  }

  /// Waits until nothing more comes of what has happened.
  void AwaitQuiet() {
    Await([this] {
      bool is_over = true, runs = false, has_to_end = false;
      for (const Job& job : jobs_) {
        is_over &= job.is_over();
        // On the host it has the turn.
        const bool is_under_way = is_synchronous_
                                      ? job.is_launching_
                                      : job.launches_ > 0 && !job.is_over();
        if (!is_under_way) continue;
        (job.HasToEnd() ? has_to_end : runs) = true;
      }
      return is_over || (runs && !has_to_end);
    });
  }

  bool a_has_ended() {
    absl::MutexLock lock(&mutex_);
    return a().is_over();
  }

  /// Ends the worker while jobs are under way, and then those.
  void Finish() {
    std::thread end([this] { worker_.reset(); });
    for (const Job& job : jobs_) job.work_->End();
    end.join();
    for (const Job& job : jobs_) job.Check();
    if (!b().was_removed_) {
      EXPECT_LT(a().completed_at_, b().completed_at_);
    }
  }

  DeviceWorker::Statistics statistics() const { return worker_->statistics(); }
  absl::Status a_status() { return a().status_; }

 private:
  class Job final : public DeviceWorker::Job {
   public:
    Job(Driver& driver, Kind kind) : driver_(driver), kind_(kind) {
      set_predicted(absl::Seconds(1));  // nothing runs beside or behind it
    }
    Job(Job&& from) : Job(from.driver_, from.kind_) {}

    Outcome Launch(core::Stream& stream) override {
      bool is_first = false;
      {
        absl::MutexLock lock(&driver_.mutex_);
        EXPECT_FALSE(is_over());
        if (kind_ == Kind::kLacksMemoryOnce && !std::exchange(lacked_, true)) {
          return {.status = absl::ResourceExhaustedError("no memory"),
                  .may_be_repeated = true};
        }
        is_first = ++launches_ == 1;
        is_launching_ = true;
      }
      const Outcome outcome = Run(stream, is_first);
      absl::MutexLock lock(&driver_.mutex_);
      is_launching_ = false;
      return outcome;
    }
    Outcome Run(core::Stream& stream, bool is_first) {
      if (is_stopped()) return {.status = absl::CancelledError("stopped")};
      if (driver_.is_synchronous_) {
        while (!work_->HasEnded() && !is_stopped()) std::this_thread::yield();
        if (is_stopped()) return {.status = absl::CancelledError("stopped")};
      } else if (is_first) {
        static_cast<WorkStream&>(stream).last = work_;
      }
      absl::MutexLock lock(&driver_.mutex_);
      return {.is_part = kind_ == Kind::kInParts && launches_ < kParts};
    }
    void Complete(const absl::Status& status,
                  const DeviceWorker::Times&) override {
      absl::MutexLock lock(&driver_.mutex_);
      status_ = status;
      ++completions_;
      completed_at_ = ++driver_.completed_;
    }

    bool is_over() const { return completions_ > 0 || was_removed_; }
    /// It runs and is about to end.
    bool HasToEnd() const {
      return work_->HasEnded() || (driver_.is_synchronous_ && is_stopped());
    }
    void Check() const {
      EXPECT_EQ(completions_, was_removed_ ? 0 : 1);
      // Memory lacks for good when nothing is under way that could give some.
      const bool lacked = lacked_ && absl::IsResourceExhausted(status_);
      EXPECT_EQ(launches_ == 0, was_removed_ || lacked);
      EXPECT_TRUE(status_.ok() || lacked ||
                  (is_stopped() && absl::IsCancelled(status_)))
          << status_;
      if (!was_removed_ && status_.ok() && kind_ == Kind::kInParts) {
        EXPECT_EQ(launches_, kParts);
      }
    }

    Driver& driver_;
    const Kind kind_;
    const std::shared_ptr<Work> work_ = std::make_shared<Work>();
    bool lacked_ = false;
    bool is_launching_ = false;
    int launches_ = 0;
    int completions_ = 0;
    int completed_at_ = 0;
    bool was_removed_ = false;
    absl::Status status_;
  };

  Job& a() { return jobs_[0]; }
  Job& b() { return jobs_[1]; }
  Job& c() { return jobs_[2]; }

  /// As a call does whose client no longer waits.
  void RemoveOrStop(uint64_t client, Job& job) {
    absl::MutexLock lock(&mutex_);
    if (job.is_over()) return;
    if (worker_->Remove(client, &job)) {
      job.was_removed_ = true;
    } else {
      worker_->Stop(job);
    }
  }
  template <typename Fact>
  void Await(const Fact& fact) {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    absl::MutexLock lock(&mutex_);
    while (!fact()) {
      ASSERT_LT(absl::Now(), limit) << "not within 20 s";
      mutex_.Unlock();
      std::this_thread::yield();
      mutex_.Lock();
    }
  }

  const bool is_synchronous_;
  absl::Mutex mutex_;  // of what jobs write down; before the worker's
  int completed_ = 0;
  std::array<Job, 3> jobs_;
  std::unique_ptr<DeviceWorker> worker_;
};

using Event = Driver::Event;

/// All orders of some of the events.
std::vector<std::vector<Event>> Orders() {
  std::vector<std::vector<Event>> orders = {{}};
  for (size_t i = 0; i < orders.size(); ++i) {
    for (const Event event : Driver::kEvents) {
      const std::vector<Event> order = orders[i];
      if (std::find(order.begin(), order.end(), event) != order.end()) continue;
      orders.push_back(order);
      orders.back().push_back(event);
    }
  }
  return orders;
}

std::string ToString(const std::vector<Event>& order) {
  return absl::StrJoin(order, ", ", [](std::string* out, Event event) {
    absl::StrAppend(out, Driver::kNames[static_cast<int>(event)]);
  });
}

struct Case {
  bool is_synchronous;
  Kind kind;
};

class DeviceWorkerOrdersTest : public ::testing::TestWithParam<Case> {};

TEST_P(DeviceWorkerOrdersTest, EachEventHasItsEffectBeforeTheNext) {
  for (const std::vector<Event>& order : Orders()) {
    SCOPED_TRACE(ToString(order));
    Driver driver(GetParam().is_synchronous, GetParam().kind);
    for (const Event event : order) {
      driver.Do(event);
      driver.AwaitQuiet();
    }
    if (GetParam().is_synchronous && GetParam().kind == Kind::kPlain &&
        !order.empty() && order.front() != Event::kDeadline) {
      // The first of the others ended it.
      EXPECT_TRUE(driver.a_has_ended());
      EXPECT_EQ(driver.a_status().ok(), order.front() == Event::kComplete);
    }
    driver.Finish();
  }
}

TEST_P(DeviceWorkerOrdersTest, EventsFollowAtOnce) {
  for (const std::vector<Event>& order : Orders()) {
    SCOPED_TRACE(ToString(order));
    Driver driver(GetParam().is_synchronous, GetParam().kind);
    for (const Event event : order) driver.Do(event);
    driver.Finish();
  }
}

TEST_P(DeviceWorkerOrdersTest, EventsComeFromThreadsOfTheirOwn) {
  for (int i = 0; i < 50; ++i) {
    Driver driver(GetParam().is_synchronous, GetParam().kind);
    std::vector<std::thread> threads;
    for (const Event event : Driver::kEvents) {
      threads.emplace_back([&driver, event] { driver.Do(event); });
    }
    for (std::thread& thread : threads) thread.join();
    driver.Finish();
  }
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  constexpr std::array kKinds = {"Plain", "InParts", "LacksMemoryOnce"};
  return absl::StrCat(info.param.is_synchronous ? "Host" : "Device",
                      kKinds[static_cast<int>(info.param.kind)]);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceWorkerOrdersTest,
                         ::testing::Values(Case{true, Kind::kPlain},
                                           Case{true, Kind::kInParts},
                                           Case{true, Kind::kLacksMemoryOnce},
                                           Case{false, Kind::kPlain},
                                           Case{false, Kind::kInParts},
                                           Case{false, Kind::kLacksMemoryOnce}),
                         NameOf);

}  // namespace
}  // namespace tensord::server
