#include "server/rpc/admin_service.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/base/layout.h"
#include "core/base/version.h"
#include "core/notation/path/find_path.h"
#include "core/notation/path/symbolic.h"
#include "core/notation/syntax.h"
#include "core/plan/planner.h"
#include "server/engine/host_memory.h"
#include "server/execution/program/program_request.h"
#include "server/session/tenant_use.h"

namespace tensord::rpc {
namespace {

v1::Device DeviceToProto(const server::Device& device) {
  const core::DeviceInfo& info = device.info();
  v1::Device message;
  message.set_name(info.name);
  message.set_model(info.model);
  message.set_architecture(info.architecture);
  message.set_thread_count(info.thread_count);
  message.set_memory_bytes(device.memory_limit_bytes());
  for (const auto& [key, value] : info.properties) {
    (*message.mutable_properties())[key] = value;
  }
  core::VisitKernels(device.backend().kernels(),
                     [&](size_t, const auto& kernels) {
                       for (const auto& kernel : kernels) {
                         message.add_kernels(std::string(kernel->name()));
                       }
                     });
  return message;
}

v1::Load LoadOf(const ServiceContext& context) {
  v1::Load load;
  load.set_session_count(context.sessions.session_count());
  for (const auto& device : context.engine.devices()) {
    load.set_queued_operations(load.queued_operations() +
                               device->worker().statistics().queued_count);
    const double share =
        static_cast<double>(device->memory_statistics().used_bytes) /
        static_cast<double>(device->memory_limit_bytes());
    load.set_memory_share(std::max(load.memory_share(), share));
  }
  return load;
}

v1::DeviceStats StatsOf(server::Device& device) {
  const core::MemoryStatistics memory = device.memory_statistics();
  const core::MemoryStatistics staging = device.staging_statistics();
  const server::DeviceWorker::Statistics work = device.worker().statistics();
  v1::DeviceStats message;
  message.set_device(device.info().name);
  message.set_model(device.info().model);
  message.set_is_up(device.health().ok());
  message.set_memory_used_bytes(memory.used_bytes);
  message.set_memory_peak_bytes(memory.peak_bytes);
  message.set_memory_reserved_bytes(device.memory_reserved_bytes());
  message.set_memory_limit_bytes(device.memory_limit_bytes());
  message.set_queued_operations(work.queued_count);
  message.set_executed_operations(work.executed_count);
  message.set_busy_seconds(absl::ToDoubleSeconds(work.busy));
  message.set_staging_used_bytes(staging.used_bytes);
  message.set_staging_peak_bytes(staging.peak_bytes);
  message.set_staging_reserved_bytes(device.staging_reserved_bytes());
  message.set_staging_limit_bytes(device.staging_limit_bytes());
  return message;
}

void FillProgramLimits(v1::Limits& limits) {
  const core::NotationLimits notation;
  limits.set_max_program_bytes(notation.max_text_bytes);
  limits.set_max_program_statements(notation.max_statements);
  limits.set_max_program_labels(static_cast<int32_t>(notation.max_labels));
  limits.set_max_program_depth(static_cast<int32_t>(notation.max_depth));
  limits.set_max_program_factors(notation.max_factors);
  limits.set_max_search_seconds(absl::ToInt64Seconds(server::kMaxTimeBudget));
  limits.set_max_optimal_operands(core::kOptimalInputLimit);
  limits.set_max_symbolic_operands(core::kSymbolicInputLimit);
}

int64_t CountLimit(const server::HostLimits& limits, server::HostUse use) {
  return limits[static_cast<int>(use)].count;
}

void FillTenants(const ServiceContext& context,
                 v1::GetServerStatsResponse& response) {
  auto uses = server::UseByTenant(context.sessions, context.metrics);
  for (const auto& tenant : context.metrics.tenants()) {
    const server::TenantUse& use = uses[tenant.name];
    v1::TenantStats& entry = *response.add_tenants();
    entry.set_tenant(tenant.name);
    entry.set_session_count(use.sessions);
    entry.set_tensor_count(use.tensors);
    entry.set_memory_used_bytes(use.used_bytes);
    entry.set_request_count(tenant.requests);
    entry.set_device_seconds(tenant.device_seconds);
  }
}

void FillHostMemory(const server::HostLedger& ledger,
                    v1::GetServerStatsResponse& response) {
  for (int i = 0; i < server::kHostUseCount; ++i) {
    const auto use = static_cast<server::HostUse>(i);
    const server::HostAmount used = ledger.used(use);
    v1::HostMemoryStats& entry = *response.add_host_memory();
    entry.set_use(std::string(NameOf(use)));
    entry.set_count(used.count);
    entry.set_count_limit(CountLimit(ledger.limits(), use));
    entry.set_used_bytes(used.bytes);
  }
  response.set_host_memory_limit_bytes(ledger.byte_limit());
}

}  // namespace

void AdminService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "GetServerInfo", *this, &AdminService::GetInfo);
  loops.Serve(raw(), "GetServerStats", *this, &AdminService::GetStats);
  loops.Serve(raw(), "ListSessions", *this, &AdminService::ListSessions);
  loops.Serve(raw(), "ListOperations", *this, &AdminService::ListOperations);
  loops.Serve(raw(), "ListLargestTensors", *this, &AdminService::ListTensors);
  ServeVerbsOn(loops);
}

Task<absl::StatusOr<v1::GetServerInfoResponse>> AdminService::GetInfo(
    Call& call, const v1::GetServerInfoRequest&) {
  v1::GetServerInfoResponse response;
  response.set_version(core::kVersion);
  for (const auto& device : context_.engine.devices()) {
    *response.add_devices() = DeviceToProto(*device);
  }
  const server::SessionLimits& sessions = context_.sessions.limits();
  v1::Limits& limits = *response.mutable_limits();
  limits.set_max_chunk_bytes(context_.limits.max_chunk_bytes);
  limits.set_max_inline_bytes(context_.limits.max_inline_bytes);
  limits.set_max_message_bytes(context_.limits.max_message_bytes);
  limits.set_max_modes(core::kMaxModes);
  limits.set_max_lease_seconds(absl::ToInt64Seconds(
      context_.sessions.max_lease(call.record().identity->tenant())));
  limits.set_max_sessions(sessions.max_sessions);
  limits.set_max_sessions_per_peer(sessions.max_sessions_per_peer);
  limits.set_session_quota_bytes(
      sessions.quota_bytes > 0
          ? sessions.quota_bytes
          : context_.engine.devices().front()->memory_limit_bytes());
  limits.set_max_queued_operations(context_.queue_limit);
  limits.set_max_stream_operations(context_.max_stream_operations());
  limits.set_max_tensors(
      CountLimit(sessions.session_host, server::HostUse::kTensors));
  limits.set_max_programs(
      CountLimit(sessions.session_host, server::HostUse::kPrograms));
  limits.set_transfer_idle_seconds(
      absl::ToDoubleSeconds(context_.transfer_idle));
  limits.set_max_view_stages(server::kMaxViewStages);
  FillProgramLimits(limits);
  *response.mutable_load() = LoadOf(context_);
  co_return response;
}

Task<absl::StatusOr<v1::GetServerStatsResponse>> AdminService::GetStats(
    Call&, const v1::GetServerStatsRequest&) {
  v1::GetServerStatsResponse response;
  const absl::Status readiness = context_.health.readiness();
  response.set_version(core::kVersion);
  response.set_state(readiness.ok() ? "ready"
                                    : std::string(readiness.message()));
  response.set_uptime_seconds(
      absl::ToInt64Seconds(absl::Now() - context_.start));
  response.set_session_count(context_.sessions.session_count());
  response.set_tensor_count(context_.sessions.tensor_count());
  for (const auto& device : context_.engine.devices()) {
    *response.add_devices() = StatsOf(*device);
  }
  for (const auto& [key, count] : context_.metrics.operations()) {
    v1::OperationStats& entry = *response.add_operations();
    entry.set_operation(key.first);
    entry.set_code(key.second);
    entry.set_count(count);
  }
  const core::PlanCacheStatistics plans = context_.engine.plans().statistics();
  v1::PlanCacheStats& cache = *response.mutable_plan_cache();
  cache.set_entry_count(plans.entry_count);
  cache.set_hit_count(plans.hit_count);
  cache.set_miss_count(plans.miss_count);
  cache.set_eviction_count(plans.eviction_count);
  response.set_uploaded_bytes(
      static_cast<int64_t>(context_.metrics.uploaded_bytes().Value()));
  response.set_downloaded_bytes(
      static_cast<int64_t>(context_.metrics.downloaded_bytes().Value()));
  FillHostMemory(*context_.sessions.host_memory(), response);
  FillTenants(context_, response);
  co_return response;
}

}  // namespace tensord::rpc
