// Plans by id within bounds: one shard of a PlanCache, without its lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/plan/plan.h"
#include "core/plan/tuning.h"

namespace tensord::core {

/// Where a plan that is kept came from.
enum class PlanSource : uint8_t {
  kPlanned,   // by predictions, in this process
  kMeasured,  // by measurement, in this process
  kLoaded,    // from a record
};

/// INCREMENTAL selection under way, with the plans that it tries.
struct PlanTuning {
  Tuning tuning;
  std::vector<std::shared_ptr<const Plan>> plans;  // (candidate)
};

/// A plan that is kept, with what is known of it.
struct CachedPlan {
  /// Neighbours in the order of going.
  struct Link {
    Link* older = this;
    Link* newer = this;
  };

  uint64_t id = 0;
  std::string key;  // encoded, in full
  std::shared_ptr<const Plan> plan;
  PlanSource source = PlanSource::kPlanned;
  bool is_pinned = false;
  int64_t planning_nanoseconds = 0;  // that making the plan took
  std::unique_ptr<PlanTuning> tuning;
  std::vector<KernelTimes> times;  // of a tuning that is over or not resumed

  // Written by all who look the plan up at the same time.
  mutable std::atomic<int64_t> hit_count = 0;
  mutable std::atomic<int64_t> last_used_nanoseconds = 0;  // Unix time
  mutable std::atomic<bool> is_used = false;  // since it got its place

  /// For the table alone: bytes charged, its place in the order of going, and
  /// the next one of the same id.
  int64_t charged_bytes = 0;
  struct Place : Link {
    CachedPlan* owner = nullptr;
  } place;
  std::unique_ptr<CachedPlan> next;

  /// Counts a hit, now.
  void Hit(int64_t unix_nanoseconds) const;

  /// Planning that hits have saved.
  int64_t saved_nanoseconds() const;
};

/// Bytes of memory that keeping `plan` takes: the plan, all that belongs to it,
/// what the heap adds to each block, and its share of the table.
int64_t BytesOf(const CachedPlan& plan);

/// Plans by id and key, and records: encoded plans that are not resolved yet.
/// Records go first, the oldest before others. Plans go by the clock
/// algorithm: one goes when it was not used since its last turn to go. So
/// looking a plan up moves nothing and locks nobody out.
///
/// Threads    const methods and CachedPlan::Hit() may be called concurrently;
///            for the others the cache locks.
/// Invariant  plan_count() and bytes() are within their limits, and those of
///            pinned plans within half of them.
class PlanTable {
 public:
  PlanTable(int64_t plan_limit, int64_t byte_limit)
      : plan_limit_(plan_limit), byte_limit_(byte_limit) {}
  ~PlanTable();

  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  /// The plan of that id and key, or null.
  CachedPlan* Find(uint64_t id, absl::string_view key);
  /// The first of the plans of that id, linked by `next`, or null.
  CachedPlan* Find(uint64_t id);
  const CachedPlan* Find(uint64_t id, absl::string_view key) const;
  const CachedPlan* Find(uint64_t id) const;

  /// Takes `plan` in, in place of the record of its key. False when it is
  /// larger than all that may go.
  /// Requires  Find(plan->id, plan->key) == nullptr.
  bool Insert(std::unique_ptr<CachedPlan> plan);

  /// To be called when the size of `plan` may have changed. It may be the one
  /// that goes.
  void Recharge(CachedPlan& plan);

  /// Errors  RESOURCE_EXHAUSTED, reason PINS_FULL: pinned plans would take more
  ///         than half.
  absl::Status Pin(CachedPlan& plan);
  void Unpin(CachedPlan& plan);

  void Remove(CachedPlan& plan);

  /// Removes all records, and all plans, pinned ones only when told. Returns
  /// how many plans went.
  int64_t Clear(bool pinned_too);

  /// Keeps an encoded record. False when a plan or a record of that id is
  /// there already, or when there is no room beside the plans.
  bool AddRecord(uint64_t id, std::string record);

  /// The record of that id, also of that key; "" when there is none.
  std::string Record(uint64_t id) const;
  std::string Record(uint64_t id, absl::string_view key) const;

  /// Removes the record of that id and key, if there is one.
  void DropRecord(uint64_t id, absl::string_view key);

  std::vector<uint64_t> Ids() const;
  std::vector<uint64_t> RecordIds() const;

  int64_t plan_count() const { return plan_count_; }
  int64_t record_count() const { return static_cast<int64_t>(records_.size()); }
  int64_t pinned_count() const { return pinned_count_; }
  int64_t bytes() const { return bytes_; }
  int64_t eviction_count() const { return eviction_count_; }

 private:
  /// Lets plans and records go until so much more fits, or returns false.
  bool MakeRoom(int64_t plans, int64_t bytes);
  void DropOldestRecord();
  void EraseRecord(uint64_t id);
  /// The plan that is to go, or null.
  CachedPlan* Oldest();
  void PlaceAsLatest(CachedPlan& plan);
  static void Unplace(CachedPlan& plan);

  const int64_t plan_limit_;
  const int64_t byte_limit_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<CachedPlan>> plans_;
  absl::flat_hash_map<uint64_t, std::string> records_;
  /// Ids of records, oldest first; with some of records that are gone.
  std::deque<uint64_t> record_order_;
  /// Plans that may go, in a ring.
  CachedPlan::Link ring_;
  int64_t plan_count_ = 0;
  int64_t pinned_count_ = 0;
  int64_t bytes_ = 0;
  int64_t pinned_bytes_ = 0;
  int64_t eviction_count_ = 0;
};

}  // namespace tensord::core
