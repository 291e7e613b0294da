#include "server/execution/background.h"

#include <time.h>

#include <algorithm>
#include <iterator>

#include "absl/time/time.h"
#include "core/base/status.h"

namespace tensord::server {

absl::Duration ThreadTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

Background::Background(int thread_count, int64_t queue_limit)
    : queue_limit_(queue_limit), free_threads_(thread_count) {
  for (int i = 0; i < thread_count; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

Background::~Background() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    has_job_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status Background::Add(const ClientId& client, Job* job) {
  absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = queues_.try_emplace(client.number);
  Queue& queue = entry->second;
  if (is_new) turns_.Join(queue.turns, client);
  if (std::ssize(queue.jobs) >= queue_limit_) {
    return core::ResourceExhausted("QUEUE_FULL", queue_limit_,
                                   " jobs of the session wait; wait for some");
  }
  if (queue.jobs.empty()) turns_.Wait(queue.turns);
  queue.jobs.push_back(job);
  has_job_.Signal();
  return absl::OkStatus();
}

bool Background::Remove(uint64_t client, Job* job) {
  absl::MutexLock lock(&mutex_);
  const auto queue = queues_.find(client);
  if (queue == queues_.end()) return false;
  const bool was_queued = std::erase(queue->second.jobs, job) > 0;
  EraseIfIdle(queue);
  return was_queued;
}

void Background::EraseIfIdle(Queues::iterator queue) {
  if (!queue->second.jobs.empty() || queue->second.is_served) return;
  turns_.Leave(queue->second.turns);
  queues_.erase(queue);
}

Background::Queues::iterator Background::Next() {
  auto next = queues_.end();
  for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
    const Queue& waiting = queue->second;
    if (waiting.jobs.empty() || waiting.is_served) continue;
    const bool has_thread =
        std::any_of(queues_.begin(), queues_.end(), [&](const auto& other) {
          return other.second.is_served &&
                 turns_.HaveOneOwner(other.second.turns, waiting.turns);
        });
    if (has_thread && free_threads_ == 1) continue;
    if (next == queues_.end() ||
        turns_.IsBefore(waiting.turns, next->second.turns)) {
      next = queue;
    }
  }
  return next;
}

void Background::Run() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto next = Next();
    if (next == queues_.end()) {
      // Others do what is left, as soon as they may.
      if (closing_) return;
      has_job_.Wait(&mutex_);
      continue;
    }
    Queue& queue = next->second;
    turns_.Choose(queue.turns);
    queue.is_served = true;
    --free_threads_;
    Job* const job = queue.jobs.front();
    queue.jobs.pop_front();
    mutex_.Unlock();
    const absl::Duration begun = ThreadTime();
    job->Do();
    const absl::Duration used = ThreadTime() - begun;
    mutex_.Lock();
    ++free_threads_;
    queue.is_served = false;
    turns_.Count(queue.turns, std::max(used, absl::Microseconds(10)));
    turns_.Wait(queue.turns);
    EraseIfIdle(next);
    has_job_.Signal();
  }
}

}  // namespace tensord::server
