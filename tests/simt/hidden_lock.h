// A lock that orders nothing in the eyes of ThreadSanitizer: what CUDA's own
// locks happen to order is no promise to its callers.
#pragma once

#include <atomic>
#include <cstdint>

namespace tensord::simt {

/// A mutex with one condition: that something changed.
class HiddenLock {
 public:
  void lock() {
    while (is_locked_.exchange(1, std::memory_order_acquire) != 0) {
      is_locked_.wait(1, std::memory_order_relaxed);
    }
  }

  void unlock() {
    is_locked_.store(0, std::memory_order_release);
    is_locked_.notify_one();
  }

  /// Wakes all that wait for a change. Requires the lock.
  void NotifyOfChange() {
    ++changes_;
    changes_.notify_all();
  }

  /// Gives the lock up until the next NotifyOfChange(). Requires the lock.
  void WaitForChange() {
    const uint32_t seen = changes_;
    unlock();
    changes_.wait(seen);
    lock();
  }

 private:
  std::atomic<uint32_t> is_locked_ = 0;
  std::atomic<uint32_t> changes_ = 0;
};

}  // namespace tensord::simt
