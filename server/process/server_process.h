// A server process, from its options to its end.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/config/options.h"
#include "server/engine/engine.h"
#include "server/engine/plan_exchange.h"
#include "server/engine/plan_store.h"
#include "server/http/gpu_gauges.h"
#include "server/http/http_listener.h"
#include "server/http/monitoring.h"
#include "server/http/server_gauges.h"
#include "server/http/status.h"
#include "server/process/live_files.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/service_context.h"
#include "server/session/session_manager.h"
#include "server/telemetry/health.h"
#include "server/telemetry/heap_watch.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/otlp_exporter.h"

namespace tensord::server {

/// Exit statuses; 2 is that of ParseOptions(), for mistakes in options. A
/// process that a second signal ends has none.
enum ExitStatus {
  kStopped = 0,
  kCannotServe = 1,
  kDeviceLost = 3,
  kWorkLeft = 4,  // that did not end in time
};

/// All parts of a server, in the order in which they need each other.
///
/// Threads   its methods are called by one thread.
/// Lifetime  `options` outlives it. It is never destroyed once it has started:
///           the process ends first.
class ServerProcess {
 public:
  explicit ServerProcess(const Options& options);

  /// Serves, until End(). False: it cannot, and the log says why.
  bool Start();

  /// Waits for one of `signals`, or until a device is lost if that is an end:
  /// 0. Meanwhile, health checks hear of lost devices, SIGHUP has files read
  /// again, and the system gets pages of the heap back that are free: every
  /// arena would keep its peak, and a server would grow for hours.
  int AwaitEnd(const sigset_t& signals);

  /// Saves plans, lets work end for the time that is given to it, and ends the
  /// process. `signal` is what AwaitEnd() returned.
  [[noreturn]] void End(int signal);

 private:
  /// Each starts what later ones need. Errors  what cannot be had.
  absl::Status ListenForMonitoring();
  absl::Status StartEngine();
  absl::Status ServeRpc();

  /// Logs what went wrong, if anything did, as `event`.
  bool Succeeds(absl::string_view event, const absl::Status& status);
  void LogDevices();
  /// Who is an operator, and what is open to whom.
  void LogAccess();
  /// Null when there is none.
  std::unique_ptr<PlanStore> OpenPlanStore();
  std::unique_ptr<PlanExchange> OpenPlanExchange();
  std::unique_ptr<OtlpExporter> OpenTraceExporter();
  absl::StatusOr<std::unique_ptr<http::HttpListener>> ListenHttp(
      const http::HttpOptions& options, const http::Routes& routes,
      absl::string_view what);
  void UpdateHealth();
  /// Ends what those do who are no longer known: calls, and, when an authority
  /// of clients is taken out, connections over TLS, which begin anew.
  void EndUnknown();
  /// Counts what arrives, and breaks off what it arrives for when that is much:
  /// calls that wait for their clients or, when more comes than the server
  /// hears of, all connections. Clients connect again; tensors stay.
  void WatchHeap();
  void EndWaits(bool all);
  /// Does nothing for a while after the last time.
  void EndConnections(int64_t counted);
  /// Has AwaitEnd() end as if SIGTERM had come. From any thread.
  void Drain(std::optional<absl::Duration> timeout);
  /// Ends the process when that takes longer than `most`.
  void EndAfter(absl::Duration most);

  const Options& options_;
  Log log_;
  Health health_;
  Metrics metrics_;
  LiveFiles files_;
  const http::ProcessGauges process_gauges_;
  const http::GpuGauges gpu_gauges_;
  std::optional<http::CertificateGauges> certificate_gauges_;
  http::Monitoring monitoring_;
  std::unique_ptr<http::HttpListener> metrics_listener_;
  std::unique_ptr<http::HttpListener> probe_listener_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<PlanStore> plan_store_;
  std::unique_ptr<PlanExchange> plan_exchange_;
  std::unique_ptr<OtlpExporter> trace_exporter_;
  std::optional<SessionManager> sessions_;
  HostHold arriving_;
  std::atomic<bool> is_draining_ = false;  // an operator wants it
  std::atomic<int64_t> drain_nanoseconds_;
  const std::shared_ptr<rpc::Connections> connections_;
  uint64_t authority_losses_ = 0;  // that it has acted upon
  HeapWatch heap_watch_;
  std::chrono::steady_clock::time_point heap_look_;    // the next
  int64_t ended_waits_ = 0;                            // up to the last
  std::chrono::steady_clock::time_point waits_ended_;  // that was said
  std::chrono::steady_clock::time_point flood_ended_;  // the last
  std::chrono::seconds flood_rest_{0};                 // after it
  int64_t connection_count_ = 0;                       // a while ago
  std::unique_ptr<rpc::ServiceContext> context_;
  std::unique_ptr<rpc::RpcServer> server_;
  std::unique_ptr<rpc::RpcServer> admin_;  // null: `server_` takes its calls
  std::optional<http::ServerGauges> server_gauges_;
  std::optional<http::StatusSource> status_;
};

}  // namespace tensord::server
