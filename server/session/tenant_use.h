// What tenants have.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "server/session/session_manager.h"
#include "server/telemetry/metrics.h"

namespace tensord::server {

struct TenantUse {
  int64_t sessions = 0;
  int64_t tensors = 0;
  int64_t used_bytes = 0;  // of devices
};

/// By tenant, those that metrics count by themselves; "other" is all others.
std::map<std::string, TenantUse> UseByTenant(const SessionManager& sessions,
                                             const Metrics& metrics);

}  // namespace tensord::server
