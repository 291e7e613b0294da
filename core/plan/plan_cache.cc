#include "core/plan/plan_cache.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/plan_record.h"

namespace tensord::core {
namespace {

constexpr int64_t kMostShards = 16;
// Below these a shard of its own would make the limits coarse.
constexpr int64_t kLeastShardEntries = 64;
constexpr int64_t kLeastShardBytes = 1 << 20;

uint64_t ShardCount(const PlanCacheOptions& options) {
  const int64_t most =
      std::min({kMostShards, options.entry_limit / kLeastShardEntries,
                options.byte_limit / kLeastShardBytes});
  return std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, 1)));
}

bool IsTuned(const PlanKey& key) {
  return key.selection == Selection::kIncremental && !key.deterministic;
}

/// Ends the tuning of `entry` when nobody is left to be tried.
void FinishTuning(CachedPlan& entry) {
  const Tuning& tuning = entry.tuning->tuning;
  if (!tuning.is_complete()) return;
  const std::optional<size_t> choice =
      tuning.Choice(tuning.Find(entry.plan->kernel_name()));
  Plan plan = choice ? *entry.tuning->plans[*choice] : *entry.plan;
  plan.selection = Selection::kIncremental;
  if (choice) plan.measured_nanoseconds = *tuning.MeasuredNanoseconds(*choice);
  entry.plan = std::make_shared<const Plan>(std::move(plan));
  entry.source = PlanSource::kMeasured;
  entry.times = tuning.Times();
  entry.tuning.reset();
}

/// Ends the tuning of `entry` with what another process has measured, if that
/// has ended its own. Returns whether it did.
bool TakeOverTuning(CachedPlan& entry, absl::string_view bytes) {
  if (entry.tuning == nullptr) return false;
  const absl::StatusOr<PlanRecord> record = DecodePlanRecord(bytes);
  if (!record.ok() || record->selection != Selection::kIncremental) {
    return false;
  }
  const std::span<const TuningCandidate> candidates =
      entry.tuning->tuning.candidates();
  Tuning ended({candidates.begin(), candidates.end()});
  ended.Restore(record->times);
  if (!ended.is_complete()) return false;
  entry.tuning->tuning = std::move(ended);
  FinishTuning(entry);
  entry.source = PlanSource::kLoaded;
  return true;
}

/// Whether an entry waits for a tuning of which nothing is known.
bool IsUntried(const CachedPlan& entry) {
  if (entry.is_pinned || entry.tuning != nullptr || !entry.times.empty() ||
      entry.plan->selection != Selection::kHeuristic ||
      entry.plan->kernel_name().empty()) {
    return false;
  }
  const absl::StatusOr<PlanKey> key = DecodePlanKey(entry.key);
  return key.ok() && IsTuned(*key);
}

/// Whether a record has the key of another one and a choice that is due to more
/// measurements.
bool KnowsMore(absl::string_view bytes, absl::string_view other_bytes) {
  if (KeyOfRecord(bytes) != KeyOfRecord(other_bytes)) return false;
  const auto knowledge = [](const PlanRecord& record) {
    size_t samples = 0;
    for (const KernelTimes& kernel : record.times) {
      samples += kernel.nanoseconds.size();
    }
    return std::pair(record.selection != Selection::kHeuristic, samples);
  };
  const absl::StatusOr<PlanRecord> record = DecodePlanRecord(bytes);
  const absl::StatusOr<PlanRecord> other = DecodePlanRecord(other_bytes);
  return record.ok() && (!other.ok() || knowledge(*record) > knowledge(*other));
}

PlanEntry EntryOf(const CachedPlan& plan) {
  PlanEntry entry{
      .id = plan.id,
      .key = plan.key,
      .plan = plan.plan,
      .source = plan.source,
      .is_pinned = plan.is_pinned,
      .hit_count = plan.hit_count.load(std::memory_order_relaxed),
      .planning_nanoseconds = plan.planning_nanoseconds,
      .saved_nanoseconds = plan.saved_nanoseconds(),
      .last_used = absl::FromUnixNanos(
          plan.last_used_nanoseconds.load(std::memory_order_relaxed)),
      .bytes = plan.charged_bytes,
      .times = plan.times};
  if (plan.tuning != nullptr) {
    entry.sample_count = plan.tuning->tuning.sample_count();
    entry.wanted_sample_count = plan.tuning->tuning.wanted_sample_count();
    entry.times = plan.tuning->tuning.Times();
  }
  return entry;
}

std::vector<PlanEntry> EntriesOf(const PlanTable& table, uint64_t id) {
  std::vector<PlanEntry> entries;
  for (const CachedPlan* plan = table.Find(id); plan != nullptr;
       plan = plan->next.get()) {
    entries.push_back(EntryOf(*plan));
  }
  return entries;
}

PlanRecord RecordOf(PlanEntry entry) {
  const Plan& plan = *entry.plan;
  return {.key = std::move(entry.key),
          .kernel = std::string(plan.kernel_name()),
          .kernel_version = plan.kernel_version(),
          .selection = plan.selection,
          .predicted_nanoseconds = plan.predicted_nanoseconds(),
          .measured_nanoseconds = plan.measured_nanoseconds,
          .planning_nanoseconds = entry.planning_nanoseconds,
          .times = std::move(entry.times)};
}

/// An entry in the order of a list.
struct Rank {
  int64_t hits = 0;  // 0 in the order of ids
  uint64_t id = 0;

  bool operator<(const Rank& other) const {
    return hits != other.hits ? hits > other.hits : id < other.id;
  }
};

// "hits-id", both as PlanIdText() has them.
std::string TokenOf(const Rank& rank) {
  return absl::StrCat(PlanIdText(static_cast<uint64_t>(rank.hits)), "-",
                      PlanIdText(rank.id));
}

absl::StatusOr<Rank> RankOf(absl::string_view token) {
  const auto hits = PlanIdFromText(token.substr(0, 16));
  const auto id = PlanIdFromText(token.size() == 33 ? token.substr(17) : "");
  if (!hits || !id || token[16] != '-') {
    return InvalidArgument("PAGE_TOKEN_MALFORMED", "page token '", token,
                           "' is not one that a page before has given");
  }
  return Rank{static_cast<int64_t>(*hits), *id};
}

absl::Status NoEntry(uint64_t id) {
  return NotFound("PLAN_NOT_FOUND", "there is no plan '", PlanIdText(id),
                  "' in the cache");
}

}  // namespace

/// What came of a miss.
struct PlanCache::Made {
  /// Null: nothing was made, and nobody wanted it to be.
  absl::StatusOr<std::shared_ptr<const Plan>> plan;
  PlanSource source = PlanSource::kPlanned;
  int64_t planning_nanoseconds = 0;  // now, or then when it was loaded
  std::vector<KernelTimes> times;
  std::string load_error;  // reason
};

PlanCache::PlanCache(const PlanCacheOptions& options)
    : options_(options), jobs_(options.job_limit) {
  const uint64_t count = ShardCount(options);
  for (uint64_t i = 0; i < count; ++i) {
    shards_.push_back(std::make_unique<Shard>(
        CeilDivide(options.entry_limit, static_cast<int64_t>(count)),
        options.byte_limit / static_cast<int64_t>(count)));
  }
}

PlanCache::Shard& PlanCache::ShardOf(uint64_t id) const {
  return *shards_[id >> 32 & (shards_.size() - 1)];
}

PlanCache::Place PlanCache::PlaceOf(const EncodedPlanKey& key) const {
  const uint64_t id = options_.id_of(key.bytes());
  return {key.bytes(), id, ShardOf(id)};
}

absl::StatusOr<PlanCache::Lookup> PlanCache::GetOrMake(const PlanKey& key,
                                                       Make make,
                                                       const PlanAsker& asker) {
  return Serve(key, &make, /*waits=*/true, asker);
}

absl::StatusOr<PlanCache::Lookup> PlanCache::GetOrTryToMake(
    const PlanKey& key, Make make, const PlanAsker& asker) {
  return Serve(key, &make, /*waits=*/false, asker);
}

std::shared_ptr<const Plan> PlanCache::Find(const PlanKey& key,
                                            const PlanAsker& asker) {
  const absl::StatusOr<Lookup> found =
      Serve(key, nullptr, /*waits=*/false, asker);
  return found.ok() ? found->plan : nullptr;
}

absl::StatusOr<PlanCache::Lookup> PlanCache::Serve(const PlanKey& key,
                                                   const Make* make, bool waits,
                                                   const PlanAsker& asker) {
  const EncodedPlanKey encoded(key);
  const Place at = PlaceOf(encoded);
  while (true) {
    if (std::optional<Lookup> hit = Hit(at, asker.job)) return *std::move(hit);
    std::shared_ptr<Flight> flight;
    std::string record;
    bool leads = false;
    {
      absl::MutexLock lock(&at.shard.mutex);
      // It may have come since; then the next turn finds it.
      if (at.shard.plans.Find(at.id, at.key) != nullptr) continue;
      const auto other = at.shard.flights.find(at.key);
      if (other != at.shard.flights.end()) {
        if (!waits) return Lookup{};
        flight = other->second;
      } else {
        if (asker.backend != nullptr) {
          // It stays until it is settled: Export() misses nothing.
          record = at.shard.plans.Record(at.id, at.key);
        }
        if (make == nullptr && record.empty()) return Lookup{};
        flight = std::make_shared<Flight>();
        at.shard.flights.emplace(at.key, flight);
        leads = true;
      }
    }
    if (leads) {
      return Settle(at, *flight, MakeNow(key, record, make, asker), asker.job);
    }
    absl::StatusOr<std::shared_ptr<const Plan>> plan;
    {
      absl::MutexLock lock(&flight->mutex);
      flight->mutex.Await(absl::Condition(&flight->done));
      plan = flight->plan;
    }
    if (plan.ok() && *plan == nullptr) continue;
    jobs_.Add(asker.job, {.miss_count = 1});
    if (!plan.ok()) return plan.status();
    return Lookup{*std::move(plan), false};
  }
}

std::optional<PlanCache::Lookup> PlanCache::Hit(const Place& at,
                                                absl::string_view job) {
  const int64_t now = absl::GetCurrentTimeNanos();
  std::shared_ptr<const Plan> plan;
  int64_t saved = 0;
  {
    absl::ReaderMutexLock lock(&at.shard.mutex);
    const CachedPlan* const entry =
        std::as_const(at.shard.plans).Find(at.id, at.key);
    if (entry == nullptr) return std::nullopt;
    entry->Hit(now);
    plan = entry->plan;
    saved = entry->planning_nanoseconds;
  }
  jobs_.Add(job, {.hit_count = 1, .saved_nanoseconds = saved});
  return Lookup{std::move(plan), true};
}

PlanCache::Made PlanCache::MakeNow(const PlanKey& key,
                                   const std::string& record, const Make* make,
                                   const PlanAsker& asker) const {
  Made made{.plan = nullptr};
  if (!record.empty()) {
    absl::StatusOr<PlanRecord> kept = DecodePlanRecord(record);
    absl::StatusOr<Plan> resolved =
        kept.ok() ? Resolve(*asker.backend, *kept, key) : kept.status();
    if (resolved.ok()) {
      made.plan = std::make_shared<const Plan>(*std::move(resolved));
      made.source = PlanSource::kLoaded;
      made.planning_nanoseconds = kept->planning_nanoseconds;
      made.times = std::move(kept->times);
      return made;
    }
    made.load_error = ReasonOf(resolved.status());
  }
  if (make == nullptr) return made;
  const int64_t start = absl::GetCurrentTimeNanos();
  absl::StatusOr<Plan> plan = (*make)();
  made.planning_nanoseconds =
      std::max<int64_t>(absl::GetCurrentTimeNanos() - start, 0);
  if (!plan.ok()) {
    made.plan = plan.status();
    return made;
  }
  made.source = plan->selection == Selection::kHeuristic
                    ? PlanSource::kPlanned
                    : PlanSource::kMeasured;
  made.plan = std::make_shared<const Plan>(*std::move(plan));
  return made;
}

absl::StatusOr<PlanCache::Lookup> PlanCache::Settle(const Place& at,
                                                    Flight& flight, Made made,
                                                    absl::string_view job) {
  const bool is_plan = made.plan.ok() && *made.plan != nullptr;
  const bool is_loaded = made.source == PlanSource::kLoaded;
  {
    absl::MutexLock lock(&at.shard.mutex);
    at.shard.flights.erase(at.key);
    if (!made.load_error.empty()) {
      ++at.shard.load_errors[made.load_error];
      at.shard.plans.DropRecord(at.id, at.key);
    }
    if (is_loaded) ++at.shard.load_count;
    if (is_plan) {
      auto entry = std::make_unique<CachedPlan>();
      entry->id = at.id;
      entry->key = std::string(at.key);
      entry->plan = *made.plan;
      entry->source = made.source;
      entry->hit_count = is_loaded ? 1 : 0;
      entry->last_used_nanoseconds = absl::GetCurrentTimeNanos();
      entry->planning_nanoseconds = made.planning_nanoseconds;
      entry->times = std::move(made.times);
      at.shard.plans.Insert(std::move(entry));
    }
  }
  if (is_loaded) {
    jobs_.Add(job,
              {.hit_count = 1, .saved_nanoseconds = made.planning_nanoseconds});
  } else if (is_plan || !made.plan.ok()) {
    jobs_.Add(job, {.miss_count = 1,
                    .planning_nanoseconds = made.planning_nanoseconds});
  }
  {
    absl::MutexLock lock(&flight.mutex);
    flight.plan = made.plan;
    flight.done = true;
  }
  if (!made.plan.ok()) return made.plan.status();
  return Lookup{*std::move(made.plan), is_loaded};
}

std::shared_ptr<const Plan> PlanCache::NextToTry(
    const PlanKey& key, absl::FunctionRef<std::vector<Plan>()> candidates) {
  if (!IsTuned(key)) return nullptr;
  const EncodedPlanKey encoded(key);
  const Place at = PlaceOf(encoded);
  const auto next = [&](CachedPlan& entry) -> std::shared_ptr<const Plan> {
    const std::optional<size_t> candidate = entry.tuning->tuning.NextToTry();
    return candidate ? entry.tuning->plans[*candidate] : nullptr;
  };
  // The entry to be tuned, or null.
  const auto find = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(at.shard.mutex) {
    CachedPlan* const entry = at.shard.plans.Find(at.id, at.key);
    return entry == nullptr || entry->plan->kernel_name().empty() ||
                   entry->plan->selection == Selection::kIncremental
               ? nullptr
               : entry;
  };
  {
    absl::MutexLock lock(&at.shard.mutex);
    CachedPlan* const entry = find();
    if (entry == nullptr) return nullptr;
    if (entry->tuning != nullptr) return next(*entry);
  }
  std::vector<TuningCandidate> described;
  std::vector<std::shared_ptr<const Plan>> plans;
  for (Plan& plan : candidates()) {
    plan.selection = Selection::kIncremental;
    described.push_back({std::string(plan.kernel_name()), plan.kernel_version(),
                         plan.predicted_nanoseconds()});
    plans.push_back(std::make_shared<const Plan>(std::move(plan)));
  }
  absl::MutexLock lock(&at.shard.mutex);
  CachedPlan* const entry = find();
  if (entry == nullptr || plans.empty()) return nullptr;
  if (entry->tuning == nullptr) {
    entry->tuning = std::make_unique<PlanTuning>(
        PlanTuning{Tuning(std::move(described)), std::move(plans)});
    entry->tuning->tuning.Restore(entry->times);
    entry->times.clear();
    FinishTuning(*entry);
  }
  std::shared_ptr<const Plan> plan =
      entry->tuning != nullptr ? next(*entry) : nullptr;
  at.shard.plans.Recharge(*entry);
  return plan;
}

void PlanCache::AddTime(const PlanKey& key, absl::string_view kernel,
                        const double* nanoseconds) {
  const EncodedPlanKey encoded(key);
  const Place at = PlaceOf(encoded);
  absl::MutexLock lock(&at.shard.mutex);
  CachedPlan* const entry = at.shard.plans.Find(at.id, at.key);
  if (entry == nullptr || entry->tuning == nullptr) return;
  Tuning& tuning = entry->tuning->tuning;
  const std::optional<size_t> candidate = tuning.Find(kernel);
  if (!candidate) return;
  if (nanoseconds != nullptr) {
    tuning.AddSample(*candidate, *nanoseconds);
  } else {
    tuning.AddFailure(*candidate);
  }
  FinishTuning(*entry);
  at.shard.plans.Recharge(*entry);
}

void PlanCache::AddSample(const PlanKey& key, absl::string_view kernel,
                          double nanoseconds) {
  if (std::isfinite(nanoseconds) && nanoseconds >= 0) {
    AddTime(key, kernel, &nanoseconds);
  }
}

void PlanCache::AddFailure(const PlanKey& key, absl::string_view kernel) {
  AddTime(key, kernel, nullptr);
}

absl::StatusOr<PlanPage> PlanCache::List(const PlanListQuery& query) const {
  std::optional<Rank> after;
  if (!query.page_token.empty()) {
    TENSORD_ASSIGN_OR_RETURN(after, RankOf(query.page_token));
  }
  std::vector<Rank> ranks;
  for (const auto& shard : shards_) {
    absl::ReaderMutexLock lock(&shard->mutex);
    for (const uint64_t id : shard->plans.Ids()) {
      Rank rank{.id = id};
      if (query.order == PlanOrder::kHits) {
        for (const CachedPlan* plan = std::as_const(shard->plans).Find(id);
             plan != nullptr; plan = plan->next.get()) {
          rank.hits += plan->hit_count.load(std::memory_order_relaxed);
        }
      }
      if (!after || *after < rank) ranks.push_back(rank);
    }
  }
  const size_t count = std::min(
      ranks.size(), static_cast<size_t>(std::max<int64_t>(query.page_size, 1)));
  std::partial_sort(ranks.begin(), ranks.begin() + count, ranks.end());
  PlanPage page;
  for (size_t i = 0; i < count; ++i) {
    for (PlanEntry& entry : FindById(ranks[i].id)) {
      page.entries.push_back(std::move(entry));
    }
  }
  if (count < ranks.size()) page.next_page_token = TokenOf(ranks[count - 1]);
  return page;
}

std::vector<PlanEntry> PlanCache::FindById(uint64_t id) const {
  const Shard& shard = ShardOf(id);
  absl::ReaderMutexLock lock(&shard.mutex);
  return EntriesOf(shard.plans, id);
}

absl::Status PlanCache::Pin(uint64_t id) {
  Shard& shard = ShardOf(id);
  absl::MutexLock lock(&shard.mutex);
  CachedPlan* plan = shard.plans.Find(id);
  if (plan == nullptr) return NoEntry(id);
  for (; plan != nullptr; plan = plan->next.get()) {
    TENSORD_RETURN_IF_ERROR(shard.plans.Pin(*plan));
  }
  return absl::OkStatus();
}

absl::Status PlanCache::Unpin(uint64_t id) {
  Shard& shard = ShardOf(id);
  absl::MutexLock lock(&shard.mutex);
  CachedPlan* plan = shard.plans.Find(id);
  if (plan == nullptr) return NoEntry(id);
  for (; plan != nullptr; plan = plan->next.get()) shard.plans.Unpin(*plan);
  return absl::OkStatus();
}

absl::Status PlanCache::Remove(uint64_t id) {
  Shard& shard = ShardOf(id);
  absl::MutexLock lock(&shard.mutex);
  if (shard.plans.Find(id) == nullptr) return NoEntry(id);
  while (CachedPlan* const plan = shard.plans.Find(id)) {
    shard.plans.Remove(*plan);
  }
  return absl::OkStatus();
}

int64_t PlanCache::Clear(bool pinned_too) {
  int64_t removed = 0;
  for (const auto& shard : shards_) {
    absl::MutexLock lock(&shard->mutex);
    removed += shard->plans.Clear(pinned_too);
  }
  return removed;
}

bool PlanCache::AddRecord(std::string record) {
  const absl::string_view key = KeyOfRecord(record);
  if (key.empty() || record.size() > kMaxRecordBytes) return false;
  const uint64_t id = options_.id_of(key);
  Shard& shard = ShardOf(id);
  absl::MutexLock lock(&shard.mutex);
  if (CachedPlan* const entry = shard.plans.Find(id, key)) {
    if (TakeOverTuning(*entry, record)) {
      shard.plans.Recharge(*entry);
      return true;
    }
    if (!IsUntried(*entry)) return false;
    const absl::StatusOr<PlanRecord> known = DecodePlanRecord(record);
    if (!known.ok() || known->selection != Selection::kIncremental) {
      return false;
    }
    // Whoever asks next resolves it.
    shard.plans.Remove(*entry);
  }
  const std::string waiting = shard.plans.Record(id, key);
  if (!waiting.empty() && KnowsMore(record, waiting)) {
    shard.plans.DropRecord(id, key);
  }
  return shard.plans.AddRecord(id, std::move(record));
}

void PlanCache::Export(
    absl::FunctionRef<void(absl::string_view record)> visit) const {
  for (const auto& shard : shards_) {
    absl::flat_hash_set<uint64_t> ids;
    {
      absl::ReaderMutexLock lock(&shard->mutex);
      for (const uint64_t id : shard->plans.Ids()) ids.insert(id);
      for (const uint64_t id : shard->plans.RecordIds()) ids.insert(id);
    }
    for (const uint64_t id : ids) {
      // Together, as a record may become a plan meanwhile, and a plan a record.
      std::vector<PlanEntry> entries;
      std::string record;
      {
        absl::ReaderMutexLock lock(&shard->mutex);
        entries = EntriesOf(shard->plans, id);
        record = shard->plans.Record(id);
      }
      for (PlanEntry& entry : entries) {
        visit(EncodePlanRecord(RecordOf(std::move(entry))));
      }
      if (!record.empty()) visit(record);
    }
  }
}

PlanCacheStatistics PlanCache::statistics() const {
  PlanCacheStatistics sum;
  for (const auto& shard : shards_) {
    absl::ReaderMutexLock lock(&shard->mutex);
    sum.entry_count += shard->plans.plan_count();
    sum.eviction_count += shard->plans.eviction_count();
    sum.pinned_count += shard->plans.pinned_count();
    sum.record_count += shard->plans.record_count();
    sum.bytes += shard->plans.bytes();
    sum.load_count += shard->load_count;
    for (const auto& [reason, count] : shard->load_errors) {
      sum.load_errors[reason] += count;
    }
  }
  const PlanJobStatistics counts = jobs_.Sum();
  sum.hit_count = counts.hit_count;
  sum.miss_count = counts.miss_count;
  sum.planning_nanoseconds = counts.planning_nanoseconds;
  sum.saved_nanoseconds = counts.saved_nanoseconds;
  return sum;
}

}  // namespace tensord::core
