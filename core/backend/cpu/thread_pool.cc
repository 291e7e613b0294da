#include "core/backend/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>

namespace tensord::core {

struct ThreadPool::Loop {
  const int64_t count;
  const absl::FunctionRef<void(int64_t)> body;
  std::atomic<int64_t> next = 0;
  int helpers = 0;  // Threads inside, the caller aside; under mutex_.
};

ThreadPool::ThreadPool(int thread_count) {
  for (int i = 1; i < thread_count; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::RunParts(Loop& loop) {
  for (int64_t part; (part = loop.next.fetch_add(1)) < loop.count;) {
    loop.body(part);
  }
}

void ThreadPool::ParallelFor(int64_t count,
                             absl::FunctionRef<void(int64_t)> body) {
  if (count <= 1 || threads_.empty()) {
    for (int64_t part = 0; part < count; ++part) body(part);
    return;
  }
  Loop loop{.count = count, .body = body};
  {
    absl::MutexLock lock(&mutex_);
    loops_.push_back(&loop);
  }
  RunParts(loop);
  absl::MutexLock lock(&mutex_);
  std::erase(loops_, &loop);
  mutex_.Await(absl::Condition(
      +[](Loop* l) { return l->helpers == 0; }, &loop));
}

void ThreadPool::Work() {
  const auto wakes = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closing_ || !loops_.empty();
  };
  absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(&wakes));
    if (loops_.empty()) return;
    Loop& loop = *loops_.front();
    ++loop.helpers;
    // Threads that come later go to the next loop first.
    std::rotate(loops_.begin(), loops_.begin() + 1, loops_.end());
    mutex_.Unlock();
    RunParts(loop);
    mutex_.Lock();
    --loop.helpers;
    std::erase(loops_, &loop);
  }
}

}  // namespace tensord::core
