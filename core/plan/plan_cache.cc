#include "core/plan/plan_cache.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"

namespace tensord::core {

PlanCache::PlanCache(int64_t entry_limit)
    : shard_limit_(std::max<int64_t>(
          1, (entry_limit + kShardCount - 1) / kShardCount)) {}

absl::StatusOr<PlanCache::Lookup> PlanCache::GetOrMake(
    const PlanKey& key, absl::FunctionRef<absl::StatusOr<Plan>()> make) {
  Shard& shard = shards_[absl::HashOf(key) % kShardCount];
  std::shared_ptr<Slot> slot;
  bool first = false;
  {
    absl::MutexLock lock(&shard.mutex);
    const auto [entry, inserted] = shard.entries.try_emplace(key);
    first = inserted;
    if (inserted) {
      entry->second.slot = std::make_shared<Slot>();
      shard.uses.push_front(&entry->first);
      entry->second.use = shard.uses.begin();
    } else {
      shard.uses.splice(shard.uses.begin(), shard.uses, entry->second.use);
    }
    slot = entry->second.slot;
    if (inserted && std::ssize(shard.entries) > shard_limit_) {
      // The new entry is the latest, so it is not the one that goes.
      const PlanKey* const oldest = shard.uses.back();
      shard.uses.pop_back();
      shard.entries.erase(*oldest);
      ++shard.statistics.eviction_count;
    }
  }
  if (first) {
    absl::StatusOr<Plan> made = make();
    absl::StatusOr<std::shared_ptr<const Plan>> plan =
        made.ok() ? absl::StatusOr<std::shared_ptr<const Plan>>(
                        std::make_shared<const Plan>(*std::move(made)))
                  : made.status();
    {
      absl::MutexLock lock(&slot->mutex);
      slot->plan = plan;
      slot->done = true;
    }
    absl::MutexLock lock(&shard.mutex);
    ++shard.statistics.miss_count;
    if (plan.ok()) return Lookup{*std::move(plan), false};
    const auto entry = shard.entries.find(key);
    if (entry != shard.entries.end() && entry->second.slot == slot) {
      shard.uses.erase(entry->second.use);
      shard.entries.erase(entry);
    }
    return plan.status();
  }
  bool waited = false;
  absl::StatusOr<std::shared_ptr<const Plan>> plan;
  {
    absl::MutexLock lock(&slot->mutex);
    waited = !slot->done;
    slot->mutex.Await(absl::Condition(&slot->done));
    plan = slot->plan;
  }
  absl::MutexLock lock(&shard.mutex);
  ++(waited || !plan.ok() ? shard.statistics.miss_count
                          : shard.statistics.hit_count);
  if (!plan.ok()) return plan.status();
  return Lookup{*std::move(plan), !waited};
}

std::shared_ptr<const Plan> PlanCache::Find(const PlanKey& key) {
  Shard& shard = shards_[absl::HashOf(key) % kShardCount];
  std::shared_ptr<Slot> slot;
  {
    absl::MutexLock lock(&shard.mutex);
    const auto entry = shard.entries.find(key);
    if (entry == shard.entries.end()) return nullptr;
    shard.uses.splice(shard.uses.begin(), shard.uses, entry->second.use);
    slot = entry->second.slot;
  }
  std::shared_ptr<const Plan> plan;
  {
    absl::MutexLock lock(&slot->mutex);
    if (!slot->done || !slot->plan.ok()) return nullptr;
    plan = *slot->plan;
  }
  absl::MutexLock lock(&shard.mutex);
  ++shard.statistics.hit_count;
  return plan;
}

PlanCacheStatistics PlanCache::statistics() const {
  PlanCacheStatistics sum;
  for (const Shard& shard : shards_) {
    absl::MutexLock lock(&shard.mutex);
    sum.entry_count += std::ssize(shard.entries);
    sum.hit_count += shard.statistics.hit_count;
    sum.miss_count += shard.statistics.miss_count;
    sum.eviction_count += shard.statistics.eviction_count;
  }
  return sum;
}

}  // namespace tensord::core
