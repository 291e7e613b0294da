#include "core/plan/plan_table.h"

#include <utility>

#include "core/base/checked_math.h"
#include "core/base/heap_bytes.h"
#include "core/base/status.h"
#include "core/plan/plan_record.h"

namespace tensord::core {
namespace {

/// Of a hash table with slots of `slot` bytes, just grown: 7 in 16 are taken,
/// and each has a byte of its own.
constexpr int64_t TableShare(int64_t slot) { return (slot + 1) * 16 / 7 + 1; }

constexpr int64_t kPlanSlotBytes =
    TableShare(sizeof(std::pair<uint64_t, std::unique_ptr<CachedPlan>>));
/// With the place in the order of records, twice since it is tidied up late.
constexpr int64_t kRecordSlotBytes =
    TableShare(sizeof(std::pair<uint64_t, std::string>)) + 2 * sizeof(uint64_t);

/// Plans that are passed over in a row because they were used: it ends also
/// when all were.
constexpr int kMostChances = 64;

// Of what is shared, the counts of its owners are kept beside it: in one block
// with a plan, in one of their own with what a kernel made.
constexpr int64_t kOwnersBytes = 16;

int64_t SharedPlanBytes(const Plan& plan) {
  const int64_t bytes = HeapBlockBytes(kOwnersBytes + sizeof(Plan));
  if (plan.solution == nullptr) return bytes;
  return bytes + HeapBlockBytes(kOwnersBytes + sizeof(void*)) +
         plan.solution->bytes();
}

int64_t RecordBytes(const std::string& record) {
  return kRecordSlotBytes + HeapBytes(record);
}

}  // namespace

void CachedPlan::Hit(int64_t unix_nanoseconds) const {
  hit_count.fetch_add(1, std::memory_order_relaxed);
  last_used_nanoseconds.store(unix_nanoseconds, std::memory_order_relaxed);
  is_used.store(true, std::memory_order_relaxed);
}

int64_t CachedPlan::saved_nanoseconds() const {
  return SaturatingMultiply(hit_count.load(std::memory_order_relaxed),
                            planning_nanoseconds);
}

int64_t BytesOf(const CachedPlan& plan) {
  int64_t bytes = kPlanSlotBytes + HeapBlockBytes(sizeof(CachedPlan)) +
                  HeapBytes(plan.key) + SharedPlanBytes(*plan.plan) +
                  HeapBytes(plan.times);
  for (const KernelTimes& times : plan.times) {
    bytes += HeapBytes(times.kernel) + HeapBytes(times.nanoseconds);
  }
  if (plan.tuning != nullptr) {
    bytes += HeapBlockBytes(sizeof(PlanTuning)) +
             plan.tuning->tuning.HeapBytes() + HeapBytes(plan.tuning->plans);
    for (const auto& tried : plan.tuning->plans) {
      bytes += SharedPlanBytes(*tried);
    }
  }
  return bytes;
}

PlanTable::~PlanTable() { Clear(true); }

const CachedPlan* PlanTable::Find(uint64_t id) const {
  const auto found = plans_.find(id);
  return found == plans_.end() ? nullptr : found->second.get();
}

const CachedPlan* PlanTable::Find(uint64_t id, absl::string_view key) const {
  const CachedPlan* plan = Find(id);
  while (plan != nullptr && plan->key != key) plan = plan->next.get();
  return plan;
}

CachedPlan* PlanTable::Find(uint64_t id) {
  return const_cast<CachedPlan*>(std::as_const(*this).Find(id));
}

CachedPlan* PlanTable::Find(uint64_t id, absl::string_view key) {
  return const_cast<CachedPlan*>(std::as_const(*this).Find(id, key));
}

void PlanTable::PlaceAsLatest(CachedPlan& plan) {
  plan.place.owner = &plan;
  plan.place.older = ring_.older;
  plan.place.newer = &ring_;
  ring_.older->newer = &plan.place;
  ring_.older = &plan.place;
  plan.is_used.store(false, std::memory_order_relaxed);
}

void PlanTable::Unplace(CachedPlan& plan) {
  plan.place.older->newer = plan.place.newer;
  plan.place.newer->older = plan.place.older;
  plan.place.older = plan.place.newer = &plan.place;
}

CachedPlan* PlanTable::Oldest() {
  // The ring's own link belongs to no plan; the oldest one's is next to it.
  for (int chances = 0;; ++chances) {
    if (ring_.newer == &ring_) return nullptr;
    CachedPlan* const plan =
        static_cast<CachedPlan::Place*>(ring_.newer)->owner;
    if (chances == kMostChances ||
        !plan->is_used.load(std::memory_order_relaxed)) {
      return plan;
    }
    Unplace(*plan);
    PlaceAsLatest(*plan);
  }
}

bool PlanTable::MakeRoom(int64_t plans, int64_t bytes) {
  if (pinned_count_ + plans > plan_limit_ ||
      pinned_bytes_ + bytes > byte_limit_) {
    return false;
  }
  while (plan_count_ + plans > plan_limit_ || bytes_ + bytes > byte_limit_) {
    if (plan_count_ + plans <= plan_limit_ && !records_.empty()) {
      DropOldestRecord();
      continue;
    }
    CachedPlan* const oldest = Oldest();
    if (oldest == nullptr) return false;
    Remove(*oldest);
    ++eviction_count_;
  }
  return true;
}

bool PlanTable::Insert(std::unique_ptr<CachedPlan> plan) {
  DropRecord(plan->id, plan->key);  // it is older than the plan
  plan->charged_bytes = BytesOf(*plan);
  if (!MakeRoom(1, plan->charged_bytes)) return false;
  PlaceAsLatest(*plan);
  ++plan_count_;
  bytes_ += plan->charged_bytes;
  std::unique_ptr<CachedPlan>& slot = plans_[plan->id];
  plan->next = std::move(slot);
  slot = std::move(plan);
  return true;
}

void PlanTable::Recharge(CachedPlan& plan) {
  const int64_t more = BytesOf(plan) - plan.charged_bytes;
  plan.charged_bytes += more;
  bytes_ += more;
  if (plan.is_pinned) pinned_bytes_ += more;
  MakeRoom(0, 0);
}

absl::Status PlanTable::Pin(CachedPlan& plan) {
  if (plan.is_pinned) return absl::OkStatus();
  if (2 * (pinned_count_ + 1) > plan_limit_ ||
      2 * (pinned_bytes_ + plan.charged_bytes) > byte_limit_) {
    return ResourceExhausted(
        "PINS_FULL", "pinned plans take ", pinned_count_, " of ", plan_limit_,
        " places and ", pinned_bytes_, " of ", byte_limit_,
        " bytes of their part of the cache, wanted at most half");
  }
  Unplace(plan);
  plan.is_pinned = true;
  ++pinned_count_;
  pinned_bytes_ += plan.charged_bytes;
  return absl::OkStatus();
}

void PlanTable::Unpin(CachedPlan& plan) {
  if (!plan.is_pinned) return;
  plan.is_pinned = false;
  --pinned_count_;
  pinned_bytes_ -= plan.charged_bytes;
  PlaceAsLatest(plan);
}

void PlanTable::Remove(CachedPlan& plan) {
  if (plan.is_pinned) Unpin(plan);
  Unplace(plan);
  --plan_count_;
  bytes_ -= plan.charged_bytes;
  const auto found = plans_.find(plan.id);
  std::unique_ptr<CachedPlan>* slot = &found->second;
  while (slot->get() != &plan) slot = &(*slot)->next;
  // First out of the slot: `plan` goes with what held it.
  const std::unique_ptr<CachedPlan> removed = std::move(*slot);
  *slot = std::move(removed->next);
  if (found->second == nullptr) plans_.erase(found);
}

int64_t PlanTable::Clear(bool pinned_too) {
  for (const uint64_t id : RecordIds()) EraseRecord(id);
  record_order_.clear();
  const int64_t before = plan_count_;
  while (CachedPlan* const plan = Oldest()) Remove(*plan);
  if (pinned_too) {
    for (const uint64_t id : Ids()) {
      while (CachedPlan* const plan = Find(id)) Remove(*plan);
    }
  }
  return before - plan_count_;
}

bool PlanTable::AddRecord(uint64_t id, std::string record) {
  if (plans_.contains(id) || records_.contains(id)) return false;
  record.shrink_to_fit();
  const int64_t bytes = RecordBytes(record);
  while (bytes_ + bytes > byte_limit_) {
    if (records_.empty()) return false;
    DropOldestRecord();
  }
  bytes_ += bytes;
  records_.emplace(id, std::move(record));
  record_order_.push_back(id);
  return true;
}

void PlanTable::EraseRecord(uint64_t id) {
  const auto found = records_.find(id);
  bytes_ -= RecordBytes(found->second);
  records_.erase(found);
  if (record_order_.size() > 2 * records_.size() + 64) {
    std::erase_if(record_order_,
                  [this](uint64_t old) { return !records_.contains(old); });
  }
}

void PlanTable::DropOldestRecord() {
  while (!records_.contains(record_order_.front())) record_order_.pop_front();
  const uint64_t id = record_order_.front();
  record_order_.pop_front();
  EraseRecord(id);
}

std::string PlanTable::Record(uint64_t id) const {
  const auto found = records_.find(id);
  return found == records_.end() ? "" : found->second;
}

std::string PlanTable::Record(uint64_t id, absl::string_view key) const {
  const auto found = records_.find(id);
  if (found == records_.end() || KeyOfRecord(found->second) != key) return "";
  return found->second;
}

void PlanTable::DropRecord(uint64_t id, absl::string_view key) {
  const auto found = records_.find(id);
  if (found != records_.end() && KeyOfRecord(found->second) == key) {
    EraseRecord(id);
  }
}

std::vector<uint64_t> PlanTable::Ids() const {
  std::vector<uint64_t> ids;
  ids.reserve(plans_.size());
  for (const auto& [id, plan] : plans_) ids.push_back(id);
  return ids;
}

std::vector<uint64_t> PlanTable::RecordIds() const {
  std::vector<uint64_t> ids;
  ids.reserve(records_.size());
  for (const auto& [id, record] : records_) ids.push_back(id);
  return ids;
}

}  // namespace tensord::core
