// What those see over HTTP who watch the server.
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/collectable.h"
#include "server/http/http_listener.h"
#include "server/http/status.h"
#include "server/telemetry/health.h"

namespace tensord::http {

/// Threads   safe for concurrent use.
/// Lifetime  all that it refers to outlives it, and it its listeners.
class Monitoring {
 public:
  explicit Monitoring(const server::Health& health) : health_(health) {}

  /// Shows the metrics of `source` from now on.
  void Add(const prometheus::Collectable& source);
  /// Shows that on the page, which until then has nothing to show.
  void Show(const StatusSource& source);

  /// Without a token: /livez, 200 unless the process should be started anew,
  /// and /readyz, 200 while it takes calls. A line says why not.
  Routes ProbeRoutes() const;
  /// Those, /metrics in the text format of Prometheus, and the page /, which
  /// is for everybody, with what it shows, /status.json.
  Routes MetricsRoutes() const;

 private:
  std::string MetricsText() const;
  Answer Status() const;

  const server::Health& health_;
  mutable absl::Mutex mutex_;
  std::vector<const prometheus::Collectable*> sources_ ABSL_GUARDED_BY(mutex_);
  const StatusSource* status_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace tensord::http
