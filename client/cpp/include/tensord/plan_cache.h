// What a server has learned about kernels, for whoever runs it. The contract is
// tensord/v1/plan_cache.proto.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/credentials.h"
#include "tensord/operations.h"

namespace tensord {

namespace internal {
class Channels;
}  // namespace internal

struct PlanCacheJob {
  std::string job;
  int64_t hit_count = 0;
  int64_t miss_count = 0;
  absl::Duration planning;  // spent
  absl::Duration saved;     // by hits
};

/// The file that keeps the cache from one run of the server to the next.
struct PlanStoreState {
  std::string path;  // empty: there is none
  int64_t loaded_count = 0;
  int64_t saved_count = 0;
  absl::Time saved_at = absl::InfinitePast();
  std::string error;  // of the load or the last save; empty: none
};

/// The Redis through which servers share plans.
struct PlanExchangeState {
  std::string address;  // empty: there is none
  bool is_connected = false;
  int64_t sent_count = 0;
  int64_t received_count = 0;
  int64_t refused_count = 0;  // values that were no entries
  int64_t error_count = 0;    // exchanges that failed
  absl::Time exchanged_at = absl::InfinitePast();
  std::string error;  // of the last exchange; empty: none
};

struct PlanCacheState {
  int64_t entry_count = 0;
  int64_t entry_limit = 0;
  int64_t record_count = 0;  // of snapshots, not asked for yet
  int64_t pinned_count = 0;
  int64_t bytes = 0;  // of memory
  int64_t byte_limit = 0;
  int64_t hit_count = 0;
  int64_t miss_count = 0;
  int64_t eviction_count = 0;
  int64_t load_count = 0;                      // hits on a snapshot's entry
  std::map<std::string, int64_t> load_errors;  // by reason
  absl::Duration planning;                     // spent
  absl::Duration saved;                        // by hits
  std::vector<PlanCacheJob> jobs;              // by label
  PlanStoreState store;
  PlanExchangeState exchange;
};

/// Where a plan came from. Numbered as in the contract.
enum class PlanSource {
  kUnknown = 0,
  kPlanned = 1,
  kMeasured = 2,
  kLoaded = 3
};

/// "planned" and so on.
std::string_view ToString(PlanSource source);

struct PlanCacheEntry {
  std::string id;       // 16 hexadecimal digits
  std::string problem;  // as kernels see it
  std::string device;   // what it was planned for
  std::string kernel;   // empty: there is nothing to compute
  int64_t workspace_bytes = 0;
  Selection selection = Selection::kHeuristic;
  PlanSource source = PlanSource::kUnknown;
  bool is_pinned = false;
  int64_t hit_count = 0;
  absl::Duration planning;  // that making it took
  absl::Duration saved;     // by hits
  absl::Time last_used;
  int64_t bytes = 0;
  double predicted_nanoseconds = 0;
  double measured_nanoseconds = 0;  // 0: it was not measured
  int sample_count = 0;             // of INCREMENTAL selection
  int wanted_sample_count = 0;
};

/// What became of a snapshot.
struct LoadedPlans {
  std::string writer;
  int64_t entry_count = 0;
  /// The others were there, did not fit, or are for a device that this server
  /// lacks.
  int64_t taken_count = 0;
};

/// The plan cache of a server. Each call takes `deadline` at most.
///
/// Threads  safe for concurrent use.
/// Errors   those of PlanCacheService.
class PlanCache {
 public:
  /// `address` is `host:port` or `unix:/path`. Does not connect yet.
  explicit PlanCache(std::string_view address,
                     absl::Duration deadline = absl::Seconds(60),
                     const Credentials& credentials = {});

  absl::StatusOr<PlanCacheState> State() const;
  /// All entries, by id or, with `by_hits`, those with most hits first.
  absl::StatusOr<std::vector<PlanCacheEntry>> Entries(bool by_hits) const;
  absl::Status Pin(std::string_view id) const;
  absl::Status Unpin(std::string_view id) const;
  absl::Status Remove(std::string_view id) const;
  /// Removes all entries, pinned ones only if `pinned_too`. Returns how many
  /// went.
  absl::StatusOr<int64_t> Clear(bool pinned_too) const;

  /// Gives a snapshot to `write`, piece by piece; ends early with its error.
  absl::Status Dump(
      const std::function<absl::Status(std::string_view bytes)>& write) const;
  /// Takes a snapshot in. With `problems_only` its problems are planned anew,
  /// as other hardware needs it.
  absl::StatusOr<LoadedPlans> Load(std::string_view snapshot,
                                   bool problems_only) const;

 private:
  std::shared_ptr<internal::Channels> channels_;
};

}  // namespace tensord
