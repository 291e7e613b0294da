#include "server/engine/device_worker.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status.h"

namespace tensord::server {

DeviceWorker::DeviceWorker(std::unique_ptr<core::Stream> stream,
                           int64_t queue_limit)
    : stream_(std::move(stream)), queue_limit_(queue_limit) {
  thread_ = std::thread([this] { Work(); });
}

DeviceWorker::~DeviceWorker() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  thread_.join();
}

absl::Status DeviceWorker::Add(uint64_t client, Job* job) {
  absl::MutexLock lock(&mutex_);
  std::deque<Job*>& jobs = jobs_[client];
  if (std::ssize(jobs) >= queue_limit_) {
    return core::ResourceExhausted(
        "QUEUE_FULL", "the session has ", jobs.size(),
        " operations in the device's queue, its limit is ", queue_limit_,
        "; retry later");
  }
  if (jobs.empty()) turns_.push_back(client);
  jobs.push_back(job);
  ++statistics_.queued_count;
  return absl::OkStatus();
}

bool DeviceWorker::Remove(uint64_t client, Job* job) {
  absl::MutexLock lock(&mutex_);
  const auto entry = jobs_.find(client);
  if (entry == jobs_.end()) return false;
  std::deque<Job*>& jobs = entry->second;
  const auto at = std::find(jobs.begin(), jobs.end(), job);
  if (at == jobs.end()) return false;
  jobs.erase(at);
  --statistics_.queued_count;
  if (jobs.empty()) {
    jobs_.erase(entry);
    std::erase(turns_, client);
  }
  return true;
}

DeviceWorker::Statistics DeviceWorker::statistics() const {
  absl::MutexLock lock(&mutex_);
  return statistics_;
}

void DeviceWorker::Work() {
  const auto wakes = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closing_ || !turns_.empty();
  };
  absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(&wakes));
    if (turns_.empty()) return;
    const uint64_t client = turns_.front();
    turns_.pop_front();
    const auto entry = jobs_.find(client);
    Job* const job = entry->second.front();
    entry->second.pop_front();
    if (entry->second.empty()) {
      jobs_.erase(entry);
    } else {
      turns_.push_back(client);
    }
    --statistics_.queued_count;
    ++statistics_.executed_count;
    mutex_.Unlock();
    const absl::Time start = absl::Now();
    job->Run(*stream_);
    const absl::Duration busy = absl::Now() - start;
    mutex_.Lock();
    statistics_.busy += busy;
  }
}

}  // namespace tensord::server
