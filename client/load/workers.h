// Threads for calls that block.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tensord::load {

/// Threads that are made when they are first needed, and stay.
///
/// Threads  safe for concurrent use.
class Workers {
 public:
  /// There are never more threads than `most`.
  explicit Workers(int most) : most_(most) {}
  /// Waits for all that has been begun.
  ~Workers();

  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs `work` at once on a thread that has nothing to do. False: there is
  /// none, and nothing happens.
  bool TryRun(std::function<void()> work);

  /// Waits until no thread has anything to do. False: some have after
  /// `patience`.
  bool AwaitIdle(absl::Duration patience);

 private:
  void Serve();
  bool is_idle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return waiting_.empty() && idle_ == threads_.size();
  }

  const size_t most_;
  absl::Mutex mutex_;
  absl::CondVar given_;  // to `waiting_`, or `is_stopping_`
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::load
