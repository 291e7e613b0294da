// Facts that come true while a test waits.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tensord::test {

/// Polls `condition`, for 20 s at most.
template <typename Condition>
::testing::AssertionResult Soon(Condition condition) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point limit = Clock::now() + std::chrono::seconds(20);
  while (Clock::now() < limit) {
    if (condition()) return ::testing::AssertionSuccess();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return ::testing::AssertionFailure() << "not within 20 s";
}

}  // namespace tensord::test
