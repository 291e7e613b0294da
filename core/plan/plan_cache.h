// Keeps recently used plans so that equal requests plan once.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/plan/plan.h"

namespace tensord::core {

struct PlanCacheStatistics {
  int64_t entry_count = 0;
  int64_t hit_count = 0;
  int64_t miss_count = 0;  // calls that planned or waited for one that did
  int64_t eviction_count = 0;
};

/// Plans by key, least recently used first to go.
///
/// Threads  safe for concurrent use. Callers that miss on the same key wait for
///          one of them to plan; no lock is held while planning.
/// Owner    the Engine; there is no process-wide cache.
/// Errors   failures reach every waiting caller and are not kept.
class PlanCache {
 public:
  /// Requires  entry_limit >= 1. The limit is shared evenly by the shards, so a
  ///           cache may evict a little before it is full.
  explicit PlanCache(int64_t entry_limit);

  struct Lookup {
    std::shared_ptr<const Plan> plan;
    bool hit = false;
  };

  /// The plan of `key`, from the cache or from `make`.
  absl::StatusOr<Lookup> GetOrMake(
      const PlanKey& key, absl::FunctionRef<absl::StatusOr<Plan>()> make);

  /// The plan of `key` if it has been made, or null. Counts as a hit, or not.
  std::shared_ptr<const Plan> Find(const PlanKey& key);

  PlanCacheStatistics statistics() const;

 private:
  // A plan, or the wait for one.
  struct Slot {
    absl::Mutex mutex;
    bool done ABSL_GUARDED_BY(mutex) = false;
    absl::StatusOr<std::shared_ptr<const Plan>> plan ABSL_GUARDED_BY(mutex);
  };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::list<const PlanKey*>::iterator use;
  };
  struct Shard {
    mutable absl::Mutex mutex;
    // A node map, because `uses` points to its keys.
    absl::node_hash_map<PlanKey, Entry> entries ABSL_GUARDED_BY(mutex);
    std::list<const PlanKey*> uses ABSL_GUARDED_BY(mutex);  // latest first
    PlanCacheStatistics statistics ABSL_GUARDED_BY(mutex);
  };
  static constexpr int kShardCount = 16;

  const int64_t shard_limit_;
  std::array<Shard, kShardCount> shards_;
};

}  // namespace tensord::core
