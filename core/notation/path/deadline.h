// When a search has to end.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace tensord::core {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// In `budget` from now.
  explicit Deadline(absl::Duration budget)
      : end_(budget >= absl::Hours(1000)
                 ? Clock::time_point::max()
                 : Clock::now() + absl::ToChronoNanoseconds(budget)) {}
  explicit Deadline(Clock::time_point end) : end_(end) {}

  bool IsPast() const { return Clock::now() >= end_; }

 private:
  Clock::time_point end_;
};

}  // namespace tensord::core
