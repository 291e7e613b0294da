#include "client/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tensord::load {
namespace {

constexpr int kBits = 7;  // of the position within a power of two
constexpr int64_t kPerPower = int64_t{1} << kBits;

/// Nanoseconds below 2 * kPerPower have a bucket each. From there on, buckets
/// are twice as wide after each power of two.
int64_t BucketOf(int64_t nanoseconds) {
  const int shift = std::max(
      0, static_cast<int>(std::bit_width(static_cast<uint64_t>(nanoseconds))) -
             kBits - 1);
  return shift * kPerPower + (nanoseconds >> shift);
}

/// The lowest nanoseconds of a bucket.
int64_t LowerOf(int64_t bucket) {
  const int64_t shift = std::max<int64_t>(0, bucket / kPerPower - 1);
  return (bucket - shift * kPerPower) << shift;
}

}  // namespace

void Histogram::Add(absl::Duration duration) {
  duration = std::max(duration, absl::ZeroDuration());
  const size_t bucket = BucketOf(absl::ToInt64Nanoseconds(duration));
  if (bucket >= counts_.size()) counts_.resize(bucket + 1);
  ++counts_[bucket];
  ++count_;
  sum_ += duration;
  max_ = std::max(max_, duration);
}

void Histogram::Add(const Histogram& other) {
  counts_.resize(std::max(counts_.size(), other.counts_.size()));
  for (size_t i = 0; i < other.counts_.size(); ++i) {
    counts_[i] += other.counts_[i];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

absl::Duration Histogram::mean() const {
  return count_ == 0 ? absl::ZeroDuration() : sum_ / count_;
}

absl::Duration Histogram::AtRank(int64_t rank) const {
  if (rank == count_ && count_ > 0) return max_;
  for (size_t i = 0; i < counts_.size(); ++i) {
    rank -= counts_[i];
    if (rank > 0) continue;
    const int64_t lower = LowerOf(i);
    const absl::Duration middle =
        absl::Nanoseconds(lower + (LowerOf(i + 1) - lower) / 2);
    return std::min(middle, max_);
  }
  return absl::InfiniteDuration();
}

absl::Duration Histogram::Quantile(double quantile) const {
  return count_ == 0 ? absl::ZeroDuration() : AtRank(RankOf(quantile, count_));
}

std::vector<Histogram::Bucket> Histogram::buckets() const {
  std::vector<Bucket> buckets;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    buckets.push_back({absl::Nanoseconds(LowerOf(i + 1)), counts_[i]});
  }
  return buckets;
}

int64_t RankOf(double quantile, int64_t count) {
  // 0.99 * 100 is a little more than 99 in binary.
  const double rank = std::ceil(quantile * count * (1 - 1e-12));
  return std::clamp<int64_t>(static_cast<int64_t>(rank), 1,
                             std::max<int64_t>(count, 1));
}

}  // namespace tensord::load
