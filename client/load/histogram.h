// How often durations occurred, exactly enough for percentiles.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace tensord::load {

/// A log-linear histogram: each power of two of nanoseconds has 128 buckets.
///
/// Units  what is told of a duration is at most kRelativeError off, whatever
///        it is; below 256 ns it is exact to the nanosecond.
class Histogram {
 public:
  static constexpr double kRelativeError = 1.0 / 256;

  struct Bucket {
    absl::Duration upper;  // durations in it are below
    int64_t count = 0;
  };

  /// Negative durations count as 0.
  void Add(absl::Duration duration);
  void Add(const Histogram& other);

  int64_t count() const { return count_; }
  absl::Duration mean() const;
  absl::Duration max() const { return max_; }  // exactly

  /// The rank-th shortest duration, from 1; infinite beyond the last one.
  absl::Duration AtRank(int64_t rank) const;

  /// The duration that a part of `quantile`, 0 to 1, does not exceed; zero
  /// without any.
  absl::Duration Quantile(double quantile) const;

  /// Those that hold something, in ascending order.
  std::vector<Bucket> buckets() const;

 private:
  std::vector<int64_t> counts_;  // (bucket), as far as there are any
  int64_t count_ = 0;
  absl::Duration sum_;
  absl::Duration max_;
};

/// How many of `count` durations, in ascending order, `quantile` takes: 99 of
/// 100 for 0.99. At least one.
int64_t RankOf(double quantile, int64_t count);

}  // namespace tensord::load
