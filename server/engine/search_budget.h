// How long a tenant may have the server think.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tensord::server {

/// Seconds that path searches and measurements of plans may take: so many at
/// once, and as many more with every minute. What takes longer than is left
/// goes on, and others wait until that is made up for.
///
/// Threads  safe for concurrent use.
class SearchBudget {
 public:
  explicit SearchBudget(std::string tenant) : tenant_(std::move(tenant)) {}

  /// From now on.
  void SetLimit(int64_t seconds);
  /// Seconds; most of int64_t: there is none.
  int64_t limit() const;

  /// OK when something may begin that is to take up to `longest`, if that is
  /// known.
  /// Errors  RESOURCE_EXHAUSTED, reason TENANT_QUOTA_EXCEEDED.
  absl::Status Check(absl::Time now,
                     absl::Duration longest = absl::ZeroDuration()) const;
  /// Something has taken so long.
  void Count(absl::Time now, absl::Duration took);
  /// Of the limit, as of now; more than it when others wait.
  absl::Duration used(absl::Time now) const;

 private:
  absl::Duration UsedAt(absl::Time now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string tenant_;
  mutable absl::Mutex mutex_;
  int64_t limit_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::max();
  absl::Duration used_ ABSL_GUARDED_BY(mutex_);  // at `counted_`
  absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
};

}  // namespace tensord::server
