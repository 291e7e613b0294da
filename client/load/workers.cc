#include "client/load/workers.h"

#include <utility>

namespace tensord::load {

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
    given_.SignalAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

bool Workers::TryRun(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() == idle_) {
    if (threads_.size() == most_) return false;
    ++idle_;  // until it takes this
    threads_.emplace_back([this] { Serve(); });
  }
  waiting_.push_back(std::move(work));
  given_.Signal();
  return true;
}

bool Workers::AwaitIdle(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_idle();
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&idle), patience);
}

void Workers::Serve() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    while (waiting_.empty() && !is_stopping_) given_.Wait(&mutex_);
    if (waiting_.empty()) return;
    {
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      --idle_;
      mutex_.Unlock();
      work();
      mutex_.Lock();
    }
    ++idle_;
  }
}

}  // namespace tensord::load
