#include "client/cli/cache_commands.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace tensord::cli {
namespace {

long long Wide(int64_t number) { return static_cast<long long>(number); }

std::string SelectionText(Selection selection) {
  switch (selection) {
    case Selection::kHeuristic: return "heuristic";
    case Selection::kMeasure: return "measure";
    case Selection::kIncremental: return "incremental";
  }
  return "?";
}

void PutState(const PlanCacheState& state, JsonWriter& json) {
  json.BeginObject();
  json.Field("entry_count", state.entry_count);
  json.Field("entry_limit", state.entry_limit);
  json.Field("record_count", state.record_count);
  json.Field("pinned_count", state.pinned_count);
  json.Field("bytes", state.bytes);
  json.Field("byte_limit", state.byte_limit);
  json.Field("hit_count", state.hit_count);
  json.Field("miss_count", state.miss_count);
  json.Field("eviction_count", state.eviction_count);
  json.Field("load_count", state.load_count);
  json.Key("load_errors");
  json.BeginObject();
  for (const auto& [reason, count] : state.load_errors) {
    json.Field(reason, count);
  }
  json.EndObject();
  json.Field("planning_seconds", absl::ToDoubleSeconds(state.planning));
  json.Field("saved_seconds", absl::ToDoubleSeconds(state.saved));
  json.Key("jobs");
  json.BeginArray();
  for (const PlanCacheJob& job : state.jobs) {
    json.BeginObject();
    json.Field("job", job.job);
    json.Field("hit_count", job.hit_count);
    json.Field("miss_count", job.miss_count);
    json.Field("planning_seconds", absl::ToDoubleSeconds(job.planning));
    json.Field("saved_seconds", absl::ToDoubleSeconds(job.saved));
    json.EndObject();
  }
  json.EndArray();
  json.Key("store");
  json.BeginObject();
  json.Field("path", state.store.path);
  json.Field("loaded_count", state.store.loaded_count);
  json.Field("saved_count", state.store.saved_count);
  json.Field("error", state.store.error);
  json.EndObject();
  json.Key("exchange");
  json.BeginObject();
  json.Field("address", state.exchange.address);
  json.Flag("is_connected", state.exchange.is_connected);
  json.Field("sent_count", state.exchange.sent_count);
  json.Field("received_count", state.exchange.received_count);
  json.Field("refused_count", state.exchange.refused_count);
  json.Field("error_count", state.exchange.error_count);
  json.Field("error", state.exchange.error);
  json.EndObject();
  json.EndObject();
}

void PrintStateText(const PlanCacheState& state) {
  std::printf(
      "entries   %lld of %lld, %lld pinned; %lld of snapshots not "
      "asked for yet\n",
      Wide(state.entry_count), Wide(state.entry_limit),
      Wide(state.pinned_count), Wide(state.record_count));
  std::printf("memory    %s of %s\n", BytesText(state.bytes).c_str(),
              BytesText(state.byte_limit).c_str());
  std::printf(
      "asked     %lld hits, %lld of them from snapshots, %lld misses, "
      "%lld evicted\n",
      Wide(state.hit_count), Wide(state.load_count), Wide(state.miss_count),
      Wide(state.eviction_count));
  std::printf("planning  %s spent, %s saved\n",
              DurationText(state.planning).c_str(),
              DurationText(state.saved).c_str());
  for (const auto& [reason, count] : state.load_errors) {
    std::printf("dropped   %lld of snapshots: %s\n", Wide(count),
                reason.c_str());
  }
  const PlanStoreState& store = state.store;
  if (!store.path.empty()) {
    std::printf("store     %s: %lld loaded, ", store.path.c_str(),
                Wide(store.loaded_count));
    if (store.saved_at == absl::InfinitePast()) {
      std::printf("not saved yet\n");
    } else {
      std::printf("%lld saved at %s\n", Wide(store.saved_count),
                  absl::FormatTime(store.saved_at).c_str());
    }
    if (!store.error.empty()) {
      std::printf("          %s\n", store.error.c_str());
    }
  }
  const PlanExchangeState& exchange = state.exchange;
  if (!exchange.address.empty()) {
    std::printf(
        "exchange  %s: %s, %lld sent, %lld received, %lld refused, "
        "%lld failures\n",
        exchange.address.c_str(),
        exchange.is_connected ? "connected" : "not connected",
        Wide(exchange.sent_count), Wide(exchange.received_count),
        Wide(exchange.refused_count), Wide(exchange.error_count));
    if (!exchange.error.empty()) {
      std::printf("          %s\n", exchange.error.c_str());
    }
  }
  if (state.jobs.empty()) return;
  std::printf("\n%-24s %10s %10s %12s %12s\n", "job", "hits", "misses",
              "planning", "saved");
  for (const PlanCacheJob& job : state.jobs) {
    std::printf("%-24s %10lld %10lld %12s %12s\n", job.job.c_str(),
                Wide(job.hit_count), Wide(job.miss_count),
                DurationText(job.planning).c_str(),
                DurationText(job.saved).c_str());
  }
}

void PutEntry(const PlanCacheEntry& entry, JsonWriter& json) {
  json.BeginObject();
  json.Field("id", entry.id);
  json.Field("problem", entry.problem);
  json.Field("device", entry.device);
  json.Field("kernel", entry.kernel);
  json.Field("workspace_bytes", entry.workspace_bytes);
  json.Field("selection", SelectionText(entry.selection));
  json.Field("source", ToString(entry.source));
  json.Flag("is_pinned", entry.is_pinned);
  json.Field("hit_count", entry.hit_count);
  json.Field("planning_seconds", absl::ToDoubleSeconds(entry.planning));
  json.Field("saved_seconds", absl::ToDoubleSeconds(entry.saved));
  json.Field("last_used", absl::FormatTime(absl::RFC3339_sec, entry.last_used,
                                           absl::UTCTimeZone()));
  json.Field("bytes", entry.bytes);
  json.Field("predicted_nanoseconds", entry.predicted_nanoseconds);
  json.Field("measured_nanoseconds", entry.measured_nanoseconds);
  json.Field("sample_count", int64_t{entry.sample_count});
  json.Field("wanted_sample_count", int64_t{entry.wanted_sample_count});
  json.EndObject();
}

void PrintEntryText(const PlanCacheEntry& entry) {
  const auto time = [](double nanoseconds) {
    return nanoseconds > 0 ? DurationText(absl::Nanoseconds(nanoseconds))
                           : std::string("-");
  };
  std::string selection = SelectionText(entry.selection);
  if (entry.sample_count < entry.wanted_sample_count) {
    absl::StrAppend(&selection, " ", entry.sample_count, "/",
                    entry.wanted_sample_count);
  }
  std::printf("%s %8lld %10s %10s  %-17s %-8s%s %-28s %s\n", entry.id.c_str(),
              Wide(entry.hit_count), time(entry.predicted_nanoseconds).c_str(),
              time(entry.measured_nanoseconds).c_str(), selection.c_str(),
              std::string(ToString(entry.source)).c_str(),
              entry.is_pinned ? "*" : " ", entry.kernel.c_str(),
              entry.problem.c_str());
}

/// A file that is there as a whole or not at all.
absl::Status Failed(const char* what, const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

}  // namespace

int PrintCacheState(const PlanCache& cache, bool json) {
  const absl::StatusOr<PlanCacheState> state = cache.State();
  if (!state.ok()) return Fail(state.status());
  if (!json) {
    PrintStateText(*state);
    return kOk;
  }
  JsonWriter writer;
  PutState(*state, writer);
  std::printf("%s\n", writer.text().c_str());
  return kOk;
}

int PrintCacheEntries(const PlanCache& cache, int count, bool json) {
  absl::StatusOr<std::vector<PlanCacheEntry>> entries =
      cache.Entries(/*by_hits=*/true);
  if (!entries.ok()) return Fail(entries.status());
  const size_t all = entries->size();
  entries->resize(std::min(all, static_cast<size_t>(count)));
  if (json) {
    JsonWriter writer;
    writer.BeginArray();
    for (const PlanCacheEntry& entry : *entries) PutEntry(entry, writer);
    writer.EndArray();
    std::printf("%s\n", writer.text().c_str());
    return kOk;
  }
  std::printf("%-16s %8s %10s %10s  %-17s %-9s %-28s %s\n", "id", "hits",
              "predicted", "measured", "selection", "source", "kernel",
              "problem");
  for (const PlanCacheEntry& entry : *entries) PrintEntryText(entry);
  if (entries->size() < all) {
    std::printf("... %zu more\n", all - entries->size());
  }
  return kOk;
}

int ChangeCacheEntry(const PlanCache& cache, const std::string& verb,
                     const std::string& id) {
  const absl::Status status = verb == "pin"     ? cache.Pin(id)
                              : verb == "unpin" ? cache.Unpin(id)
                                                : cache.Remove(id);
  return status.ok() ? kOk : Fail(status);
}

int ClearCache(const PlanCache& cache, bool pinned_too) {
  const absl::StatusOr<int64_t> removed = cache.Clear(pinned_too);
  if (!removed.ok()) return Fail(removed.status());
  std::printf("removed %lld entries\n", Wide(*removed));
  return kOk;
}

int DumpCache(const PlanCache& cache, const std::string& path) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  if (!file) return Fail(Failed("write", part));
  int64_t bytes = 0;
  absl::Status status = cache.Dump([&](std::string_view data) {
    bytes += static_cast<int64_t>(data.size());
    file.write(data.data(), static_cast<std::streamsize>(data.size()));
    return file ? absl::OkStatus() : Failed("write", part);
  });
  file.close();
  if (status.ok() && !file) status = Failed("write", part);
  if (status.ok() && std::rename(part.c_str(), path.c_str()) != 0) {
    status = Failed("write", path);
  }
  if (!status.ok()) {
    std::remove(part.c_str());
    return Fail(status);
  }
  std::printf("wrote %s to %s\n", BytesText(bytes).c_str(), path.c_str());
  return kOk;
}

int LoadCache(const PlanCache& cache, const std::string& path,
              bool problems_only) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(Failed("read", path));
  const std::string snapshot{std::istreambuf_iterator<char>(file), {}};
  const absl::StatusOr<LoadedPlans> loaded =
      cache.Load(snapshot, problems_only);
  if (!loaded.ok()) return Fail(loaded.status());
  std::printf("%lld of %lld entries taken in, written by %s\n",
              Wide(loaded->taken_count), Wide(loaded->entry_count),
              loaded->writer.c_str());
  return kOk;
}

}  // namespace tensord::cli
