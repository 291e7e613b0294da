// When a search has to end.
#pragma once

#include <atomic>
#include <chrono>

#include "absl/time/time.h"

namespace tensord::core {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// In `budget` from now, or as soon as `stop` is set.
  explicit Deadline(absl::Duration budget,
                    const std::atomic<bool>* stop = nullptr)
      : stop_(stop),
        end_(budget >= absl::Hours(1000)
                 ? Clock::time_point::max()
                 : Clock::now() + absl::ToChronoNanoseconds(budget)) {}
  Deadline(Clock::time_point end, const std::atomic<bool>* stop)
      : stop_(stop), end_(end) {}

  bool IsPast() const {
    return (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) ||
           Clock::now() >= end_;
  }

 private:
  const std::atomic<bool>* stop_;
  Clock::time_point end_;
};

}  // namespace tensord::core
