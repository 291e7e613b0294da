#include "server/rpc/rpc_server.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/config/options.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/compute_service.h"
#include "server/rpc/coroutine/serve.h"
#include "server/rpc/door/tls_credentials.h"
#include "server/rpc/health/health_service.h"
#include "server/rpc/listening/listener.h"
#include "server/rpc/plan_cache_service.h"
#include "server/rpc/plan_service.h"
#include "server/rpc/program_service.h"
#include "server/rpc/reflection/reflection_service.h"
#include "server/rpc/session_service.h"
#include "server/rpc/tensor_service.h"
#include "server/rpc/tracing/trace_service.h"
#include "server/rpc/view_service.h"
#include "server/shared_memory/broker.h"
#include "server/shared_memory/local_socket.h"

namespace tensord::rpc {
namespace {

// What a call may send before the server reads it: a message of an upload.
constexpr int64_t kWindowBytes = 1 << 20;

/// Where clients of a server with those addresses bring their memory: beside
/// each Unix socket, and at one abstract name if TCP leads to this host's own.
/// What cannot be had is logged: they do without.
std::vector<shared_memory::LocalSocket> ListenForMemory(
    const std::vector<std::string>& addresses, int mode, server::Log& log) {
  std::vector<std::string> paths;
  bool has_loopback = false;
  for (const std::string& address : addresses) {
    if (IsLocal(address)) {
      paths.push_back(
          absl::StrCat(absl::StripPrefix(address, "unix:"), ".shm"));
    } else {
      has_loopback = has_loopback || absl::StartsWith(address, "localhost:") ||
                     absl::StartsWith(address, "127.") ||
                     absl::StartsWith(address, "[::1]:");
    }
  }
  if (has_loopback) paths.emplace_back();  // an abstract name
  std::vector<shared_memory::LocalSocket> sockets;
  for (const std::string& path : paths) {
    auto socket = shared_memory::LocalSocket::Listen(path, mode);
    if (socket.ok()) {
      sockets.push_back(*std::move(socket));
    } else {
      log.Event(server::LogLevel::kWarning, "no_shared_memory",
                {{"message", socket.status().message()}});
    }
  }
  return sockets;
}

using MakeService = std::unique_ptr<Service> (*)(ServiceContext&);

template <typename S>
std::unique_ptr<Service> Make(ServiceContext& context) {
  return std::make_unique<S>(context);
}

/// Without a quota of memory: where that is used up, gRPC ends calls at random,
/// whoever makes them, and gRPC 1.51 crashes over it.
void LimitConnections(const RpcServerOptions& options,
                      grpc::ServerBuilder& builder) {
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
  // By itself gRPC sizes windows by what a connection can carry, and shrinks
  // them while others need memory. Then more can have come than the smaller
  // one holds, and gRPC resets a call whose empty last frame comes next. Fixed
  // windows let about 1 MiB come a round trip.
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kWindowBytes);
  // gRPC would inflate what is compressed before its length is looked at.
  set(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  set(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
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
        refusal(options.refusal),
        listener(*connections, options.is_operators,
                 [this](Connections::Answer answer, absl::string_view peer) {
                   CountRefused(answer, peer);
                 }) {
    for (const MakeService make : kServices) all.push_back(make(context));
    if (!options.takes_admin) return;
    std::vector<std::string> names = {
        "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"};
    for (const auto& service : all) names.push_back(service->raw().name());
    all.push_back(
        std::make_unique<ReflectionService>(context, std::move(names)));
  }

  ServiceContext& context;
  std::vector<std::unique_ptr<Service>> all;
  HealthService health{context.health, context.door};
  // Of the addresses, in order.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials;
  std::optional<LoopGroup> loops;
  std::optional<PeerUsers> users;                 // who are known
  std::unique_ptr<shared_memory::Broker> broker;  // null: there is none
  std::unique_ptr<grpc::Server> server;
  const std::shared_ptr<Connections> connections;
  const absl::Duration refusal;
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
  if (options.takes_shared_memory && !options.is_operators) {
    result->TakeSharedMemory(options);
  }
  for (const auto& service : services.all) service->ServeOn(*services.loops);
  services.health.ServeOn(services.loops->calls());
  services.loops->Start();
  // Before anybody can ask.
  context.health.Enter(server::Health::Phase::kServing);
  services.listener.Start();
  services.is_drained = false;
  services.health.Changed();
  return result;
}

absl::Status RpcServer::Listen(const RpcServerOptions& options) {
  Services& services = *services_;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(services.context.limits.max_message_bytes));
  LimitConnections(options, builder);
  TENSORD_ASSIGN_OR_RETURN(std::vector<BoundAddress> addresses, Bind(options));
  const auto is_local = [](const BoundAddress& bound) {
    return IsLocal(bound.address());
  };
  if (std::ranges::any_of(addresses, is_local)) {
    services.users.emplace(builder, options.knows_user);
  }
  for (BoundAddress& bound : addresses) {
    addresses_.push_back(bound.address());
    if (is_local(bound)) {
      services.listener.Add(std::move(bound), *services.users);
      continue;
    }
    // Each address has its own: each is told once of new certificates.
    services.credentials.push_back(
        options.certificates != nullptr
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
    service->raw().Register(builder);
  }
  services.health.Register(builder);
  services.loops.emplace(
      builder,
      LoopGroup::Options{.loop_count = options.loop_count,
                         .takes_admin = options.takes_admin,
                         .connections = *services.connections,
                         .most_calls = options.max_streams},
      services.context.door, services.context.parser);
  services.server = builder.BuildAndStart();
  if (services.server == nullptr) {
    return core::Error(absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
                       "gRPC does not start its server");
  }
  services.loops->SetServer(*services.server);
  return absl::OkStatus();
}

void RpcServer::TakeSharedMemory(const RpcServerOptions& options) {
  ServiceContext& context = services_->context;
  std::vector<shared_memory::LocalSocket> sockets =
      ListenForMemory(addresses_, options.socket_mode, context.log);
  if (sockets.empty()) return;
  services_->broker = std::make_unique<shared_memory::Broker>(
      shared_memory::BrokerLimits(), context.log, context.metrics);
  for (auto& socket : sockets) services_->broker->Add(std::move(socket));
  services_->broker->Start();
  context.shared_memory = services_->broker.get();
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
  services_->health.Changed();
}

bool RpcServer::has_calls() const { return services_->loops->has_calls(); }

void RpcServer::EndWaits(bool all, const absl::Status& why) {
  if (!services_->is_drained) services_->loops->EndWaits(all, why);
}

int64_t RpcServer::ended_waits() const {
  return services_->loops->ended_waits();
}

void RpcServer::Leave() {
  if (services_->is_drained) return;
  services_->context.health.Enter(server::Health::Phase::kDraining);
  services_->health.Changed();
}

void RpcServer::Drain(absl::Duration timeout) {
  if (services_->is_drained) return;
  Leave();
  services_->is_drained = true;
  // gRPC ends calls that arrive during its shutdown as CANCELLED, which says
  // nothing to clients. Those that come now hear UNAVAILABLE and go elsewhere.
  services_->loops->Refuse();
  absl::SleepFor(std::min(timeout, services_->refusal));
  services_->listener.Stop();
  services_->loops->Shutdown(*services_->server,
                             absl::ToChronoMilliseconds(timeout),
                             [this] { services_->connections->EndAll(); });
  // Nobody asks for it any more; the files of its sockets go with it.
  services_->context.shared_memory = nullptr;
  services_->broker.reset();
}

}  // namespace tensord::rpc
