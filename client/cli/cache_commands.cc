// cache: what the server has learned about kernels.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/options.h"
#include "client/cli/text.h"
#include "tensord/plan_cache.h"

namespace tensord::cli {
namespace {

std::string SelectionText(Selection selection) {
  switch (selection) {
    case Selection::kHeuristic: return "heuristic";
    case Selection::kMeasure: return "measure";
    case Selection::kIncremental: return "incremental";
  }
  return "?";
}

Json JobJson(const PlanCacheJob& job) {
  return {{"job", job.job},
          {"hit_count", job.hit_count},
          {"miss_count", job.miss_count},
          {"planning_seconds", JsonSeconds(job.planning)},
          {"saved_seconds", JsonSeconds(job.saved)}};
}

Json StateJson(const PlanCacheState& state) {
  const PlanStoreState& store = state.store;
  const PlanExchangeState& exchange = state.exchange;
  return {{"entry_count", state.entry_count},
          {"entry_limit", state.entry_limit},
          {"record_count", state.record_count},
          {"pinned_count", state.pinned_count},
          {"bytes", state.bytes},
          {"byte_limit", state.byte_limit},
          {"hit_count", state.hit_count},
          {"miss_count", state.miss_count},
          {"eviction_count", state.eviction_count},
          {"load_count", state.load_count},
          {"load_errors", state.load_errors},
          {"planning_seconds", JsonSeconds(state.planning)},
          {"saved_seconds", JsonSeconds(state.saved)},
          {"jobs", JsonList(state.jobs, JobJson)},
          {"store",
           {{"path", store.path},
            {"loaded_count", store.loaded_count},
            {"saved_count", store.saved_count},
            {"error", store.error}}},
          {"exchange",
           {{"address", exchange.address},
            {"is_connected", exchange.is_connected},
            {"sent_count", exchange.sent_count},
            {"received_count", exchange.received_count},
            {"refused_count", exchange.refused_count},
            {"error_count", exchange.error_count},
            {"error", exchange.error}}}};
}

void PrintStateText(const PlanCacheState& state) {
  absl::PrintF(
      "entries   %d of %d, %d pinned; %d of snapshots not "
      "asked for yet\n",
      state.entry_count, state.entry_limit, state.pinned_count,
      state.record_count);
  absl::PrintF("memory    %s of %s\n", BytesText(state.bytes),
               BytesText(state.byte_limit));
  absl::PrintF(
      "asked     %d hits, %d of them from snapshots, %d misses, "
      "%d evicted\n",
      state.hit_count, state.load_count, state.miss_count,
      state.eviction_count);
  absl::PrintF("planning  %s spent, %s saved\n", DurationText(state.planning),
               DurationText(state.saved));
  for (const auto& [reason, count] : state.load_errors) {
    absl::PrintF("dropped   %d of snapshots: %s\n", count, reason);
  }
  const PlanStoreState& store = state.store;
  if (!store.path.empty()) {
    absl::PrintF("store     %s: %d loaded, ", store.path, store.loaded_count);
    if (store.saved_at == absl::InfinitePast()) {
      absl::PrintF("not saved yet\n");
    } else {
      absl::PrintF("%d saved at %s\n", store.saved_count,
                   absl::FormatTime(store.saved_at));
    }
    if (!store.error.empty()) {
      absl::PrintF("          %s\n", store.error);
    }
  }
  const PlanExchangeState& exchange = state.exchange;
  if (!exchange.address.empty()) {
    absl::PrintF(
        "exchange  %s: %s, %d sent, %d received, %d refused, "
        "%d failures\n",
        exchange.address, exchange.is_connected ? "connected" : "not connected",
        exchange.sent_count, exchange.received_count, exchange.refused_count,
        exchange.error_count);
    if (!exchange.error.empty()) {
      absl::PrintF("          %s\n", exchange.error);
    }
  }
  if (state.jobs.empty()) return;
  absl::PrintF("\n%-24s %10s %10s %12s %12s\n", "job", "hits", "misses",
               "planning", "saved");
  for (const PlanCacheJob& job : state.jobs) {
    absl::PrintF("%-24s %10d %10d %12s %12s\n",
                 job.job.empty() ? "(none)" : job.job, job.hit_count,
                 job.miss_count, DurationText(job.planning),
                 DurationText(job.saved));
  }
}

Json EntryJson(const PlanCacheEntry& entry) {
  return {{"id", entry.id},
          {"problem", entry.problem},
          {"device", entry.device},
          {"kernel", entry.kernel},
          {"workspace_bytes", entry.workspace_bytes},
          {"selection", SelectionText(entry.selection)},
          {"source", ToString(entry.source)},
          {"is_pinned", entry.is_pinned},
          {"hit_count", entry.hit_count},
          {"planning_seconds", JsonSeconds(entry.planning)},
          {"saved_seconds", JsonSeconds(entry.saved)},
          {"last_used", absl::FormatTime(absl::RFC3339_sec, entry.last_used,
                                         absl::UTCTimeZone())},
          {"bytes", entry.bytes},
          {"predicted_nanoseconds", JsonNumber(entry.predicted_nanoseconds)},
          {"measured_nanoseconds", JsonNumber(entry.measured_nanoseconds)},
          {"sample_count", entry.sample_count},
          {"wanted_sample_count", entry.wanted_sample_count}};
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
  absl::PrintF("%s %8d %10s %10s  %-17s %-8s%s %-28s %s\n", entry.id,
               entry.hit_count, time(entry.predicted_nanoseconds),
               time(entry.measured_nanoseconds), selection,
               ToString(entry.source), entry.is_pinned ? "*" : " ",
               entry.kernel, entry.problem);
}

/// What the commands are told.
struct Arguments {
  bool json = false;
  int entry_count = 20;
  std::string id;  // of an entry
  std::string file;
  bool pinned_too = false;
  bool problems_only = false;
};

absl::Status Failed(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

int PrintState(const PlanCache& cache, const Arguments& arguments) {
  return PrintAs(cache.State(), arguments.json, StateJson, PrintStateText);
}

int PrintEntries(const PlanCache& cache, const Arguments& arguments) {
  using Entries = std::vector<PlanCacheEntry>;
  absl::StatusOr<Entries> entries = cache.Entries(/*by_hits=*/true);
  const size_t all = entries.ok() ? entries->size() : 0;
  if (entries.ok())
    entries->resize(std::min(all, static_cast<size_t>(arguments.entry_count)));
  const auto to_json = [](const Entries& shown) {
    return JsonList(shown, EntryJson);
  };
  const auto print = [all](const Entries& shown) {
    absl::PrintF("%-16s %8s %10s %10s  %-17s %-9s %-28s %s\n", "id", "hits",
                 "predicted", "measured", "selection", "source", "kernel",
                 "problem");
    for (const PlanCacheEntry& entry : shown) PrintEntryText(entry);
    if (shown.size() < all) absl::PrintF("... %d more\n", all - shown.size());
  };
  return PrintAs(entries, arguments.json, to_json, print);
}

int Clear(const PlanCache& cache, const Arguments& arguments) {
  const absl::StatusOr<int64_t> removed = cache.Clear(arguments.pinned_too);
  if (!removed.ok()) return Fail(removed.status());
  absl::PrintF("removed %d entries\n", *removed);
  return kOk;
}

/// Writes a snapshot to a file, which appears when it is whole.
int Dump(const PlanCache& cache, const Arguments& arguments) {
  const std::string& path = arguments.file;
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
  absl::PrintF("wrote %s to %s\n", BytesText(bytes), path);
  return kOk;
}

int Load(const PlanCache& cache, const Arguments& arguments) {
  const std::string& path = arguments.file;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(Failed("read", path));
  const std::string snapshot{std::istreambuf_iterator<char>(file), {}};
  const absl::StatusOr<LoadedPlans> loaded =
      cache.Load(snapshot, arguments.problems_only);
  if (!loaded.ok()) return Fail(loaded.status());
  absl::PrintF("%d of %d entries taken in, written by %s\n",
               loaded->taken_count, loaded->entry_count, loaded->writer);
  return kOk;
}

}  // namespace

void AddCacheCommands(CLI::App& app, CommandLine& line) {
  CLI::App* cache = app.add_subcommand(
      "cache", "Show and keep what the server has learned about kernels");
  cache->require_subcommand(1);
  const auto arguments = std::make_shared<Arguments>();
  const auto add = [&](const char* name, const char* help, auto run) {
    CLI::App* command = cache->add_subcommand(name, help);
    command->callback([&line, arguments, run] {
      line.exit_code =
          run(PlanCache(line.address, line.timeout(), line.credentials),
              *arguments);
    });
    return command;
  };
  AddJsonFlag(*add("stats", "Hits, misses, jobs", PrintState), arguments->json);
  CLI::App* list =
      add("list", "The entries, most hits first; * is pinned", PrintEntries);
  AddJsonFlag(*list, arguments->json);
  list->add_option("--count", arguments->entry_count, "Most entries to show")
      ->check(CLI::NonNegativeNumber);
  const auto add_change =
      [&](const char* name, const char* help,
          absl::Status (PlanCache::*change)(std::string_view) const) {
        const auto run = [change](const PlanCache& of, const Arguments& told) {
          const absl::Status status = (of.*change)(told.id);
          return status.ok() ? int{kOk} : Fail(status);
        };
        add(name, help, run)
            ->add_option("id", arguments->id, "As `list` shows it")
            ->required();
      };
  add_change("pin", "Keep an entry whatever comes", &PlanCache::Pin);
  add_change("unpin", "Let an entry go when its turn comes", &PlanCache::Unpin);
  add_change("remove", "Forget an entry", &PlanCache::Remove);
  add("clear", "Forget all entries", Clear)
      ->add_flag("--pinned-too", arguments->pinned_too,
                 "Also those that are pinned");
  add("dump", "Write all entries to a file", Dump)
      ->add_option("file", arguments->file)
      ->required();
  CLI::App* load =
      add("load", "Take the entries of such a file in, from any server", Load);
  load->add_option("file", arguments->file)->required();
  load->add_flag("--problems-only", arguments->problems_only,
                 "Plan its problems anew, for other hardware");
}

}  // namespace tensord::cli
