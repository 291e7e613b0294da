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
#include "absl/time/time.h"
#include "server/engine/fair_turns.h"

namespace tensord::server {

/// Of the processor, that this thread has used.
absl::Duration ThreadTime();

/// A few threads that work off queues, one of each client, which has one thread
/// at a time. Owners share them by the processor's time, and none takes the
/// last free thread that has another: what one asks for does not hold up
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
  absl::Status Add(const ClientId& client, Job* job);

  /// True when `job` was still queued; it will then never be done.
  bool Remove(uint64_t client, Job* job);

 private:
  struct Queue {
    std::deque<Job*> jobs;
    bool is_served = false;  // by a thread
    FairTurns::Member turns;
  };
  using Queues = std::map<uint64_t, Queue>;  // by client

  void Run();
  /// Whose job is to be done now; end() if nobody's is.
  Queues::iterator Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseIfIdle(Queues::iterator queue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t queue_limit_;
  absl::Mutex mutex_;
  absl::CondVar has_job_;
  FairTurns turns_ ABSL_GUARDED_BY(mutex_){{}};
  Queues queues_ ABSL_GUARDED_BY(mutex_);
  int free_threads_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tensord::server
