// OS threads that help one other to run the blocks of a grid.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "tests/simt/hidden_lock.h"

namespace tensord::simt {

/// Started when they are first wanted, and kept, because each keeps the stacks
/// of its GPU threads.
///
/// Threads  used by one OS thread.
class HelperThreads {
 public:
  HelperThreads() = default;
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  /// Calls `body` on `count` helpers and on the calling thread; returns when
  /// all have returned.
  void Run(int count, const std::function<void()>& body);

 private:
  void Work(int index);

  HiddenLock lock_;
  // Under the lock.
  const std::function<void()>* body_ = nullptr;
  int wanted_count_ = 0;   // of this round: those below run the body
  int running_count_ = 0;  // that have not returned from it
  uint64_t round_ = 0;
  bool is_closing_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace tensord::simt
