#include "server/engine/search_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/engine/quota.h"

namespace tensord::server {
namespace {

constexpr absl::Duration kRefill = absl::Minutes(1);
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

}  // namespace

void SearchBudget::SetLimit(int64_t seconds) {
  absl::MutexLock lock(&mutex_);
  limit_ = seconds;
}

int64_t SearchBudget::limit() const {
  absl::MutexLock lock(&mutex_);
  return limit_;
}

absl::Status SearchBudget::Check(absl::Time now, absl::Duration longest) const {
  absl::MutexLock lock(&mutex_);
  if (limit_ == kNone) return absl::OkStatus();
  const absl::Duration limit = absl::Seconds(limit_);
  const absl::Duration used = UsedAt(now);
  if (used < limit && longest <= limit) return absl::OkStatus();
  UsedQuota quota{
      .tenant = tenant_,
      .quota = "search_seconds",
      .limit = limit_,
      .used = absl::ToInt64Seconds(absl::Ceil(used, absl::Seconds(1))),
      .retry_after = {}};
  // What asks for more than there ever is does not get it by waiting.
  if (longest <= limit) {
    quota.retry_after = absl::Ceil(
        (used - limit) * absl::FDivDuration(kRefill, limit) + absl::Seconds(1),
        absl::Seconds(1));
  }
  return QuotaExceeded(
      quota, std::max<int64_t>(1, absl::ToInt64Seconds(
                                      absl::Ceil(longest, absl::Seconds(1)))));
}

void SearchBudget::Count(absl::Time now, absl::Duration took) {
  absl::MutexLock lock(&mutex_);
  if (limit_ == kNone) return;
  used_ = UsedAt(now) + took;
  counted_ = std::max(counted_, now);
}

absl::Duration SearchBudget::used(absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  return UsedAt(now);
}

absl::Duration SearchBudget::UsedAt(absl::Time now) const {
  if (limit_ == kNone) return absl::ZeroDuration();
  const absl::Duration since = std::max(now - counted_, absl::ZeroDuration());
  const absl::Duration refilled =
      since * absl::FDivDuration(absl::Seconds(limit_), kRefill);
  return std::max(used_ - refilled, absl::ZeroDuration());
}

}  // namespace tensord::server
