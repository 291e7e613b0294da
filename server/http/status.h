// The server at a glance, for people.
#pragma once

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/engine/engine.h"
#include "server/http/http_listener.h"
#include "server/session/session_manager.h"
#include "server/telemetry/health.h"
#include "server/telemetry/metrics.h"

namespace tensord::http {

/// Lifetime  all that it refers to outlives it.
struct StatusSource {
  server::Engine& engine;
  const server::SessionManager& sessions;
  server::Metrics& metrics;
  const server::Health& health;
  std::string version;
  absl::Time start = absl::Now();
};

/// Devices, memory, queues, tenants, sessions (by number and job, those with
/// most memory), counts of what was done, and plans; in JSON.
std::string StatusJson(const StatusSource& source);

/// A page that shows this, and needs no other.
Answer StatusPage();

}  // namespace tensord::http
