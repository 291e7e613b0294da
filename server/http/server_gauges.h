// What the server is and has, looked at when it is scraped.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/engine/engine.h"
#include "server/engine/plan_exchange.h"
#include "server/identity/certificates.h"
#include "server/session/session_manager.h"
#include "server/telemetry/health.h"
#include "server/telemetry/metrics.h"

namespace tensord::http {

/// Devices, queues, memory, sessions, tenants and plans.
///
/// Threads   safe for concurrent use.
/// Lifetime  all that it refers to outlives it.
class ServerGauges final : public prometheus::Collectable {
 public:
  /// `exchange` may be null.
  ServerGauges(server::Engine& engine, const server::SessionManager& sessions,
               const server::Metrics& metrics,
               const server::PlanExchange* exchange)
      : engine_(engine),
        sessions_(sessions),
        metrics_(metrics),
        exchange_(exchange) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  server::Engine& engine_;
  const server::SessionManager& sessions_;
  const server::Metrics& metrics_;
  const server::PlanExchange* const exchange_;
};

/// When certificates end.
///
/// Threads   safe for concurrent use.
/// Lifetime  they outlive it.
class CertificateGauges final : public prometheus::Collectable {
 public:
  /// By what they are for; null: there are none.
  using ByUse = std::map<std::string, const server::Certificates*>;
  explicit CertificateGauges(ByUse certificates)
      : certificates_(std::move(certificates)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const ByUse certificates_;
};

/// The process, under the names that are customary, which version it is, and
/// whether it is ready.
///
/// Threads   safe for concurrent use.
/// Lifetime  `health` outlives it.
class ProcessGauges final : public prometheus::Collectable {
 public:
  ProcessGauges(std::string version, const server::Health& health)
      : version_(std::move(version)), health_(health) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::string version_;
  const server::Health& health_;
};

}  // namespace tensord::http
