#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/resource_quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/compute_service.h"
#include "server/rpc/coroutine/serve.h"
#include "server/rpc/door/tls_credentials.h"
#include "server/rpc/plan_cache_service.h"
#include "server/rpc/plan_service.h"
#include "server/rpc/program_service.h"
#include "server/rpc/session_service.h"
#include "server/rpc/tensor_service.h"
#include "server/rpc/view_service.h"

namespace tensord::rpc {
namespace {

// Bounds the buffers of connections. Smaller ones make gRPC end calls.
constexpr size_t kConnectionMemoryBytes = size_t{256} << 20;

// How long new calls are refused before gRPC shuts down.
constexpr absl::Duration kRefusal = absl::Milliseconds(300);

/// OK when nobody answers at a Unix socket. gRPC itself would take the path
/// away from a server that is there.
absl::Status CheckUnused(absl::string_view address) {
  if (!absl::ConsumePrefix(&address, "unix:")) return absl::OkStatus();
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  if (address.empty() || address.size() >= sizeof(name.sun_path)) {
    return core::InvalidArgument(
        "ADDRESS_MALFORMED", "the path of unix:", address, " has ",
        address.size(), " characters, wanted 1 to ", sizeof(name.sun_path) - 1);
  }
  std::memcpy(name.sun_path, address.data(), address.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool answers = connect(probe, reinterpret_cast<const sockaddr*>(&name),
                               sizeof(name)) == 0;
  close(probe);
  if (!answers) return absl::OkStatus();
  return core::Error(absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
                     absl::StrCat("another server listens on unix:", address));
}

/// Whether it is a Unix socket.
bool IsLocal(absl::string_view address) {
  return absl::StartsWith(address, "unix:");
}

/// Lets in whom the permissions of a Unix socket say.
absl::Status SetMode(absl::string_view address, int mode) {
  if (mode == 0 || !absl::ConsumePrefix(&address, "unix:")) {
    return absl::OkStatus();
  }
  if (chmod(std::string(address).c_str(), static_cast<mode_t>(mode)) == 0) {
    return absl::OkStatus();
  }
  return core::Error(absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
                     absl::StrCat("cannot set the permissions of ", address,
                                  ": ", std::strerror(errno)));
}

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
  // A second server on the same port must fail, not share it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
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
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      absl::ToInt64Milliseconds(kLeastPingInterval));
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      absl::ToInt64Milliseconds(kHandshake));
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams);
}

constexpr MakeService kServices[] = {
    Make<AdminService>,     Make<ComputeService>, Make<PlanService>,
    Make<PlanCacheService>, Make<ProgramService>, Make<SessionService>,
    Make<TensorService>,    Make<ViewService>};

}  // namespace

struct RpcServer::Services {
  explicit Services(ServiceContext& context) : context(context) {
    for (const MakeService make : kServices) all.push_back(make(context));
  }

  ServiceContext& context;
  std::vector<std::unique_ptr<Service>> all;
  // Of the addresses, in order.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials;
  std::optional<LoopGroup> loops;
  std::unique_ptr<grpc::Server> server;
  bool is_healthy = true;
  bool is_drained = true;  // until it serves
};

RpcServer::RpcServer() = default;

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const RpcServerOptions& options, ServiceContext& context) {
  for (const std::string& address : options.listen) {
    TENSORD_RETURN_IF_ERROR(CheckUnused(address));
  }
  std::unique_ptr<RpcServer> result(new RpcServer);
  result->services_ = std::make_unique<Services>(context);
  Services& services = *result->services_;
  TENSORD_RETURN_IF_ERROR(result->Listen(options));
  for (const auto& service : services.all) service->ServeOn(*services.loops);
  services.loops->Start();
  services.is_drained = false;
  for (const std::string& address : options.listen) {
    TENSORD_RETURN_IF_ERROR(SetMode(address, options.socket_mode));
  }
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
  std::vector<int> ports(options.listen.size(), 0);
  for (size_t i = 0; i < options.listen.size(); ++i) {
    const bool is_tls =
        options.certificates != nullptr && !IsLocal(options.listen[i]);
    // Each address has its own: each is told once of new certificates.
    services.credentials.push_back(
        is_tls ? TlsCredentials(*options.certificates,
                                options.must_have_certificate)
               : grpc::InsecureServerCredentials());
    builder.AddListeningPort(options.listen[i], services.credentials.back(),
                             &ports[i]);
  }
  for (const auto& service : services.all) {
    builder.RegisterService(&service->service());
  }
  services.loops.emplace(builder, options.loop_count, services.context.door,
                         options.takes_admin);
  {
    // Until SetMode() nobody else may connect.
    const mode_t usual = options.socket_mode != 0 ? umask(0177) : 0;
    const absl::Cleanup restore = [&] {
      if (options.socket_mode != 0) umask(usual);
    };
    services.server = builder.BuildAndStart();
  }
  if (services.server == nullptr) {
    return core::Error(
        absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
        absl::StrCat("cannot listen on ", absl::StrJoin(options.listen, ", "),
                     "; is another server there?"));
  }
  for (size_t i = 0; i < options.listen.size(); ++i) {
    const std::string& address = options.listen[i];
    addresses_.push_back(
        IsLocal(address)
            ? address
            : absl::StrCat(address.substr(0, address.rfind(':') + 1),
                           ports[i]));
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
  services_->loops->Shutdown(*services_->server,
                             absl::ToChronoMilliseconds(timeout));
}

}  // namespace tensord::rpc
