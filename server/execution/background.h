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
#include "core/base/status.h"

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
  Background(int thread_count, int64_t queue_limit)
      : queue_limit_(queue_limit) {
    for (int i = 0; i < thread_count; ++i) {
      threads_.emplace_back([this] { Run(); });
    }
  }
  /// Does what is queued first.
  ~Background() {
    {
      absl::MutexLock lock(&mutex_);
      closing_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }
  Background(const Background&) = delete;

  /// Errors  RESOURCE_EXHAUSTED, reason QUEUE_FULL.
  absl::Status Add(uint64_t client, Job* job) {
    absl::MutexLock lock(&mutex_);
    Queue& queue = queues_[client];
    if (std::ssize(queue.jobs) >= queue_limit_) {
      return core::ResourceExhausted(
          "QUEUE_FULL", queue_limit_,
          " programs of the session wait to be prepared; wait for some");
    }
    queue.jobs.push_back(job);
    if (queue.jobs.size() == 1 && !queue.is_served) turns_.push_back(client);
    return absl::OkStatus();
  }

  /// True when `job` was still queued; it will then never be done.
  bool Remove(uint64_t client, Job* job) {
    absl::MutexLock lock(&mutex_);
    const auto queue = queues_.find(client);
    if (queue == queues_.end()) return false;
    const bool was_queued = std::erase(queue->second.jobs, job) > 0;
    if (was_queued && queue->second.jobs.empty() && !queue->second.is_served) {
      std::erase(turns_, client);
      queues_.erase(queue);
    }
    return was_queued;
  }

 private:
  struct Queue {
    std::deque<Job*> jobs;
    bool is_served = false;  // by a thread
  };

  void Run() {
    absl::MutexLock lock(&mutex_);
    while (true) {
      mutex_.Await(absl::Condition(this, &Background::HasTurn));
      if (turns_.empty()) return;
      const uint64_t client = turns_.front();
      turns_.pop_front();
      Queue& queue = queues_[client];
      queue.is_served = true;
      Job* const job = queue.jobs.front();
      queue.jobs.pop_front();
      mutex_.Unlock();
      job->Do();
      mutex_.Lock();
      queue.is_served = false;
      if (queue.jobs.empty()) {
        queues_.erase(client);
      } else {
        turns_.push_back(client);
      }
    }
  }
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
