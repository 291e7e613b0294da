#include "tensord/plan_cache.h"

#include <algorithm>
#include <array>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/listing.h"

namespace tensord {

using internal::Channels;
using internal::FromProto;
using PlanCaches = v1::PlanCacheService::Stub;

namespace {

// Of one message of a snapshot.
constexpr size_t kPartBytes = size_t{1} << 20;

PlanCacheEntry FromProto(const v1::PlanCacheEntry& entry) {
  return {.id = entry.id(),
          .problem = entry.problem(),
          .device = entry.device(),
          .kernel = entry.kernel(),
          .workspace_bytes = entry.workspace_bytes(),
          .selection = static_cast<Selection>(entry.selection()),
          .source = static_cast<PlanSource>(entry.source()),
          .is_pinned = entry.is_pinned(),
          .hit_count = entry.hit_count(),
          .planning = internal::FromProto(entry.planning()),
          .saved = internal::FromProto(entry.saved()),
          .last_used = internal::FromProto(entry.last_used()),
          .bytes = entry.bytes(),
          .predicted_nanoseconds = entry.predicted_nanoseconds(),
          .measured_nanoseconds = entry.measured_nanoseconds(),
          .sample_count = entry.sample_count(),
          .wanted_sample_count = entry.wanted_sample_count()};
}

}  // namespace

std::string_view ToString(PlanSource source) {
  constexpr std::array<std::string_view, 4> kNames = {"unknown", "planned",
                                                      "measured", "loaded"};
  const auto index = static_cast<size_t>(source);
  return kNames[index < kNames.size() ? index : 0];
}

PlanCache::PlanCache(std::string_view address, absl::Duration deadline,
                     const Credentials& credentials)
    : channels_(std::make_shared<Channels>(address, deadline, credentials)) {}

absl::StatusOr<PlanCacheState> PlanCache::State() const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetPlanCacheStatsResponse response,
      channels_->Call(channels_->plan_cache, &PlanCaches::GetPlanCacheStats,
                      v1::GetPlanCacheStatsRequest()));
  PlanCacheState state{
      .entry_count = response.entry_count(),
      .entry_limit = response.entry_limit(),
      .record_count = response.record_count(),
      .pinned_count = response.pinned_count(),
      .bytes = response.bytes(),
      .byte_limit = response.byte_limit(),
      .hit_count = response.hit_count(),
      .miss_count = response.miss_count(),
      .eviction_count = response.eviction_count(),
      .load_count = response.load_count(),
      .load_errors = {response.load_errors().begin(),
                      response.load_errors().end()},
      .planning = internal::FromProto(response.planning()),
      .saved = internal::FromProto(response.saved()),
      .jobs = {},
      .store = {.path = response.store().path(),
                .loaded_count = response.store().loaded_count(),
                .saved_count = response.store().saved_count(),
                .error = response.store().error()},
      .exchange = {.address = response.exchange().address(),
                   .is_connected = response.exchange().is_connected(),
                   .sent_count = response.exchange().sent_count(),
                   .received_count = response.exchange().received_count(),
                   .refused_count = response.exchange().refused_count(),
                   .error_count = response.exchange().error_count(),
                   .error = response.exchange().error()}};
  if (response.exchange().has_exchanged_at()) {
    state.exchange.exchanged_at =
        internal::FromProto(response.exchange().exchanged_at());
  }
  if (response.store().has_saved_at()) {
    state.store.saved_at = internal::FromProto(response.store().saved_at());
  }
  for (const v1::PlanCacheJobStats& job : response.jobs()) {
    state.jobs.push_back({.job = job.job(),
                          .hit_count = job.hit_count(),
                          .miss_count = job.miss_count(),
                          .planning = internal::FromProto(job.planning()),
                          .saved = internal::FromProto(job.saved())});
  }
  return state;
}

absl::StatusOr<std::vector<PlanCacheEntry>> PlanCache::Entries(
    bool by_hits) const {
  std::vector<PlanCacheEntry> entries;
  v1::ListPlanCacheEntriesRequest request;
  if (by_hits) request.set_order(v1::PLAN_CACHE_ORDER_HITS);
  TENSORD_CLIENT_RETURN_IF_ERROR(internal::ForEachPage(
      *channels_, channels_->plan_cache, &PlanCaches::ListPlanCacheEntries,
      request, [&](const v1::ListPlanCacheEntriesResponse& page) {
        for (const v1::PlanCacheEntry& entry : page.entries()) {
          entries.push_back(FromProto(entry));
        }
      }));
  return entries;
}

absl::Status PlanCache::Pin(std::string_view id) const {
  v1::PinPlanCacheEntryRequest request;
  request.set_id(std::string(id));
  return channels_
      ->Call(channels_->plan_cache, &PlanCaches::PinPlanCacheEntry, request)
      .status();
}

absl::Status PlanCache::Unpin(std::string_view id) const {
  v1::UnpinPlanCacheEntryRequest request;
  request.set_id(std::string(id));
  return channels_
      ->Call(channels_->plan_cache, &PlanCaches::UnpinPlanCacheEntry, request)
      .status();
}

absl::Status PlanCache::Remove(std::string_view id) const {
  v1::RemovePlanCacheEntryRequest request;
  request.set_id(std::string(id));
  return channels_
      ->Call(channels_->plan_cache, &PlanCaches::RemovePlanCacheEntry, request)
      .status();
}

absl::StatusOr<int64_t> PlanCache::Clear(bool pinned_too) const {
  v1::ClearPlanCacheRequest request;
  request.set_pinned_too(pinned_too);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ClearPlanCacheResponse response,
      channels_->Call(channels_->plan_cache, &PlanCaches::ClearPlanCache,
                      request));
  return response.removed_count();
}

absl::Status PlanCache::Dump(
    const std::function<absl::Status(std::string_view bytes)>& write) const {
  grpc::ClientContext context;
  channels_->Prepare(context, absl::InfinitePast());
  const auto reader = channels_->plan_cache->DumpPlanCache(
      &context, v1::DumpPlanCacheRequest());
  v1::DumpPlanCacheResponse part;
  while (reader->Read(&part)) {
    const absl::Status written = write(part.data());
    if (!written.ok()) {
      context.TryCancel();
      reader->Finish();
      return written;
    }
  }
  return channels_->Outcome(reader->Finish(), context);
}

absl::StatusOr<LoadedPlans> PlanCache::Load(std::string_view snapshot,
                                            bool problems_only) const {
  grpc::ClientContext context;
  channels_->Prepare(context, absl::InfinitePast());
  v1::LoadPlanCacheResponse response;
  const auto writer = channels_->plan_cache->LoadPlanCache(&context, &response);
  v1::LoadPlanCacheRequest part;
  part.set_load(problems_only ? v1::PLAN_CACHE_LOAD_PROBLEMS
                              : v1::PLAN_CACHE_LOAD_PLANS);
  do {
    const size_t size = std::min(snapshot.size(), kPartBytes);
    part.set_data(snapshot.data(), size);
    snapshot.remove_prefix(size);
  } while (writer->Write(part) && !snapshot.empty());
  writer->WritesDone();
  const absl::Status status = channels_->Outcome(writer->Finish(), context);
  if (!status.ok()) return status;
  return LoadedPlans{.writer = response.writer(),
                     .entry_count = response.entry_count(),
                     .taken_count = response.taken_count()};
}

}  // namespace tensord
