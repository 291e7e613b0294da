// Work that takes long and is no device's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace tensord::server {

/// A few threads that work off queues, one of each client. Clients take turns,
/// and none has two threads at a time: what one asks for does not hold up
/// others.
///
/// Threads  safe for concurrent use.
class Background {
 public:
  /// Owned by whoever adds it; done once, unless removed first.
  class Job {
   public:
    /// May end the Job's life.
    virtual void Do() = 0;

   protected:
    ~Job() = default;
  };

  /// Requires  thread_count >= 1; queue_limit >= 1, of one client.
  Background(int thread_count, int64_t queue_limit);
  /// Does what is queued first.
  ~Background();
  Background(const Background&) = delete;

  /// Errors  RESOURCE_EXHAUSTED, reason QUEUE_FULL.
  absl::Status Add(uint64_t client, Job* job);

  /// True when `job` was still queued; it will then never be done.
  bool Remove(uint64_t client, Job* job);

 private:
  struct Queue {
    std::deque<Job*> jobs;
    bool is_served = false;  // by a thread
  };

  void Run();
  bool HasTurn() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closing_ || !turns_.empty();
  }

  const int64_t queue_limit_;
  absl::Mutex mutex_;
  std::map<uint64_t, Queue> queues_ ABSL_GUARDED_BY(mutex_);
  // Clients with jobs that no thread serves, the next one in front.
  std::deque<uint64_t> turns_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tensord::server
