// Keeps recently used plans so that equal requests plan once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/backend/backend.h"
#include "core/plan/plan.h"
#include "core/plan/plan_jobs.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/plan_table.h"

namespace tensord::core {

struct PlanCacheOptions {
  int64_t entry_limit = 65536;
  /// Of plans and records, with all that keeping them takes.
  int64_t byte_limit = int64_t{256} << 20;
  /// Jobs that are counted by themselves.
  int64_t job_limit = 1000;
  /// What gives an encoded key its id; another one in tests alone.
  uint64_t (*id_of)(absl::string_view encoded_key) = &PlanIdOf;
};

/// Who asks for a plan, and where it will run.
struct PlanAsker {
  absl::string_view job;
  /// Resolves records of plans; null: they stay where they are.
  const Backend* backend = nullptr;
};

struct PlanCacheStatistics {
  int64_t entry_count = 0;
  int64_t hit_count = 0;
  int64_t miss_count = 0;  // calls that planned or waited for one that did
  int64_t eviction_count = 0;
  int64_t pinned_count = 0;
  int64_t record_count = 0;  // kept, and not resolved yet
  int64_t bytes = 0;         // of plans and records
  int64_t load_count = 0;    // hits that made a plan of a record
  /// Records that did not hold when they were asked for, by reason.
  std::map<std::string, int64_t> load_errors;
  int64_t planning_nanoseconds = 0;  // spent
  int64_t saved_nanoseconds = 0;     // of planning, by hits
};

/// One plan of the cache, as it was when it was looked at.
struct PlanEntry {
  uint64_t id = 0;
  std::string key;  // encoded
  std::shared_ptr<const Plan> plan;
  PlanSource source = PlanSource::kPlanned;
  bool is_pinned = false;
  int64_t hit_count = 0;
  int64_t planning_nanoseconds = 0;  // that making the plan took
  int64_t saved_nanoseconds = 0;     // of planning, by hits
  absl::Time last_used;
  int64_t bytes = 0;  // of memory
  /// Of INCREMENTAL selection: samples taken, and how many there will be; 0 of
  /// 0 when none is under way.
  int sample_count = 0;
  int wanted_sample_count = 0;
  std::vector<KernelTimes> times;
};

enum class PlanOrder {
  kId,
  kHits,  // the most first
};

struct PlanListQuery {
  PlanOrder order = PlanOrder::kId;
  int64_t page_size = 100;
  std::string page_token;  // of the page before; "" for the first
};

struct PlanPage {
  std::vector<PlanEntry> entries;
  std::string next_page_token;  // "" on the last page
};

/// Plans by key: those not used lately go first, pinned ones never. Also
/// records of plans, which are resolved when they are asked for.
///
/// Keys are kept and compared as bytes in full. An entry's id is PlanIdOf() its
/// encoded key; should two keys have one id, what is done to it is done to both
/// entries.
///
/// Threads  safe for concurrent use. Callers that hit do not wait for each
///          other; those that miss on the same key wait for one of them to
///          plan. No lock is held while planning.
/// Owner    the Engine; there is no process-wide cache.
/// Errors   failures reach every waiting caller and are not kept.
class PlanCache {
 public:
  /// Requires  limits >= 1. They are shared evenly by the shards, of which
  ///           small caches have one, so a cache may evict a little before it
  ///           is full.
  explicit PlanCache(const PlanCacheOptions& options);
  explicit PlanCache(int64_t entry_limit)
      : PlanCache(PlanCacheOptions{.entry_limit = entry_limit}) {}

  struct Lookup {
    std::shared_ptr<const Plan> plan;
    bool hit = false;
  };
  using Make = absl::FunctionRef<absl::StatusOr<Plan>()>;

  /// The plan of `key`, from the cache, from a record or from `make`.
  absl::StatusOr<Lookup> GetOrMake(const PlanKey& key, Make make,
                                   const PlanAsker& asker = {});

  /// The same, but null while another caller makes it.
  absl::StatusOr<Lookup> GetOrTryToMake(const PlanKey& key, Make make,
                                        const PlanAsker& asker = {});

  /// The plan of `key` if it has been made or there is a record of it, or null.
  /// Counts as a hit, or not.
  std::shared_ptr<const Plan> Find(const PlanKey& key,
                                   const PlanAsker& asker = {});

  // INCREMENTAL selection, shared by all who ask for the key. Its entry has the
  // plan that predictions give until all candidates are measured, and then the
  // choice; Plan::selection tells which.

  /// The plan to run now in place of the entry's, for its time; null when there
  /// is none to try. AddSample() or AddFailure() is due afterwards.
  /// `candidates` gives ListPlans() and is called without a lock, when the
  /// first execution asks.
  std::shared_ptr<const Plan> NextToTry(
      const PlanKey& key, absl::FunctionRef<std::vector<Plan>()> candidates);

  /// `kernel` took so long. Ignored when it is not being tried, or when that is
  /// no time.
  void AddSample(const PlanKey& key, absl::string_view kernel,
                 double nanoseconds);

  /// `kernel` failed: it is not tried again.
  void AddFailure(const PlanKey& key, absl::string_view kernel);

  /// The entries in order, a page at a time. An entry whose hits grow meanwhile
  /// may show twice or not at all in that order.
  ///
  /// Errors  INVALID_ARGUMENT, reason PAGE_TOKEN_MALFORMED.
  absl::StatusOr<PlanPage> List(const PlanListQuery& query) const;

  /// The entries of that id; mostly one, or none.
  std::vector<PlanEntry> FindById(uint64_t id) const;

  /// Keeps the entry until it is unpinned or removed.
  /// Errors  NOT_FOUND, reason PLAN_NOT_FOUND; RESOURCE_EXHAUSTED, reason
  ///         PINS_FULL: pinned entries would take more than half of a shard.
  absl::Status Pin(uint64_t id);
  /// Errors  NOT_FOUND, reason PLAN_NOT_FOUND; here as in the next.
  absl::Status Unpin(uint64_t id);
  /// Also removes a pinned entry.
  absl::Status Remove(uint64_t id);

  /// Removes all entries and records, pinned entries only when told. Returns
  /// how many entries went. Statistics stay.
  int64_t Clear(bool pinned_too = false);

  /// Keeps an encoded PlanRecord until its key is asked for and it is resolved:
  /// one that does not hold then is dropped and counted. Where there is
  /// a record already, the one that more was measured for stays. A record of a
  /// tuning that is over ends that of an entry, or takes the place of one that
  /// has not begun.
  ///
  /// Returns  false: nothing of it was taken. There is as much or more of that
  ///          key already, no room, or no key in `record`.
  bool AddRecord(std::string record);

  /// Calls `visit` with an encoded PlanRecord of each entry and each record.
  /// No lock is held meanwhile.
  void Export(absl::FunctionRef<void(absl::string_view record)> visit) const;

  const PlanCacheOptions& options() const { return options_; }

  PlanCacheStatistics statistics() const;

  /// By label.
  std::vector<PlanJobStatistics> job_statistics() const { return jobs_.List(); }

 private:
  // The wait for a plan. Null and OK: ask again.
  struct Flight {
    absl::Mutex mutex;
    bool done ABSL_GUARDED_BY(mutex) = false;
    absl::StatusOr<std::shared_ptr<const Plan>> plan ABSL_GUARDED_BY(mutex);
  };
  struct ABSL_CACHELINE_ALIGNED Shard {
    Shard(int64_t entry_limit, int64_t byte_limit)
        : plans(entry_limit, byte_limit) {}

    mutable absl::Mutex mutex;
    PlanTable plans ABSL_GUARDED_BY(mutex);
    absl::flat_hash_map<std::string, std::shared_ptr<Flight>> flights
        ABSL_GUARDED_BY(mutex);
    int64_t load_count ABSL_GUARDED_BY(mutex) = 0;
    std::map<std::string, int64_t> load_errors ABSL_GUARDED_BY(mutex);
  };
  /// An encoded key, where it belongs.
  struct Place {
    absl::string_view key;
    uint64_t id;
    Shard& shard;
  };
  struct Made;

  Shard& ShardOf(uint64_t id) const;
  Place PlaceOf(const EncodedPlanKey& key) const;

  /// The plan, or null where `make` is. Also null, unless it `waits`, while
  /// another caller makes it.
  absl::StatusOr<Lookup> Serve(const PlanKey& key, const Make* make, bool waits,
                               const PlanAsker& asker);
  /// What is there, counted as a hit of `job`.
  std::optional<Lookup> Hit(const Place& at, absl::string_view job);
  /// A plan of `record` if there is one and it holds, else by `make` if there
  /// is one. Without a lock.
  Made MakeNow(const PlanKey& key, const std::string& record, const Make* make,
               const PlanAsker& asker) const;
  /// Keeps and counts what was made, and tells those who wait.
  absl::StatusOr<Lookup> Settle(const Place& at, Flight& flight, Made made,
                                absl::string_view job);
  /// Null: `kernel` failed.
  void AddTime(const PlanKey& key, absl::string_view kernel,
               const double* nanoseconds);

  const PlanCacheOptions options_;
  std::vector<std::unique_ptr<Shard>> shards_;  // a power of two
  PlanJobs jobs_;
};

}  // namespace tensord::core
