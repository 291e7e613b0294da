// The tensord server.
#include <grpc/grpc.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/config/options.h"
#include "server/config/version.h"
#include "server/engine/engine.h"
#include "server/engine/plan_exchange.h"
#include "server/engine/plan_store.h"
#include "server/http/http_listener.h"
#include "server/http/monitoring.h"
#include "server/http/server_gauges.h"
#include "server/http/status.h"
#include "server/identity/authenticator.h"
#include "server/identity/certificates.h"
#include "server/identity/file_watch.h"
#include "server/identity/tenants.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/service_context.h"
#include "server/session/session_manager.h"
#include "server/telemetry/health.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace tensord::server {
namespace {

/// Keeps the heap from returning pages between messages: receivers would fault
/// them in again, which costs a third of the transfer rate. AwaitEnd() does it.
void TuneHeap() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
}

/// Exit statuses; 2 is that of ParseOptions(), for mistakes in options. A
/// process that a second signal ends has none.
enum ExitStatus {
  kStopped = 0,
  kCannotServe = 1,
  kDeviceLost = 3,
  kWorkLeft = 4,  // that did not end in time
};

/// Fails the process with one line.
int Fail(Log& log, absl::string_view event, const absl::Status& status) {
  log.Event(LogLevel::kError, event, {{"message", status.message()}});
  return kCannotServe;
}

/// Waits for one of `signals`, or until a device is lost if that `ends_it`: 0.
/// Meanwhile, health checks hear of a lost device, SIGHUP has `files` read
/// again, and the system gets pages of the heap back that are free: every arena
/// would keep its peak, and a server would grow for hours.
int AwaitEnd(const sigset_t& signals, const Engine& engine, bool ends_it,
             rpc::RpcServer& server, FileWatch& files) {
  constexpr timespec kInterval = {.tv_sec = 0, .tv_nsec = 200'000'000};
  constexpr std::chrono::seconds kTrimInterval{10};
  auto trimmed = std::chrono::steady_clock::now();
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &kInterval);
    if (signal == SIGHUP) {
      files.ReadAll();
      continue;
    }
    if (signal > 0) return signal;
    server.UpdateHealth();
    if (ends_it && !engine.health().ok()) return 0;
    const auto now = std::chrono::steady_clock::now();
    if (now - trimmed < kTrimInterval) continue;
    trimmed = now;
    malloc_trim(0);
  }
}

/// Ends the process when that takes longer than `most`.
void EndAfter(absl::Duration most, Log& log) {
  std::thread([most, &log] {
    absl::SleepFor(most);
    log.Event(LogLevel::kError, "stopped_with_work_left",
              {{"seconds", absl::ToInt64Seconds(most)}});
    std::fflush(nullptr);
    std::_Exit(kWorkLeft);
  }).detach();
}

void LogDevices(const Engine& engine, Log& log) {
  for (const auto& device : engine.devices()) {
    const core::DeviceInfo& info = device->info();
    log.Info("device",
             {{"name", info.name},
              {"model", info.model},
              {"architecture", info.architecture},
              {"threads", info.thread_count},
              {"memory_limit_bytes", device->memory_limit_bytes()},
              {"staging_limit_bytes", device->staging_limit_bytes()}});
    for (const auto& [key, value] : info.properties) {
      log.Info("device_property",
               {{"name", info.name}, {"key", key}, {"value", value}});
    }
  }
  for (const std::string& omission : engine.omissions()) {
    log.Info("omitted", {{"message", omission}});
  }
}

/// Null when no file is named.
std::unique_ptr<PlanStore> OpenPlanStore(const Options& options,
                                         core::PlanCache& plans, Log& log) {
  if (options.plan_store.empty()) return nullptr;
  return std::make_unique<PlanStore>(
      PlanStore::Options{.path = options.plan_store,
                         .interval = options.plan_store_interval,
                         .writer = absl::StrCat("tensord ", kVersion)},
      plans,
      [&log](absl::string_view event, int64_t entries,
             const absl::Status& status) {
        if (status.ok()) {
          log.Info(event, {{"entries", entries}});
        } else {
          log.Event(LogLevel::kWarning, event, {{"message", status.message()}});
        }
      });
}

/// Null when no Redis is named.
std::unique_ptr<PlanExchange> OpenPlanExchange(const Options& options,
                                               core::PlanCache& plans,
                                               Log& log) {
  if (options.plan_exchange.empty()) return nullptr;
  return std::make_unique<PlanExchange>(
      PlanExchange::Options{.address = options.plan_exchange,
                            .password = options.plan_exchange_password,
                            .interval = options.plan_exchange_interval},
      plans, [&log](const absl::Status& status) {
        if (status.ok()) {
          log.Info("plan_exchange_works", {});
        } else {
          log.Event(LogLevel::kWarning, "plan_exchange_failed",
                    {{"message", status.message()}});
        }
      });
}

/// Null when no address is given.
absl::StatusOr<std::unique_ptr<http::HttpListener>> ListenHttp(
    const http::HttpOptions& options, const http::Routes& routes,
    absl::string_view what, Log& log) {
  if (options.address.empty()) return nullptr;
  auto listener = http::HttpListener::Start(options, routes);
  if (listener.ok()) {
    log.Info("listening", {{"address", (*listener)->address()}, {"for", what}});
  }
  return listener;
}

/// What shows the server over HTTP, from its start to its end.
struct Observers {
  explicit Observers(const Health& health) : monitoring(health) {}

  absl::Status Listen(const MonitoringOptions& options,
                      const Certificates* certificates, Log& log) {
    TENSORD_ASSIGN_OR_RETURN(
        metrics, ListenHttp({.address = options.metrics,
                             .certificates = certificates,
                             .token_file = options.token_file},
                            monitoring.MetricsRoutes(), "metrics", log));
    TENSORD_ASSIGN_OR_RETURN(
        probes, ListenHttp({.address = options.probes},
                           monitoring.ProbeRoutes(), "probes", log));
    return absl::OkStatus();
  }

  http::Monitoring monitoring;
  std::unique_ptr<http::HttpListener> metrics;
  std::unique_ptr<http::HttpListener> probes;
};

/// Says when a certificate ends, aloud when that is soon.
void LogCertificate(const Certificates& certificates, Log& log) {
  constexpr absl::Duration kSoon = absl::Hours(24 * 14);
  const absl::Time expires = certificates.contents()->expires;
  log.Event(
      expires - absl::Now() < kSoon ? LogLevel::kWarning : LogLevel::kInfo,
      "certificate",
      {{"file", certificates.files().certificate},
       {"expires", absl::FormatTime(expires, absl::UTCTimeZone())}});
}

/// Null without TLS.
absl::StatusOr<std::unique_ptr<Certificates>> LoadCertificates(
    const CertificateFiles& files, Log& log) {
  if (files.certificate.empty()) return nullptr;
  auto certificates = Certificates::Load(files);
  if (certificates.ok()) LogCertificate(**certificates, log);
  return certificates;
}

/// What files that may change have a say in.
///
/// Lifetime  outlives those who look at the files; it refers to all else.
struct Reloading {
  const Options& options;
  Authenticator& authenticator;
  std::vector<Certificates*> certificates;  // some may be null
  SessionManager& sessions;
  Engine& engine;
  Metrics& metrics;
  Log& log;
};

/// What is read again when it changes.
std::vector<std::string> WatchedFiles(const Options& options) {
  std::vector<std::string> paths = {options.identity.tokens,
                                    options.identity.jwt_keys, options.tenants};
  for (const CertificateFiles* const tls :
       {&options.tls, &options.monitoring.tls}) {
    const std::vector<std::string> more = tls->paths();
    paths.insert(paths.end(), more.begin(), more.end());
  }
  return paths;
}

/// Has the server do as the file of tenants says.
absl::Status ApplyTenants(const Reloading& to) {
  const std::string& file = to.options.tenants;
  if (file.empty()) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  TENSORD_ASSIGN_OR_RETURN(const Tenants tenants, ParseTenants(file, text));
  std::map<std::string, TenantLimits, std::less<>> limits;
  std::map<std::string, double> weights = to.options.engine.weights;  // of jobs
  std::vector<std::string> names;
  for (const auto& [name, shares] : tenants) {
    limits[name] = {.priority = shares.priority, .sessions = shares.sessions};
    weights[OwnerOfTenant(name)] = shares.weight;
    names.push_back(name);
  }
  to.authenticator.SetTenants(tenants);
  to.sessions.SetTenants(std::move(limits));
  to.metrics.SetTenants(names);
  for (const auto& device : to.engine.devices()) {
    device->worker().SetWeights(weights);
  }
  return absl::OkStatus();
}

/// Reads what says who is who, and what they may, again when it changes.
void Watch(FileWatch& files, const Reloading& to) {
  const auto tell = [&to](absl::string_view what, const absl::Status& status) {
    to.metrics.CountReload(what, status.ok());
    if (status.ok()) {
      to.log.Info("reloaded", {{"what", what}});
    } else {
      to.log.Event(LogLevel::kError, "kept",
                   {{"what", what}, {"message", status.message()}});
    }
  };
  for (Certificates* const certificates : to.certificates) {
    if (certificates == nullptr) continue;
    files.Add(certificates->files().paths(), [certificates, tell, &to] {
      const absl::Status reloaded = certificates->Reload();
      tell("certificates", reloaded);
      if (reloaded.ok()) LogCertificate(*certificates, to.log);
    });
  }
  if (!to.authenticator.paths().empty()) {
    files.Add(to.authenticator.paths(),
              [tell, &to] { tell("tokens", to.authenticator.Reload()); });
  }
  if (!to.options.tenants.empty()) {
    files.Add({to.options.tenants},
              [tell, &to] { tell("tenants", ApplyTenants(to)); });
  }
  files.Start();
}

int Serve(const Options& options, const sigset_t& signals) {
  // More than caches hold, and a fraction of a second on any device.
  constexpr int64_t kBandwidthBytes = int64_t{256} << 20;
  Log log(options.log_level, options.log_format);
  FileWatch files(WatchedFiles(options));  // before they are read
  Health health;
  Metrics metrics;
  const auto certificates = LoadCertificates(options.tls, log);
  if (!certificates.ok()) {
    return Fail(log, "bad_certificate", certificates.status());
  }
  const auto metrics_certificates =
      LoadCertificates(options.monitoring.tls, log);
  if (!metrics_certificates.ok()) {
    return Fail(log, "bad_certificate", metrics_certificates.status());
  }
  const http::ProcessGauges process_gauges{std::string(kVersion)};
  const http::CertificateGauges certificate_gauges(
      {{"grpc", certificates->get()}, {"http", metrics_certificates->get()}});
  Observers observers(health);
  observers.monitoring.Add(metrics.registry());
  observers.monitoring.Add(process_gauges);
  observers.monitoring.Add(certificate_gauges);
  const absl::Status observed =
      observers.Listen(options.monitoring, metrics_certificates->get(), log);
  if (!observed.ok()) return Fail(log, "cannot_listen", observed);
  EngineOptions engine_options = options.engine;
  engine_options.bandwidth_bytes = kBandwidthBytes;
  const auto authenticator = Authenticator::Create(options.identity);
  if (!authenticator.ok()) {
    return Fail(log, "bad_tokens", authenticator.status());
  }
  const auto engine = Engine::Create(engine_options);
  if (!engine.ok()) return Fail(log, "no_device", engine.status());
  LogDevices(**engine, log);
  const auto plan_store = OpenPlanStore(options, (*engine)->plans(), log);
  const auto plan_exchange = OpenPlanExchange(options, (*engine)->plans(), log);
  SessionManager sessions(
      **engine, options.sessions, [&log, &metrics](const auto& session) {
        metrics.expired_sessions().Increment();
        log.Info("session_expired", {{"session", session.number()},
                                     {"job", session.options().job}});
      });
  rpc::ServiceContext context{.engine = **engine,
                              .sessions = sessions,
                              .log = log,
                              .metrics = metrics,
                              .health = health,
                              .plan_store = plan_store.get(),
                              .plan_exchange = plan_exchange.get(),
                              .authenticator = authenticator->get(),
                              .queue_limit = options.engine.queue_limit,
                              .limits = {},
                              .transfer_idle = options.transfer_idle};
  const Reloading reloading{
      .options = options,
      .authenticator = **authenticator,
      .certificates = {certificates->get(), metrics_certificates->get()},
      .sessions = sessions,
      .engine = **engine,
      .metrics = metrics,
      .log = log};
  const absl::Status shared = ApplyTenants(reloading);
  if (!shared.ok()) return Fail(log, "bad_tenants", shared);
  Watch(files, reloading);
  rpc::RpcServerOptions serving = {
      .listen = options.listen,
      .certificates = certificates->get(),
      .must_have_certificate = !(*authenticator)->asks_for_bearer(),
      .takes_admin = options.admin_listen.empty(),
      .socket_mode = options.socket_mode,
      .loop_count = options.loop_count};
  const auto server = rpc::RpcServer::Start(serving, context);
  if (!server.ok()) return Fail(log, "cannot_listen", server.status());
  std::unique_ptr<rpc::RpcServer> admin;
  if (!options.admin_listen.empty()) {
    serving.listen = options.admin_listen;
    serving.takes_admin = true;
    serving.loop_count = 1;
    auto started = rpc::RpcServer::Start(serving, context);
    if (!started.ok()) return Fail(log, "cannot_listen", started.status());
    admin = *std::move(started);
  }
  // Nothing of this ends before the process does.
  const http::ServerGauges server_gauges(**engine, sessions, metrics,
                                         plan_exchange.get());
  observers.monitoring.Add(server_gauges);
  const http::StatusSource status{.engine = **engine,
                                  .sessions = sessions,
                                  .metrics = metrics,
                                  .health = health,
                                  .version = std::string(kVersion)};
  observers.monitoring.Show(status);
  for (const auto& address : (*server)->addresses()) {
    log.Info("listening", {{"address", address}, {"version", kVersion}});
  }
  if (admin) {
    for (const auto& address : admin->addresses()) {
      log.Info("listening_for_operators", {{"address", address}});
    }
  }
  NotifyServiceManager("READY=1");

  const int signal = AwaitEnd(
      signals, **engine,
      options.exit_on_device_loss.value_or((*engine)->devices().size() == 1),
      **server, files);
  log.Info("draining",
           {{"reason", signal > 0 ? strsignal(signal) : "device lost"},
            {"timeout_seconds", absl::ToInt64Seconds(options.drain_timeout)}});
  NotifyServiceManager("STOPPING=1");
  sigset_t ends = signals;
  sigdelset(&ends, SIGHUP);
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);  // a second one ends it now
  EndAfter(options.drain_timeout + absl::Seconds(1), log);
  // What goes wrong is in the log. Before what may take long, and again for the
  // plans of what ends now.
  if (plan_store) plan_store->Save().IgnoreError();
  if (admin) admin->Drain(absl::ZeroDuration());  // which takes work, too
  (*server)->Drain(options.drain_timeout);
  if (plan_store) plan_store->Save().IgnoreError();
  if (plan_exchange) plan_exchange->Exchange().IgnoreError();
  log.Info("stopped", {{"sessions", sessions.session_count()}});
  // Not through destructors: gRPC's own end can go on polling, for up to 10 s,
  // a connection that a client has left open.
  std::fflush(nullptr);
  std::_Exit(signal > 0 ? kStopped : kDeviceLost);
}

}  // namespace
}  // namespace tensord::server

int main(int argc, char** argv) {
  tensord::server::TuneHeap();
  // Debian's Abseil looks for deadlocks in every build, under one lock for the
  // whole process: that costs more than all else in a plan cache hit.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // gRPC stays until the process ends: its last user would wait for its poller,
  // up to 10 s.
  grpc_init();
  // Before any thread starts, so that all inherit the mask.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto parsed = tensord::server::ParseOptions(argc, argv, environ);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  return tensord::server::Serve(std::get<tensord::server::Options>(parsed),
                                signals);
}
