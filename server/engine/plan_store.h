// The file that keeps the plan cache from one run of the server to the next.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/plan/plan_cache.h"

namespace tensord::server {

/// Most bytes of a snapshot that is read.
inline constexpr int64_t kMaxSnapshotBytes = int64_t{1} << 30;

/// Entries of a snapshot, and how many of them the cache took in.
struct LoadedSnapshot {
  std::string writer;
  int64_t entry_count = 0;
  int64_t taken_count = 0;
};

struct Snapshot {
  std::string bytes;
  int64_t entry_count = 0;
};

/// The cache's entries as a snapshot. `writer` is who writes it, with its
/// version.
Snapshot MakeSnapshot(const core::PlanCache& cache, absl::string_view writer);

/// Takes a snapshot into the cache: all of it, or on failure nothing.
///
/// Errors  those of core::ReadSnapshot().
absl::StatusOr<LoadedSnapshot> LoadSnapshot(absl::string_view bytes,
                                            core::PlanCache& cache);

/// Reads the file once, and writes it on an interval and at the end.
///
/// The file is replaced as a whole, so that it is one snapshot or another
/// whatever happens to the process or the machine. One that cannot be taken in
/// is renamed and stays.
///
/// Threads   safe for concurrent use.
/// Lifetime  the cache must outlive it.
class PlanStore {
 public:
  struct Options {
    std::string path;
    absl::Duration interval = absl::Minutes(5);
    std::string writer;
  };
  struct Statistics {
    int64_t loaded_count = 0;
    int64_t saved_count = 0;
    absl::Time saved_at = absl::InfinitePast();
    std::string error;  // of the load or the last save; empty: none
  };
  /// Hears of each load and save.
  using Report =
      absl::AnyInvocable<void(absl::string_view event, int64_t entry_count,
                              const absl::Status& status) const>;

  /// Loads the file, if there is one.
  PlanStore(Options options, core::PlanCache& cache, Report report);
  /// Saves nothing.
  ~PlanStore();

  PlanStore(const PlanStore&) = delete;
  PlanStore& operator=(const PlanStore&) = delete;

  /// Writes the file now.
  ///
  /// Errors  UNAVAILABLE, reason PLAN_STORE_FAILED: the file system does not
  ///         let it; the file is as it was.
  absl::Status Save();

  const std::string& path() const { return options_.path; }
  Statistics statistics() const;

 private:
  void Load();
  void Run();

  const Options options_;
  core::PlanCache& cache_;
  const Report report_;
  absl::Mutex save_mutex_;  // one at a time
  mutable absl::Mutex mutex_;
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);
  /// The file could not be read nor put aside: it is not to be overwritten.
  bool keeps_file_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tensord::server
