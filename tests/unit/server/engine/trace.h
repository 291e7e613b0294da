// What happens in a test, on any thread, in order.
#pragma once

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensord::server {

/// What happened, in order.
class Trace {
 public:
  void Add(std::string what) {
    absl::MutexLock lock(&mutex_);
    entries_.push_back(std::move(what));
  }
  std::vector<std::string> entries() const {
    absl::MutexLock lock(&mutex_);
    return entries_;
  }
  /// Waits until `count` things have happened, for 20 s at most.
  std::vector<std::string> Await(int count) const {
    absl::MutexLock lock(&mutex_);
    const auto happened = [&] { return std::ssize(entries_) >= count; };
    EXPECT_TRUE(mutex_.AwaitWithDeadline(absl::Condition(&happened),
                                         absl::Now() + absl::Seconds(20)))
        << "not within 20 s";
    return entries_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
