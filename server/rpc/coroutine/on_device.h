// Waits for work on a device's thread.
#pragma once

#include <coroutine>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "core/device/device.h"
#include "server/engine/device_worker.h"
#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

/// A job of a call on a device. Awaiting it yields what its launch failed with,
/// or else what its work ended with; the handler resumes on its Loop.
///
/// Errors  CANCELLED: the call ended, and the job was not launched or has been
///         stopped. RESOURCE_EXHAUSTED: the queue is full.
class [[nodiscard]] OnDevice final : server::DeviceWorker::Listener,
                                     Call::Wait {
 public:
  using Job = server::DeviceWorker::Job;

  using Client = server::ClientId;

  /// Lifetime  `client` outlives it.
  OnDevice(Call& call, server::DeviceWorker& worker, const Client& client)
      : Wait(call), worker_(worker), client_(client) {}
  OnDevice(Call& call, server::DeviceWorker& worker, const Client& client,
           Job& job)
      : OnDevice(call, worker, client) {
    Queue(job);
  }

  /// Queues `job`, which outlives this, behind what the client has queued,
  /// unless the call has ended.
  /// Requires  called once, and awaited before the Loop does anything else.
  void Queue(Job& job) {
    if (call_.cancelled()) return;
    job_ = &job;
    job.set_listener(this);
    queueing_ = std::this_thread::get_id();
    const absl::Status added = worker_.Add(client_, job_);
    if (added.ok()) {
      is_queued_ = true;
    } else {
      result_ = added;
    }
  }

  bool await_ready() const noexcept { return !is_queued_ || has_ended_; }
  // The job may be done by now. Its end is posted to this Loop, which cannot
  // deliver it before this returns.
  void await_suspend(std::coroutine_handle<> waiter) { Suspend(waiter); }
  absl::Status await_resume() {
    if (result_) return *result_;
    return absl::CancelledError("the call ended before its work began");
  }

 private:
  void Ended(const absl::Status& status) override {
    result_ = status;
    if (std::this_thread::get_id() == queueing_) {
      has_ended_ = true;
    } else {
      call_.loop().Post(this);
    }
  }
  void Cancel() override {
    if (worker_.Remove(client_.number, job_)) {
      Fire(false);
    } else {
      worker_.Stop(*job_);
    }
  }

  server::DeviceWorker& worker_;
  const Client& client_;
  Job* job_ = nullptr;
  // The Loop's: the worker ends a job on it only while it is being added.
  std::thread::id queueing_;
  bool is_queued_ = false;
  bool has_ended_ = false;
  std::optional<absl::Status> result_;
};

using JobOutcome = server::DeviceWorker::Job::Outcome;

/// A job that is `launch(stream)` and nothing else.
template <typename F>
class FunctionJob final : public server::DeviceWorker::Job {
 public:
  explicit FunctionJob(F launch) : launch_(std::move(launch)) {}

  Outcome Launch(core::Stream& stream) override { return launch_(stream); }
  void Complete(const absl::Status&,
                const server::DeviceWorker::Times&) override {}

 private:
  F launch_;
};

}  // namespace tensord::rpc
