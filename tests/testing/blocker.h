// Keeps a device's queue from moving.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/engine/device_worker.h"

namespace tensord::testing {

/// Holds all threads that launch the device's work until Release().
class Blocker {
 public:
  explicit Blocker(server::DeviceWorker& worker) : worker_(worker) {
    Hold(turn_, 0);
    if (worker.options().is_synchronous) Hold(beside_, 1);
  }
  void Release() {
    turn_.release.Notify();
    turn_.done.WaitForNotification();
    beside_.release.Notify();
    if (worker_.options().is_synchronous) beside_.done.WaitForNotification();
  }

 private:
  struct Job final : server::DeviceWorker::Job {
    explicit Job(absl::Duration predicted) { set_predicted(predicted); }
    Outcome Launch(core::Stream&) override {
      started.Notify();
      release.WaitForNotification();
      return {};
    }
    void Complete(const absl::Status&,
                  const server::DeviceWorker::Times&) override {
      done.Notify();
    }
    absl::Notification started, release, done;
  };

  void Hold(Job& job, uint64_t number) {
    // Only a client of many jobs is refused.
    worker_.Add({.number = ~number}, &job).IgnoreError();
    job.started.WaitForNotification();
  }

  server::DeviceWorker& worker_;
  Job turn_{absl::Hours(1)};
  Job beside_{absl::ZeroDuration()};  // as what small jobs run on
};

}  // namespace tensord::testing
