// When calls are meant to be sent, and which.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace tensord::load {

/// Arrivals of a Poisson process: independent of each other and of how the
/// server does. The same seed gives the same ones.
class PoissonSchedule {
 public:
  /// Requires  rate_per_s > 0.
  PoissonSchedule(double rate_per_s, absl::Duration start, uint64_t seed)
      : random_(seed), gap_s_(rate_per_s), start_(start) {}

  /// When the next call is meant to be sent. Never before the one before.
  absl::Duration Next() {
    elapsed_s_ += gap_s_(random_);
    return start_ + absl::Seconds(elapsed_s_);
  }

 private:
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_s_;
  const absl::Duration start_;
  double elapsed_s_ = 0;
};

/// Draws operations of a mix by their weights.
class OperationChoice {
 public:
  /// Requires  no weight is negative, one is positive.
  OperationChoice(const std::vector<double>& weights, uint64_t seed)
      : random_(seed), choice_(weights.begin(), weights.end()) {}

  int Next() { return choice_(random_); }

 private:
  std::mt19937_64 random_;
  std::discrete_distribution<int> choice_;
};

}  // namespace tensord::load
