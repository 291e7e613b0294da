// The time, by a clock that nobody sets.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensord::core {

/// What the clock on the wall had said at `when`, had it not been set since the
/// first call: differences are what really passed.
inline absl::Time SteadyTime(std::chrono::steady_clock::time_point when) {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point first = Clock::now();
  static const absl::Time then = absl::Now();
  return then + absl::FromChrono(when - first);
}

inline absl::Time SteadyNow() {
  return SteadyTime(std::chrono::steady_clock::now());
}

}  // namespace tensord::core
