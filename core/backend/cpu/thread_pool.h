// The threads that CPU kernels run on.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace tensord::core {

/// A fixed set of threads that help callers through loops.
///
/// Threads  safe for concurrent use; concurrent loops share the threads.
///          Waiting blocks, never spins. A body may not start a loop itself.
class ThreadPool {
 public:
  /// The caller of a loop works too, so thread_count - 1 threads are started.
  /// Requires thread_count >= 1.
  explicit ThreadPool(int thread_count);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return static_cast<int>(threads_.size()) + 1; }

  /// Calls body(0) ... body(count - 1), each once, in any order, on any of the
  /// threads; returns when all have returned. Parts should be much larger than
  /// a microsecond, shorter than some milliseconds and, for balance, several
  /// times as many as threads.
  ///
  /// Between parts it hears what is asked of the caller's CurrentWork: then the
  /// threads help other loops, and parts that have not begun when it is stopped
  /// never do.
  void ParallelFor(int64_t count, absl::FunctionRef<void(int64_t)> body) {
    ParallelFor(count, thread_count(),
                [&](int64_t part, int64_t /*worker*/) { body(part); });
  }

  /// As above, with body(part, worker): workers are counted from 0 to below
  /// `most_workers`, and each does one part at a time.
  /// Requires  most_workers >= 1.
  void ParallelFor(int64_t count, int64_t most_workers,
                   absl::FunctionRef<void(int64_t, int64_t)> body);

 private:
  struct Loop;

  void Work();
  /// Lets threads help, if there is anything to help with.
  void Offer(Loop& loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::vector<Loop*> loops_ ABSL_GUARDED_BY(mutex_);  // with parts to start
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tensord::core
