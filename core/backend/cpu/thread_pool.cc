#include "core/backend/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "core/device/interruption.h"

namespace tensord::core {

struct ThreadPool::Loop {
  const int64_t count;
  const absl::FunctionRef<void(int64_t, int64_t)> body;
  Interruption* const interruption;
  std::atomic<int64_t> next = 0;
  // Under mutex_:
  int helpers = 0;  // threads inside, the caller aside
  absl::InlinedVector<int64_t, 16> free_workers;  // numbers that nobody has

  bool has_parts() const {
    return next.load(std::memory_order_relaxed) < count;
  }
  bool is_asked() const {
    return interruption != nullptr && interruption->is_asked();
  }
  /// Until there are no more parts, or something is asked.
  void RunParts(int64_t worker) {
    while (!is_asked()) {
      const int64_t part = next.fetch_add(1);
      if (part >= count) return;
      body(part, worker);
    }
  }
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

void ThreadPool::ParallelFor(int64_t count, int64_t most_workers,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t helpers =
      std::min({most_workers - 1, count - 1, std::ssize(threads_)});
  if (helpers <= 0) {
    for (int64_t part = 0; part < count && !CurrentWork::ShouldStop(); ++part) {
      body(part, 0);
    }
    return;
  }
  Loop loop{.count = count,
            .body = body,
            .interruption = CurrentWork::interruption(),
            .free_workers =
                absl::InlinedVector<int64_t, 16>(static_cast<size_t>(helpers))};
  std::iota(loop.free_workers.begin(), loop.free_workers.end(), 1);
  while (loop.has_parts() && !CurrentWork::ShouldStop()) {
    {
      absl::MutexLock lock(&mutex_);
      Offer(loop);
    }
    loop.RunParts(0);
  }
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](Loop* l) { return l->helpers == 0; }, &loop));
  std::erase(loops_, &loop);
}

void ThreadPool::Offer(Loop& loop) {
  std::erase(loops_, &loop);
  if (loop.has_parts() && !loop.is_asked() && !loop.free_workers.empty()) {
    loops_.push_back(&loop);
  }
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
    const int64_t worker = loop.free_workers.back();
    loop.free_workers.pop_back();
    // Threads that come later go to the next loop first.
    Offer(loop);
    mutex_.Unlock();
    {
      const CurrentWork work(loop.interruption, CurrentWork::Thread::kHelps);
      loop.RunParts(worker);
    }
    mutex_.Lock();
    --loop.helpers;
    loop.free_workers.push_back(worker);
    Offer(loop);
  }
}

}  // namespace tensord::core
