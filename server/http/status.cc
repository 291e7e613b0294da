#include "server/http/status.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "server/engine/host_memory.h"
#include "server/http/status_page.h"
#include "server/session/tenant_use.h"

namespace tensord::http {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostSessions = 100;

Json DeviceJson(server::Device& device) {
  const core::MemoryStatistics memory = device.memory_statistics();
  const server::DeviceWorker::Statistics work = device.worker().statistics();
  return {{"name", device.info().name},
          {"model", device.info().model},
          {"up", device.health().ok()},
          {"used_bytes", memory.used_bytes},
          {"peak_bytes", memory.peak_bytes},
          {"reserved_bytes", device.memory_reserved_bytes()},
          {"limit_bytes", device.memory_limit_bytes()},
          {"queued", work.queued_count},
          {"jobs", work.executed_count},
          {"busy_seconds", absl::ToDoubleSeconds(work.busy)}};
}

Json SessionsJson(const server::SessionManager& manager) {
  Json list = Json::array();
  for (const auto& session : manager.Largest(kMostSessions)) {
    // Never the name: who knows it has the session.
    list.push_back({{"number", session->number()},
                    {"tenant", session->options().tenant},
                    {"job", session->options().job},
                    {"priority", session->options().priority},
                    {"device", session->device().info().name},
                    {"tensors", session->tensor_count()},
                    {"used_bytes", session->memory()->used_bytes()},
                    {"quota_bytes", session->memory()->limit_bytes()}});
  }
  return list;
}

}  // namespace

std::string StatusJson(const StatusSource& source) {
  Json status;
  const absl::Status readiness = source.health.readiness();
  status["version"] = source.version;
  status["uptime_seconds"] = absl::ToInt64Seconds(absl::Now() - source.start);
  status["state"] = readiness.ok() ? "ready" : std::string(readiness.message());
  for (const auto& device : source.engine.devices()) {
    status["devices"].push_back(DeviceJson(*device));
  }
  status["session_count"] = source.sessions.session_count();
  status["tensor_count"] = source.sessions.tensor_count();
  status["sessions"] = SessionsJson(source.sessions);
  auto uses = server::UseByTenant(source.sessions, source.metrics);
  for (const server::Metrics::TenantTotals& tenant : source.metrics.tenants()) {
    const server::TenantUse& use = uses[tenant.name];
    status["tenants"].push_back({{"name", tenant.name},
                                 {"sessions", use.sessions},
                                 {"used_bytes", use.used_bytes},
                                 {"requests", tenant.requests},
                                 {"device_seconds", tenant.device_seconds}});
  }
  int64_t operations = 0;
  for (const auto& [key, count] : source.metrics.operations()) {
    operations += count;
  }
  status["operations"] = operations;
  status["uploaded_bytes"] = source.metrics.uploaded_bytes().Value();
  status["downloaded_bytes"] = source.metrics.downloaded_bytes().Value();
  const core::PlanCacheStatistics plans = source.engine.plans().statistics();
  status["plans"] = {{"entries", plans.entry_count},
                     {"bytes", plans.bytes},
                     {"hits", plans.hit_count},
                     {"misses", plans.miss_count}};
  const server::HostLedger& host = *source.sessions.host_memory();
  status["host"] = {{"used_bytes", host.used_bytes()},
                    {"limit_bytes", host.byte_limit()}};
  return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Answer StatusPage() {
  return {.content_type = "text/html; charset=utf-8", .body = kStatusPage};
}

}  // namespace tensord::http
