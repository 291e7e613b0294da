#include "server/process/server_process.h"

#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/base/version.h"
#include "server/config/access_report.h"
#include "server/engine/host_memory.h"
#include "server/execution/background.h"
#include "server/process/grpc_log.h"

namespace tensord::server {
namespace {

/// Whether nothing else computes as fast when a device is lost.
bool IsOfOneAccelerator(const Engine& engine) {
  const auto is_accelerator = [](const auto& device) {
    return device->info().kind != "cpu";
  };
  return std::ranges::count_if(engine.devices(), is_accelerator) <= 1;
}

// Of what is not waited for.
constexpr absl::Duration kFarewell = absl::Milliseconds(500);

// What an end may take beyond what running calls are given: the time of the
// refusals before, calls that end, plans that are saved to a disk and sent to a
// Redis, traces. On a busy machine that is more than a second; service managers
// allow for it (deploy/docs/operating.md).
constexpr absl::Duration kEndMost = absl::Seconds(5);

/// What the heap may hold that nothing counts; of little memory less.
HeapWatch::Limits HeapLimits() {
  constexpr int64_t kMostArriving = int64_t{256} << 20;
  const int64_t arriving = std::min(kMostArriving, HostMemoryBytes() / 16);
  return {.arriving_bytes = arriving, .spare_bytes = 4 * arriving};
}

/// Refuses a plan store, if any, whose folder is not there: it would be missed
/// only when the file is to be written.
absl::Status CheckFolder(const std::string& plan_store) {
  if (plan_store.empty()) return absl::OkStatus();
  const std::filesystem::path folder =
      std::filesystem::absolute(plan_store).parent_path();
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return absl::OkStatus();
  return core::Error(
      absl::StatusCode::kUnavailable, "PLAN_STORE_FAILED",
      absl::StrCat("plan-store is ", plan_store, ", but there is no folder ",
                   folder.string()));
}

}  // namespace

ServerProcess::ServerProcess(const Options& options)
    : options_(options),
      log_(options.log_level, options.log_format),
      files_(options, metrics_, log_),
      process_gauges_(std::string(core::kVersion), health_),
      monitoring_(health_),
      drain_nanoseconds_(absl::ToInt64Nanoseconds(options.drain_timeout)),
      connections_(std::make_shared<rpc::Connections>(
          rpc::ConnectionLimits{.total = options.max_connections,
                                .per_peer = options.max_connections_per_peer})),
      heap_watch_(HeapLimits()) {}

bool ServerProcess::Start() {
  TakeGrpcLog(log_);
  if (!Succeeds("bad_audit_log", files_.OpenAudit()) ||
      !Succeeds("bad_certificate", files_.ReadCertificates()) ||
      !Succeeds("cannot_listen", ListenForMonitoring()) ||
      !Succeeds("bad_tokens", files_.ReadIdentities()) ||
      !Succeeds("bad_plan_store", CheckFolder(options_.plan_store)) ||
      !Succeeds("no_device", StartEngine()) ||
      !Succeeds("bad_tenants", files_.Follow(*sessions_, *engine_)) ||
      !Succeeds("cannot_listen", ServeRpc())) {
    return false;
  }
  files_.Start();
  server_gauges_.emplace(*engine_, *sessions_, metrics_, plan_exchange_.get());
  monitoring_.Add(*server_gauges_);
  status_.emplace(http::StatusSource{.engine = *engine_,
                                     .sessions = *sessions_,
                                     .metrics = metrics_,
                                     .health = health_,
                                     .version = std::string(core::kVersion)});
  monitoring_.Show(*status_);
  for (const auto& address : server_->addresses()) {
    log_.Info("listening", {{"address", address}, {"version", core::kVersion}});
  }
  if (admin_) {
    for (const auto& address : admin_->addresses()) {
      log_.Info("listening_for_operators", {{"address", address}});
    }
  }
  LogAccess();
  NotifyServiceManager("READY=1");
  return true;
}

void ServerProcess::LogAccess() {
  const OperatorsReport operators =
      ReportOperators(options_, files_.authenticator());
  log_.Info("operators", {{"who", operators.who}, {"why", operators.why}});
  const AccessReport access = ReportAccess(options_, files_.authenticator());
  log_.Info("open", {{"to_anybody", access.anybody},
                     {"to_users", access.users},
                     {"to_operators", access.operators}});
}

bool ServerProcess::Succeeds(absl::string_view event,
                             const absl::Status& status) {
  if (!status.ok()) {
    log_.Event(
        LogLevel::kError, event,
        {{"reason", core::ReasonOf(status)}, {"message", status.message()}});
  }
  return status.ok();
}

absl::Status ServerProcess::ListenForMonitoring() {
  certificate_gauges_.emplace(
      http::CertificateGauges::ByUse{{"grpc", files_.certificates()},
                                     {"http", files_.metrics_certificates()}});
  monitoring_.Add(metrics_.registry());
  monitoring_.Add(process_gauges_);
  monitoring_.Add(gpu_gauges_);
  monitoring_.Add(*certificate_gauges_);
  const MonitoringOptions& options = options_.monitoring;
  TENSORD_ASSIGN_OR_RETURN(
      metrics_listener_,
      ListenHttp({.address = options.metrics,
                  .certificates = files_.metrics_certificates(),
                  .token_file = options.token_file},
                 monitoring_.MetricsRoutes(), "metrics"));
  TENSORD_ASSIGN_OR_RETURN(probe_listener_,
                           ListenHttp({.address = options.probes},
                                      monitoring_.ProbeRoutes(), "probes"));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<http::HttpListener>> ServerProcess::ListenHttp(
    const http::HttpOptions& options, const http::Routes& routes,
    absl::string_view what) {
  if (options.address.empty()) return nullptr;
  auto listener = http::HttpListener::Start(options, routes);
  if (listener.ok()) {
    log_.Info("listening",
              {{"address", (*listener)->address()}, {"for", what}});
  }
  return listener;
}

absl::Status ServerProcess::StartEngine() {
  // More than caches hold, and a fraction of a second on any device.
  constexpr int64_t kBandwidthBytes = int64_t{256} << 20;
  EngineOptions options = options_.engine;
  options.bandwidth_bytes = kBandwidthBytes;
  // Where nobody is asked who they are, there is one tenant.
  options.clears_memory = files_.authenticator().asks();
  TENSORD_ASSIGN_OR_RETURN(engine_, Engine::Create(options));
  LogDevices();
  if (!engine_->missing_gpu().empty()) {
    const std::string remark =
        absl::StrCat("computing on the CPU, ", engine_->missing_gpu());
    log_.Event(LogLevel::kWarning, "no_gpu", {{"message", remark}});
    health_.Note(remark);
  }
  plan_store_ = OpenPlanStore();
  plan_exchange_ = OpenPlanExchange();
  sessions_.emplace(*engine_, options_.sessions, [this](const auto& session) {
    metrics_.expired_sessions().Increment();
    log_.Info("session_expired",
              {{"session", session.number()}, {"job", session.options().job}});
  });
  return absl::OkStatus();
}

void ServerProcess::LogDevices() {
  for (const auto& device : engine_->devices()) {
    const core::DeviceInfo& info = device->info();
    log_.Info("device",
              {{"name", info.name},
               {"model", info.model},
               {"architecture", info.architecture},
               {"threads", info.thread_count},
               {"memory_limit_bytes", device->memory_limit_bytes()},
               {"staging_limit_bytes", device->staging_limit_bytes()}});
    for (const auto& [key, value] : info.properties) {
      log_.Info("device_property",
                {{"name", info.name}, {"key", key}, {"value", value}});
    }
    if (info.uses_host_memory &&
        device->memory_limit_bytes() > HostMemoryBytes()) {
      log_.Event(
          LogLevel::kWarning, "memory_limit_too_large",
          {{"message",
            absl::StrCat("--memory-limit-bytes is ",
                         device->memory_limit_bytes(), ", but the process has ",
                         HostMemoryBytes(), " bytes, and ends beyond")}});
    }
  }
  for (const std::string& omission : engine_->omissions()) {
    log_.Info("omitted", {{"message", omission}});
  }
}

std::unique_ptr<PlanStore> ServerProcess::OpenPlanStore() {
  if (options_.plan_store.empty()) return nullptr;
  return std::make_unique<PlanStore>(
      PlanStore::Options{.path = options_.plan_store,
                         .interval = options_.plan_store_interval,
                         .writer = absl::StrCat("tensord ", core::kVersion)},
      engine_->plans(),
      [this](absl::string_view event, int64_t entries,
             const absl::Status& status) {
        if (status.ok()) {
          log_.Info(event, {{"entries", entries}});
        } else {
          log_.Event(LogLevel::kWarning, event,
                     {{"message", status.message()}});
        }
      });
}

std::unique_ptr<PlanExchange> ServerProcess::OpenPlanExchange() {
  if (options_.plan_exchange.empty()) return nullptr;
  return std::make_unique<PlanExchange>(
      PlanExchange::Options{.address = options_.plan_exchange,
                            .password = options_.plan_exchange_password,
                            .interval = options_.plan_exchange_interval},
      engine_->plans(), [this](const absl::Status& status) {
        if (status.ok()) {
          log_.Info("plan_exchange_works", {});
        } else {
          log_.Event(LogLevel::kWarning, "plan_exchange_failed",
                     {{"message", status.message()}});
        }
      });
}

std::unique_ptr<OtlpExporter> ServerProcess::OpenTraceExporter() {
  if (options_.traces.collector.empty()) return nullptr;
  return std::make_unique<OtlpExporter>(
      options_.traces.collector, std::string(core::kVersion), metrics_,
      [this](const absl::Status& status) {
        if (status.ok()) {
          log_.Info("trace_export_works", {});
        } else {
          log_.Event(LogLevel::kWarning, "trace_export_failed",
                     {{"message", status.message()}});
        }
      });
}

absl::Status ServerProcess::ServeRpc() {
  trace_exporter_ = OpenTraceExporter();
  context_.reset(new rpc::ServiceContext{
      .engine = *engine_,
      .sessions = *sessions_,
      .log = log_,
      .metrics = metrics_,
      .health = health_,
      .plan_store = plan_store_.get(),
      .plan_exchange = plan_exchange_.get(),
      .authenticator = &files_.authenticator(),
      .queue_limit = options_.engine.queue_limit,
      .limits = {},
      .transfer_idle = options_.transfer_idle,
      .stream_idle = options_.stream_idle,
      .trace_export = {.queue = trace_exporter_ ? &trace_exporter_->queue()
                                                : nullptr,
                       .ratio = options_.traces.ratio},
      .process = {.settings = options_.settings,
                  .drain = [this](auto timeout) { Drain(timeout); },
                  .reload = [this] { return files_.Reload(); }}});
  rpc::RpcServerOptions options = {
      .listen = options_.listen,
      .allows_remote = options_.allows_remote,
      .certificates = files_.certificates(),
      .must_have_certificate = !files_.authenticator().asks_for_bearer(),
      .knows_user = nullptr,
      .takes_admin = options_.admin_listen.empty(),
      .connections = connections_,
      .socket_mode = options_.socket_mode,
      .takes_shared_memory = options_.takes_shared_memory,
      .loop_count = options_.loop_count};
  if (files_.authenticator().takes_users()) {
    options.knows_user = [this](uid_t user) {
      return files_.authenticator().Knows(user);
    };
  }
  heap_watch_.Look(sessions_->host_memory()->used_bytes(), /*is_quiet=*/true,
                   /*ended=*/0);
  TENSORD_ASSIGN_OR_RETURN(server_, rpc::RpcServer::Start(options, *context_));
  if (options_.admin_listen.empty()) return absl::OkStatus();
  options.listen = options_.admin_listen;
  options.takes_admin = true;
  options.is_operators = true;
  options.loop_count = 1;
  TENSORD_ASSIGN_OR_RETURN(admin_, rpc::RpcServer::Start(options, *context_));
  return absl::OkStatus();
}

int ServerProcess::AwaitEnd(const sigset_t& signals) {
  constexpr timespec kInterval = {.tv_sec = 0, .tv_nsec = 100'000'000};
  constexpr std::chrono::seconds kTrimInterval{10};
  constexpr absl::Duration kAnswer = absl::Milliseconds(50);  // to who drains
  const bool loss_ends_it =
      options_.exit_on_device_loss.value_or(IsOfOneAccelerator(*engine_));
  auto trimmed = std::chrono::steady_clock::now();
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &kInterval);
    if (signal == SIGHUP) {
      files_.ReadAll();
      continue;
    }
    if (signal > 0) return signal;
    if (is_draining_) {
      absl::SleepFor(kAnswer);
      return SIGTERM;
    }
    UpdateHealth();
    EndUnknown();
    WatchHeap();
    if (loss_ends_it && !engine_->health().ok()) return 0;
    const auto now = std::chrono::steady_clock::now();
    if (now - trimmed < kTrimInterval) continue;
    trimmed = now;
    malloc_trim(0);
    heap_watch_.LookNext();
    connection_count_ = connections_->count();
    metrics_.connections().Set(static_cast<double>(connection_count_));
    files_.WarnOfExpiry();
  }
}

void ServerProcess::Drain(std::optional<absl::Duration> timeout) {
  if (timeout) drain_nanoseconds_ = absl::ToInt64Nanoseconds(*timeout);
  is_draining_ = true;
}

void ServerProcess::UpdateHealth() {
  server_->UpdateHealth();
  if (admin_) admin_->UpdateHealth();
}

void ServerProcess::EndUnknown() {
  if (files_.authenticator().asks()) {
    context_->door.running().StopUnknown(TokenInvalid());
  }
  if (files_.certificates() == nullptr) return;
  const uint64_t losses = files_.certificates()->contents()->loss_count;
  if (losses == authority_losses_) return;
  authority_losses_ = losses;
  connections_->EndOfHosts();
  log_.Info("connections_ended",
            {{"reason", "an authority of clients is gone"}});
}

void ServerProcess::WatchHeap() {
  // A look takes a hundredth of the time at most, but is made every second.
  constexpr int kShare = 100;
  constexpr absl::Duration kLatest = absl::Seconds(1);
  constexpr int64_t kConnectionBytes = int64_t{1} << 15;  // with TLS
  const auto now = std::chrono::steady_clock::now();
  if (now < heap_look_) return;
  const absl::Duration begun = ThreadTime();
  const int64_t counted = sessions_->host_memory()->used_bytes() +
                          engine_->plans().statistics().bytes +
                          connection_count_ * kConnectionBytes;
  const bool is_quiet =
      !server_->has_calls() && !(admin_ && admin_->has_calls());
  const int64_t ended =
      server_->ended_waits() + (admin_ ? admin_->ended_waits() : 0);
  const HeapWatch::Excess excess =
      heap_watch_.Look(counted, is_quiet, ended - ended_waits_);
  ended_waits_ = ended;
  heap_look_ = now + absl::ToChronoNanoseconds(
                         std::min(kShare * (ThreadTime() - begun), kLatest));
  arriving_.TakeAnyway(sessions_->host_memory(), HostUse::kArriving,
                       heap_watch_.arriving_bytes());
  if (excess != HeapWatch::Excess::kNone) {
    EndWaits(/*all=*/excess != HeapWatch::Excess::kRequests);
  }
  if (excess == HeapWatch::Excess::kConnections) {
    EndConnections(counted);
  } else if (now - flood_ended_ >= flood_rest_) {
    flood_rest_ = {};
  }
}

void ServerProcess::EndWaits(bool all) {
  constexpr std::chrono::seconds kSilence{10};
  const int64_t bytes = heap_watch_.arriving_bytes();
  const auto now = std::chrono::steady_clock::now();
  if (now - waits_ended_ >= kSilence) {
    waits_ended_ = now;
    log_.Event(LogLevel::kWarning, "calls_ended",
               {{"reason", "much has come of messages that are not whole"},
                {"arriving_bytes", bytes}});
  }
  const absl::Status why = core::ResourceExhausted(
      "HOST_MEMORY_LIMIT", "messages that are not whole take ", bytes,
      " bytes of host memory, ", heap_watch_.limits().arriving_bytes,
      " may; retry later, and send the message as a whole");
  server_->EndWaits(all, why);
  if (admin_) admin_->EndWaits(all, why);
}

void ServerProcess::EndConnections(int64_t counted) {
  // Until what was held is free; longer when it does not become so.
  constexpr std::chrono::seconds kRest{2};
  constexpr std::chrono::seconds kMostRest{300};
  const auto now = std::chrono::steady_clock::now();
  if (now - flood_ended_ < flood_rest_) return;
  flood_ended_ = now;
  flood_rest_ = std::clamp(2 * flood_rest_, kRest, kMostRest);
  connections_->EndAll();
  log_.Event(LogLevel::kWarning, "connections_ended",
             {{"reason", "more has come than is counted"},
              {"heap_bytes", heap_watch_.heap_bytes()},
              {"counted_bytes", counted},
              {"rest_seconds", flood_rest_.count()}});
}

void ServerProcess::EndAfter(absl::Duration most) {
  try {
    std::thread([this, most] {
      absl::SleepFor(most);
      log_.Event(LogLevel::kError, "stopped_with_work_left",
                 {{"seconds", absl::ToInt64Seconds(most)}});
      std::fflush(nullptr);
      std::_Exit(kWorkLeft);
    }).detach();
  } catch (const std::system_error&) {
    // There are no more threads: the system ends it, without a word.
    alarm(static_cast<unsigned>(absl::ToInt64Seconds(most)) + 1);
  }
}

void ServerProcess::End(int signal) {
  const absl::Duration timeout = absl::Nanoseconds(drain_nanoseconds_.load());
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);  // a second one ends it now
  EndAfter(timeout + kEndMost);
  log_.Info("draining", {{"reason", is_draining_ ? "operator"
                                    : signal > 0 ? strsignal(signal)
                                                 : "device lost"},
                         {"timeout_seconds", absl::ToInt64Seconds(timeout)}});
  NotifyServiceManager("STOPPING=1");
  server_->Leave();
  if (admin_) admin_->Leave();
  // What goes wrong is in the log. Before what may take long, and again for the
  // plans of what ends now.
  if (plan_store_) plan_store_->Save().IgnoreError();
  std::thread other;  // which takes work, too
  try {
    if (admin_) {
      other = std::thread([this, timeout] { admin_->Drain(timeout); });
    }
  } catch (const std::system_error&) {
    // There are no more threads: then one after the other.
  }
  server_->Drain(timeout);
  if (other.joinable()) other.join();
  if (admin_) admin_->Drain(timeout);
  if (plan_store_) plan_store_->Save().IgnoreError();
  if (plan_exchange_) plan_exchange_->Exchange().IgnoreError();
  if (trace_exporter_) trace_exporter_->Flush(kFarewell);
  log_.Info("stopped", {{"sessions", sessions_->session_count()}});
  // Not through destructors: gRPC's own end can go on polling, for up to 10 s,
  // a connection that a client has left open.
  std::fflush(nullptr);
  std::_Exit(signal > 0 ? kStopped : kDeviceLost);
}

}  // namespace tensord::server
