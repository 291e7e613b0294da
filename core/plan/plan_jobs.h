// What each job got from the plan cache.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tensord::core {

/// What the jobs beyond the limit are counted as, and those with labels of more
/// than 128 bytes.
inline constexpr absl::string_view kOtherJobs = "(other)";

struct PlanJobStatistics {
  std::string job;
  int64_t hit_count = 0;
  int64_t miss_count = 0;
  int64_t planning_nanoseconds = 0;  // spent
  int64_t saved_nanoseconds = 0;     // of planning, by hits

  /// Adds the counts of `more`. Times stop at INT64_MAX.
  PlanJobStatistics& operator+=(const PlanJobStatistics& more);
};

/// Counts by job. Processors count apart from each other, so that threads do
/// not wait for one another; who asks for the counts adds them up.
///
/// Threads  safe for concurrent use.
class PlanJobs {
 public:
  /// Counts `job_limit` jobs by themselves.
  explicit PlanJobs(int64_t job_limit) : job_limit_(job_limit) {}

  /// Adds to the counts of `job`, whatever `counts` says about the label.
  void Add(absl::string_view job, const PlanJobStatistics& counts);

  /// All jobs together; the label is "".
  PlanJobStatistics Sum() const;

  /// By label.
  std::vector<PlanJobStatistics> List() const;

 private:
  // Aligned, so that no processor writes where another one reads.
  struct ABSL_CACHELINE_ALIGNED Counts {
    PlanJobStatistics counts;
  };
  struct ABSL_CACHELINE_ALIGNED Stripe {
    // Of `jobs`. Not Abseil's: where that is built to look for deadlocks, as on
    // Debian, each locking takes a lock of the whole process, too.
    mutable std::mutex mutex;
    absl::flat_hash_map<std::string, Counts> jobs;
  };

  Stripe& OwnStripe();
  bool Admit(absl::string_view job) ABSL_LOCKS_EXCLUDED(labels_mutex_);

  const int64_t job_limit_;
  std::array<Stripe, 16> stripes_;
  absl::Mutex labels_mutex_;  // taken inside a stripe's
  absl::flat_hash_set<std::string> labels_ ABSL_GUARDED_BY(labels_mutex_);
};

}  // namespace tensord::core
