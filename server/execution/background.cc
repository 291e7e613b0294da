#include "server/execution/background.h"

#include <iterator>

#include "core/base/status.h"

namespace tensord::server {

Background::Background(int thread_count, int64_t queue_limit)
    : queue_limit_(queue_limit) {
  for (int i = 0; i < thread_count; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

Background::~Background() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status Background::Add(uint64_t client, Job* job) {
  absl::MutexLock lock(&mutex_);
  Queue& queue = queues_[client];
  if (std::ssize(queue.jobs) >= queue_limit_) {
    return core::ResourceExhausted("QUEUE_FULL", queue_limit_,
                                   " jobs of the session wait; wait for some");
  }
  queue.jobs.push_back(job);
  if (queue.jobs.size() == 1 && !queue.is_served) turns_.push_back(client);
  return absl::OkStatus();
}

bool Background::Remove(uint64_t client, Job* job) {
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

void Background::Run() {
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

}  // namespace tensord::server
