// The queue of a device, and the thread that works it off.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/device/device.h"

namespace tensord::server {

/// Runs jobs of many clients on one device, one at a time.
///
/// The jobs of one client run in the order in which they were added. Clients
/// take turns, a job each, so that a long queue of one does not hold up others.
///
/// Threads  safe for concurrent use.
class DeviceWorker {
 public:
  /// Owned by whoever adds it; run once, unless removed first.
  class Job {
   public:
    /// On the worker's thread; may end the Job's life.
    virtual void Run(core::Stream& stream) = 0;

   protected:
    ~Job() = default;
  };

  struct Statistics {
    int64_t queued_count = 0;
    int64_t executed_count = 0;
    absl::Duration busy;  // time spent in Run()
  };

  /// Requires queue_limit >= 1.
  DeviceWorker(std::unique_ptr<core::Stream> stream, int64_t queue_limit);
  /// Runs what is queued. Nothing may be added any more.
  ~DeviceWorker();

  /// Queues `job` behind the others of `client`.
  /// Errors  RESOURCE_EXHAUSTED, reason QUEUE_FULL: as many as may of this
  ///         client wait; what others have queued does not count.
  absl::Status Add(uint64_t client, Job* job);

  /// True when `job` was still queued; it will then never run.
  bool Remove(uint64_t client, Job* job);

  Statistics statistics() const;

 private:
  void Work();

  const std::unique_ptr<core::Stream> stream_;
  const int64_t queue_limit_;
  mutable absl::Mutex mutex_;
  // Clients with jobs, the next one to be served in front.
  std::deque<uint64_t> turns_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, std::deque<Job*>> jobs_ ABSL_GUARDED_BY(mutex_);
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tensord::server
