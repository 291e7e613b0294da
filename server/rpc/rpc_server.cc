#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <optional>

#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/config/options.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/compute_service.h"
#include "server/rpc/coroutine/serve.h"
#include "server/rpc/door/tls_credentials.h"
#include "server/rpc/listening/listener.h"
#include "server/rpc/plan_cache_service.h"
#include "server/rpc/plan_service.h"
#include "server/rpc/program_service.h"
#include "server/rpc/session_service.h"
#include "server/rpc/tensor_service.h"
#include "server/rpc/tracing/trace_service.h"
#include "server/rpc/view_service.h"

namespace tensord::rpc {
namespace {

// Bounds the buffers of connections. Smaller ones make gRPC end calls.
constexpr size_t kConnectionMemoryBytes = size_t{256} << 20;

// How long new calls are refused before gRPC shuts down.
constexpr absl::Duration kRefusal = absl::Milliseconds(300);

class WithoutReflection final : public grpc::ServerBuilderOption {
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    std::erase_if(*plugins, [](const auto& plugin) {
      return plugin->name() == "proto_server_reflection";
    });
  }
};

using MakeService = std::unique_ptr<Service> (*)(ServiceContext&);

template <typename S>
std::unique_ptr<Service> Make(ServiceContext& context) {
  return std::make_unique<S>(context);
}

void LimitConnections(const RpcServerOptions& options,
                      grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("tensord");
  quota.Resize(kConnectionMemoryBytes);
  builder.SetResourceQuota(quota);
  // A connection's own beginning takes milliseconds; gRPC would wait 120 s.
  constexpr absl::Duration kHandshake = absl::Seconds(20);
  // More often clients may not ping; gRPC's own bound is 5 minutes.
  constexpr absl::Duration kLeastPingInterval = absl::Seconds(5);
  const auto set = [&](const char* name, int64_t value) {
    builder.AddChannelArgument(name, static_cast<int>(value));
  };
  set(GRPC_ARG_KEEPALIVE_TIME_MS,
      absl::ToInt64Milliseconds(options.keepalive_interval));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
      absl::ToInt64Milliseconds(options.keepalive_timeout));
  set(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
      absl::ToInt64Milliseconds(options.connection_idle));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      absl::ToInt64Milliseconds(kLeastPingInterval));
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      absl::ToInt64Milliseconds(kHandshake));
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams);
}

/// Listens, or takes over what listens, on all addresses.
absl::StatusOr<std::vector<BoundAddress>> Bind(
    const RpcServerOptions& options) {
  std::vector<BoundAddress> addresses;
  for (const std::string& wanted : options.listen) {
    if (wanted != server::kListenSystemd) {
      TENSORD_ASSIGN_OR_RETURN(BoundAddress bound,
                               BoundAddress::Bind(wanted, options.socket_mode));
      addresses.push_back(std::move(bound));
      continue;
    }
    TENSORD_ASSIGN_OR_RETURN(std::vector<BoundAddress> adopted,
                             BoundAddress::Adopt());
    for (BoundAddress& bound : adopted) {
      TENSORD_RETURN_IF_ERROR(server::ValidateListen(
          "--listen=systemd", bound.address(), options.allows_remote));
      addresses.push_back(std::move(bound));
    }
  }
  return addresses;
}

constexpr MakeService kServices[] = {
    Make<AdminService>,     Make<ComputeService>, Make<PlanService>,
    Make<PlanCacheService>, Make<ProgramService>, Make<SessionService>,
    Make<TensorService>,    Make<TraceService>,   Make<ViewService>};

}  // namespace

struct RpcServer::Services {
  Services(ServiceContext& context, const RpcServerOptions& options)
      : context(context),
        connections(options.connections),
        listener(*connections, options.is_operators,
                 [this](Connections::Answer answer, absl::string_view peer) {
                   CountRefused(answer, peer);
                 }) {
    for (const MakeService make : kServices) all.push_back(make(context));
  }

  ServiceContext& context;
  std::vector<std::unique_ptr<Service>> all;
  // Of the addresses, in order.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials;
  std::optional<LoopGroup> loops;
  std::optional<PeerUsers> users;  // who are known
  std::unique_ptr<grpc::Server> server;
  const std::shared_ptr<Connections> connections;
  Listener listener;
  absl::Time said_refused = absl::InfinitePast();  // on the listener's thread
  bool is_healthy = true;
  bool is_drained = true;  // until it serves

  void CountRefused(Connections::Answer answer, absl::string_view peer) {
    constexpr absl::Duration kSilence = absl::Minutes(1);
    const absl::string_view reason =
        answer == Connections::Answer::kTooManyOfPeer  ? "peer"
        : answer == Connections::Answer::kTooManyUsers ? "users"
                                                       : "total";
    context.metrics.RefuseConnection(reason);
    const absl::Time now = absl::Now();
    if (now - said_refused < kSilence) return;
    said_refused = now;
    context.log.Event(server::LogLevel::kWarning, "connection_refused",
                      {{"peer", peer}, {"limit", reason}});
  }
};

RpcServer::RpcServer() = default;

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const RpcServerOptions& options, ServiceContext& context) {
  std::unique_ptr<RpcServer> result(new RpcServer);
  result->services_ = std::make_unique<Services>(context, options);
  Services& services = *result->services_;
  TENSORD_RETURN_IF_ERROR(result->Listen(options));
  for (const auto& service : services.all) service->ServeOn(*services.loops);
  services.loops->Start();
  services.listener.Start();
  services.is_drained = false;
  context.health.Enter(server::Health::Phase::kServing);
  result->TellHealth();
  return result;
}

absl::Status RpcServer::Listen(const RpcServerOptions& options) {
  Services& services = *services_;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  if (!options.takes_admin) {
    builder.SetOption(std::make_unique<WithoutReflection>());
  }
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(services.context.limits.max_message_bytes));
  LimitConnections(options, builder);
  TENSORD_ASSIGN_OR_RETURN(std::vector<BoundAddress> addresses, Bind(options));
  if (options.knows_user) services.users.emplace(builder, options.knows_user);
  for (BoundAddress& bound : addresses) {
    addresses_.push_back(bound.address());
    if (services.users && IsLocal(bound.address())) {
      services.listener.Add(std::move(bound), *services.users);
      continue;
    }
    // Each address has its own: each is told once of new certificates.
    services.credentials.push_back(
        options.certificates != nullptr && !IsLocal(bound.address())
            ? TlsCredentials(*options.certificates,
                             options.must_have_certificate)
            : grpc::InsecureServerCredentials());
    services.listener.Add(std::move(bound),
                          builder.experimental().AddExternalConnectionAcceptor(
                              grpc::ServerBuilder::experimental_type::
                                  ExternalConnectionType::FROM_FD,
                              services.credentials.back()));
  }
  for (const auto& service : services.all) {
    builder.RegisterService(&service->service());
  }
  services.loops.emplace(builder, options.loop_count, services.context.door,
                         options.takes_admin);
  services.server = builder.BuildAndStart();
  if (services.server == nullptr) {
    return core::Error(absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
                       "gRPC does not start its server");
  }
  return absl::OkStatus();
}

RpcServer::~RpcServer() { Drain(absl::ZeroDuration()); }

void RpcServer::UpdateHealth() {
  if (!services_->is_healthy) return;
  const absl::Status health = services_->context.engine.health();
  if (health.ok()) return;
  services_->is_healthy = false;
  services_->context.log.Event(server::LogLevel::kError, "device_lost",
                               {{"message", health.message()}});
  services_->context.health.LoseDevice(health);
  TellHealth();
}

void RpcServer::TellHealth() {
  const server::Health& health = services_->context.health;
  grpc::HealthCheckServiceInterface& checks =
      *services_->server->GetHealthCheckService();
  for (const char* service : {"", "readiness"}) {
    checks.SetServingStatus(service, health.readiness().ok());
  }
  checks.SetServingStatus("liveness", health.liveness().ok());
}

void RpcServer::Drain(absl::Duration timeout) {
  if (services_->is_drained) return;
  services_->is_drained = true;
  services_->context.health.Enter(server::Health::Phase::kDraining);
  TellHealth();
  // gRPC ends calls that arrive during its shutdown as CANCELLED, which says
  // nothing to clients. Those that come now hear UNAVAILABLE and go elsewhere.
  services_->loops->Refuse();
  absl::SleepFor(std::min(timeout, kRefusal));
  services_->listener.Stop();
  services_->loops->Shutdown(*services_->server,
                             absl::ToChronoMilliseconds(timeout));
}

}  // namespace tensord::rpc
