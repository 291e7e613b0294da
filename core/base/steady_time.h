// The time, by a clock that nobody sets.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensord::core {

/// What the clock on the wall says had it not been set since the first call:
/// differences are what really passed.
inline absl::Time SteadyNow() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point first = Clock::now();
  static const absl::Time then = absl::Now();
  return then + absl::FromChrono(Clock::now() - first);
}

}  // namespace tensord::core
