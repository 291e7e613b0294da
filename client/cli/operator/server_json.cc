#include "client/cli/operator/server_json.h"

namespace tensord::cli {
namespace {

Json DeviceStatsJson(const DeviceStats& device) {
  return {{"device", device.device},
          {"memory_used_bytes", device.memory_used_bytes},
          {"memory_peak_bytes", device.memory_peak_bytes},
          {"memory_reserved_bytes", device.memory_reserved_bytes},
          {"memory_limit_bytes", device.memory_limit_bytes},
          {"staging_used_bytes", device.staging_used_bytes},
          {"staging_peak_bytes", device.staging_peak_bytes},
          {"staging_reserved_bytes", device.staging_reserved_bytes},
          {"staging_limit_bytes", device.staging_limit_bytes},
          {"queued_operations", device.queued_operations},
          {"executed_operations", device.executed_operations},
          {"busy_seconds", JsonSeconds(device.busy)},
          {"model", device.model},
          {"is_up", device.is_up}};
}

Json OperationStatsJson(const OperationStats& operation) {
  return {{"operation", operation.operation},
          {"code", operation.code},
          {"count", operation.count}};
}

Json TenantJson(const TenantStats& tenant) {
  return {{"tenant", tenant.tenant},
          {"session_count", tenant.session_count},
          {"tensor_count", tenant.tensor_count},
          {"memory_used_bytes", tenant.memory_used_bytes},
          {"request_count", tenant.request_count},
          {"device_seconds", JsonSeconds(tenant.device_time)}};
}

Json HostMemoryJson(const HostMemoryStats& entry) {
  return {{"use", entry.use},
          {"count", entry.count},
          {"count_limit", entry.count_limit},
          {"used_bytes", entry.used_bytes}};
}

}  // namespace

Json StatsJson(const ServerStats& stats) {
  return {{"version", stats.version},
          {"state", stats.state},
          {"uptime_seconds", absl::ToInt64Seconds(stats.uptime)},
          {"session_count", stats.session_count},
          {"tensor_count", stats.tensor_count},
          {"uploaded_bytes", stats.uploaded_bytes},
          {"downloaded_bytes", stats.downloaded_bytes},
          {"host_memory", JsonList(stats.host_memory, HostMemoryJson)},
          {"host_memory_limit_bytes", stats.host_memory_limit_bytes},
          {"devices", JsonList(stats.devices, DeviceStatsJson)},
          {"operations", JsonList(stats.operations, OperationStatsJson)},
          {"tenants", JsonList(stats.tenants, TenantJson)},
          {"plan_cache",
           {{"entry_count", stats.plan_cache.entry_count},
            {"hit_count", stats.plan_cache.hit_count},
            {"miss_count", stats.plan_cache.miss_count},
            {"eviction_count", stats.plan_cache.eviction_count}}}};
}

Json SessionJson(const SessionState& session) {
  return {{"number", session.number},
          {"tenant", session.tenant},
          {"job", session.job},
          {"peer", session.peer},
          {"device", session.device},
          {"priority", session.priority},
          {"age_seconds", JsonSeconds(session.age)},
          {"idle_seconds", JsonSeconds(session.idle)},
          {"lease_seconds", JsonSeconds(session.lease)},
          {"lease_left_seconds", JsonSeconds(session.lease_left)},
          {"tensor_count", session.tensor_count},
          {"memory_used_bytes", session.memory_used_bytes},
          {"memory_quota_bytes", session.memory_quota_bytes},
          {"queued_operations", session.queued_operations},
          {"running_operations", session.running_operations}};
}

}  // namespace tensord::cli
