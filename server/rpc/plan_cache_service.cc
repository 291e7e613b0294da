#include "server/rpc/plan_cache_service.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "core/base/status.h"
#include "core/base/version.h"
#include "core/plan/explain.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/plan_record.h"
#include "core/plan/plan_snapshot.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/on_device.h"
#include "server/rpc/coroutine/patience.h"

namespace tensord::rpc {
namespace {

constexpr size_t kDumpBytes = size_t{1} << 20;  // of one message

// Problems are planned so many at a time, between operations: some
// milliseconds.
constexpr size_t kProblemsAtATime = 32;
// Stands for no session in a device's queue.
constexpr uint64_t kNoSession = std::numeric_limits<uint64_t>::max() - 1;

google::protobuf::Duration FromNanoseconds(int64_t nanoseconds) {
  return ToProto(absl::Nanoseconds(nanoseconds));
}

v1::PlanCacheEntry Describe(const core::PlanEntry& entry) {
  v1::PlanCacheEntry message;
  message.set_id(core::PlanIdText(entry.id));
  if (const auto key = core::DecodePlanKey(entry.key); key.ok()) {
    message.set_problem(core::Summarize(key->problem));
    message.set_device(key->device);
    message.set_selection(ToProto(key->selection));
  }
  message.set_kernel(std::string(entry.plan->kernel_name()));
  message.set_workspace_bytes(entry.plan->workspace_bytes());
  message.set_source(ToProto(entry.source));
  message.set_is_pinned(entry.is_pinned);
  message.set_hit_count(entry.hit_count);
  *message.mutable_planning() = FromNanoseconds(entry.planning_nanoseconds);
  *message.mutable_saved() = FromNanoseconds(entry.saved_nanoseconds);
  *message.mutable_last_used() = ToProto(entry.last_used);
  message.set_bytes(entry.bytes);
  message.set_predicted_nanoseconds(entry.plan->predicted_nanoseconds());
  message.set_measured_nanoseconds(entry.plan->measured_nanoseconds);
  message.set_sample_count(entry.sample_count);
  message.set_wanted_sample_count(entry.wanted_sample_count);
  return message;
}

/// "cpu" of "cpu:0 ...".
absl::string_view KindOf(absl::string_view plan_device) {
  return plan_device.substr(0, plan_device.find(':'));
}

}  // namespace

void PlanCacheService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "GetPlanCacheStats", *this, &PlanCacheService::GetStats);
  loops.Serve(raw(), "ListPlanCacheEntries", *this, &PlanCacheService::List);
  using S = PlanCacheService;
  loops.Serve(raw(), "PinPlanCacheEntry", *this,
              &S::Change<v1::PinPlanCacheEntryRequest,
                         v1::PinPlanCacheEntryResponse, &core::PlanCache::Pin>);
  loops.Serve(
      raw(), "UnpinPlanCacheEntry", *this,
      &S::Change<v1::UnpinPlanCacheEntryRequest,
                 v1::UnpinPlanCacheEntryResponse, &core::PlanCache::Unpin>);
  loops.Serve(
      raw(), "RemovePlanCacheEntry", *this,
      &S::Change<v1::RemovePlanCacheEntryRequest,
                 v1::RemovePlanCacheEntryResponse, &core::PlanCache::Remove>);
  loops.Serve(raw(), "ClearPlanCache", *this, &PlanCacheService::Clear);
  loops.Serve(raw(), "DumpPlanCache", *this, &PlanCacheService::Dump);
  loops.Serve(raw(), "LoadPlanCache", *this, &PlanCacheService::Load);
}

Task<absl::StatusOr<v1::GetPlanCacheStatsResponse>> PlanCacheService::GetStats(
    Call&, const v1::GetPlanCacheStatsRequest&) {
  const core::PlanCacheStatistics statistics = cache().statistics();
  v1::GetPlanCacheStatsResponse response;
  response.set_entry_count(statistics.entry_count);
  response.set_entry_limit(cache().options().entry_limit);
  response.set_record_count(statistics.record_count);
  response.set_pinned_count(statistics.pinned_count);
  response.set_bytes(statistics.bytes);
  response.set_byte_limit(cache().options().byte_limit);
  response.set_hit_count(statistics.hit_count);
  response.set_miss_count(statistics.miss_count);
  response.set_eviction_count(statistics.eviction_count);
  response.set_load_count(statistics.load_count);
  response.mutable_load_errors()->insert(statistics.load_errors.begin(),
                                         statistics.load_errors.end());
  *response.mutable_planning() =
      FromNanoseconds(statistics.planning_nanoseconds);
  *response.mutable_saved() = FromNanoseconds(statistics.saved_nanoseconds);
  for (const core::PlanJobStatistics& job : cache().job_statistics()) {
    v1::PlanCacheJobStats& entry = *response.add_jobs();
    entry.set_job(job.job);
    entry.set_hit_count(job.hit_count);
    entry.set_miss_count(job.miss_count);
    *entry.mutable_planning() = FromNanoseconds(job.planning_nanoseconds);
    *entry.mutable_saved() = FromNanoseconds(job.saved_nanoseconds);
  }
  if (context_.plan_store != nullptr) {
    const server::PlanStore::Statistics store =
        context_.plan_store->statistics();
    v1::PlanStoreStats& entry = *response.mutable_store();
    entry.set_path(context_.plan_store->path());
    entry.set_loaded_count(store.loaded_count);
    entry.set_saved_count(store.saved_count);
    if (store.saved_at > absl::InfinitePast()) {
      *entry.mutable_saved_at() = ToProto(store.saved_at);
    }
    entry.set_error(store.error);
  }
  if (context_.plan_exchange != nullptr) {
    const server::PlanExchange::Statistics exchange =
        context_.plan_exchange->statistics();
    v1::PlanExchangeStats& entry = *response.mutable_exchange();
    entry.set_address(context_.plan_exchange->address());
    entry.set_is_connected(exchange.is_connected);
    entry.set_sent_count(exchange.sent_count);
    entry.set_received_count(exchange.received_count);
    entry.set_refused_count(exchange.refused_count);
    entry.set_error_count(exchange.error_count);
    if (exchange.exchanged_at > absl::InfinitePast()) {
      *entry.mutable_exchanged_at() = ToProto(exchange.exchanged_at);
    }
    entry.set_error(exchange.error);
  }
  co_return response;
}

Task<absl::StatusOr<v1::ListPlanCacheEntriesResponse>> PlanCacheService::List(
    Call&, const v1::ListPlanCacheEntriesRequest& request) {
  const absl::StatusOr<int> page_size = PageSize(request.page_size());
  if (!page_size.ok()) co_return page_size.status();
  core::PlanListQuery query;
  query.order = request.order() == v1::PLAN_CACHE_ORDER_HITS
                    ? core::PlanOrder::kHits
                    : core::PlanOrder::kId;
  query.page_size = *page_size;
  query.page_token = request.page_token();
  const absl::StatusOr<core::PlanPage> page = cache().List(query);
  if (!page.ok()) co_return page.status();
  v1::ListPlanCacheEntriesResponse response;
  for (const core::PlanEntry& entry : page->entries) {
    *response.add_entries() = Describe(entry);
  }
  response.set_next_page_token(page->next_page_token);
  co_return response;
}

template <typename Request, typename Response, auto change>
Task<absl::StatusOr<Response>> PlanCacheService::Change(
    Call& call, const Request& request) {
  const std::string& id = request.id();
  call.record().subject = id.substr(0, 100);
  const std::optional<uint64_t> number = core::PlanIdFromText(id);
  if (!number) {
    co_return core::InvalidArgument("PLAN_ID_MALFORMED", "id '",
                                    id.substr(0, 100),
                                    "' wanted as 16 hexadecimal digits");
  }
  const absl::Status status = (cache().*change)(*number);
  if (!status.ok()) co_return status;
  co_return Response();
}

Task<absl::StatusOr<v1::ClearPlanCacheResponse>> PlanCacheService::Clear(
    Call&, const v1::ClearPlanCacheRequest& request) {
  v1::ClearPlanCacheResponse response;
  response.set_removed_count(cache().Clear(request.pinned_too()));
  co_return response;
}

Task<absl::Status> PlanCacheService::Dump(
    Call& call, const v1::DumpPlanCacheRequest&,
    Writer<v1::DumpPlanCacheResponse> out) {
  server::HostHold hold;
  // In memory a plan takes more than in a snapshot.
  const absl::Status held =
      hold.Take(context_.sessions.host_memory(), server::HostUse::kSnapshots,
                cache().statistics().bytes);
  if (!held.ok()) co_return held;
  const std::string snapshot =
      server::MakeSnapshot(cache(), absl::StrCat("tensord ", core::kVersion))
          .bytes;
  PatientWriter writer(out, call, context_.transfer_idle);
  for (size_t at = 0; at < snapshot.size(); at += kDumpBytes) {
    v1::DumpPlanCacheResponse part;
    part.set_data(snapshot.substr(at, kDumpBytes));
    const absl::Status sent = co_await writer.Write(part);
    if (!sent.ok()) co_return sent;
  }
  co_return absl::OkStatus();
}

Task<absl::StatusOr<v1::LoadPlanCacheResponse>> PlanCacheService::Load(
    Call& call, Reader in) {
  server::HostHold hold;
  absl::Status held = hold.Take(context_.sessions.host_memory(),
                                server::HostUse::kSnapshots, 0);
  if (!held.ok()) co_return held;
  // Enough to tell a snapshot from other things.
  constexpr size_t kBeginning = 64;
  bool is_checked = false;
  std::string snapshot;
  v1::PlanCacheLoad load = v1::PLAN_CACHE_LOAD_UNSPECIFIED;
  PatientReader reader(in, call, context_.transfer_idle);
  while (true) {
    ByteBuffer* const message = co_await reader.Read();
    if (message == nullptr) break;
    Incoming<v1::LoadPlanCacheRequest> incoming(context_.parser, call);
    const absl::Status parsed = co_await incoming.Parse(*message);
    if (!parsed.ok()) co_return parsed;
    const v1::LoadPlanCacheRequest& part = *incoming;
    if (part.load() != v1::PLAN_CACHE_LOAD_UNSPECIFIED) load = part.load();
    if (std::ssize(part.data()) >
        server::kMaxSnapshotBytes - std::ssize(snapshot)) {
      co_return core::InvalidArgument("SNAPSHOT_TOO_LARGE",
                                      "the snapshot has more than ",
                                      server::kMaxSnapshotBytes, " bytes");
    }
    held = hold.Grow(std::ssize(part.data()));
    if (!held.ok()) co_return held;
    if (!part.data().empty()) reader.Progress();
    snapshot += part.data();
    if (is_checked || snapshot.size() < kBeginning) continue;
    // What begins as no snapshot does is not waited for.
    is_checked = true;
    const absl::Status begun =
        core::ReadSnapshot(absl::string_view(snapshot).substr(0, kBeginning),
                           [](absl::string_view) {})
            .status();
    if (absl::IsInvalidArgument(begun)) co_return begun;
  }
  const absl::Status failure = reader.failure();
  if (!failure.ok()) co_return failure;
  const absl::Status known = CheckLoad(load);
  if (!known.ok()) co_return known;
  if (is_loading_.exchange(true)) {
    co_return core::Error(absl::StatusCode::kResourceExhausted,
                          "LOAD_UNDER_WAY",
                          "another snapshot is being taken in; try again");
  }
  const absl::Cleanup done = [this] { is_loading_ = false; };
  if (load == v1::PLAN_CACHE_LOAD_PROBLEMS) {
    co_return co_await PlanProblems(call, std::move(snapshot));
  }
  const auto loaded = server::LoadSnapshot(snapshot, cache());
  if (!loaded.ok()) co_return loaded.status();
  v1::LoadPlanCacheResponse response;
  response.set_writer(loaded->writer);
  response.set_entry_count(loaded->entry_count);
  response.set_taken_count(loaded->taken_count);
  co_return response;
}

Task<absl::StatusOr<v1::LoadPlanCacheResponse>> PlanCacheService::PlanProblems(
    Call& call, std::string snapshot) {
  std::vector<std::string> keys;
  const auto info = core::ReadSnapshot(snapshot, [&](absl::string_view record) {
    keys.emplace_back(core::KeyOfRecord(record));
  });
  if (!info.ok()) co_return info.status();
  v1::LoadPlanCacheResponse response;
  response.set_writer(info->writer);
  response.set_entry_count(std::ssize(keys));
  std::vector<bool> is_taken(keys.size(), false);
  for (const auto& device : context_.engine.devices()) {
    for (size_t begin = 0; begin < keys.size(); begin += kProblemsAtATime) {
      const size_t end = std::min(keys.size(), begin + kProblemsAtATime);
      auto plan_some = [&](core::Stream&) {
        for (size_t i = begin; i < end; ++i) {
          absl::StatusOr<core::PlanKey> key = core::DecodePlanKey(keys[i]);
          if (!key.ok() || KindOf(key->device) != device->info().kind) continue;
          key->device = device->plan_device();
          if (context_.engine.PlanFor(*device, *key, "(warm-up)").ok()) {
            is_taken[i] = true;
          }
        }
        return JobOutcome();
      };
      const server::ClientId nobody{.number = kNoSession};
      FunctionJob job(plan_some);
      OnDevice queued(call, device->worker(), nobody, job);
      const absl::Status planned = co_await queued;
      if (!planned.ok()) co_return planned;
    }
  }
  response.set_taken_count(std::count(is_taken.begin(), is_taken.end(), true));
  co_return response;
}

}  // namespace tensord::rpc
