#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/compute_service.h"
#include "server/rpc/plan_service.h"
#include "server/rpc/serve.h"
#include "server/rpc/session_service.h"
#include "server/rpc/tensor_service.h"

namespace tensord::rpc {
namespace {

// Bounds the buffers of connections. Smaller ones make gRPC end calls.
constexpr size_t kConnectionMemoryBytes = size_t{256} << 20;

}  // namespace

struct RpcServer::Services {
  explicit Services(ServiceContext& context)
      : admin(context),
        compute(context),
        plan(context),
        session(context),
        tensor(context) {}

  AdminService admin;
  ComputeService compute;
  PlanService plan;
  SessionService session;
  TensorService tensor;
  std::optional<LoopGroup> loops;
  std::unique_ptr<grpc::Server> server;
  bool is_drained = false;
};

RpcServer::RpcServer() = default;

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const RpcServerOptions& options, ServiceContext& context) {
  std::unique_ptr<RpcServer> result(new RpcServer);
  result->services_ = std::make_unique<Services>(context);
  Services& services = *result->services_;

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("tensord");
  quota.Resize(kConnectionMemoryBytes);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(context.limits.max_message_bytes));
  // A second server on the same port must fail, not share it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::vector<int> ports(options.listen.size(), 0);
  for (size_t i = 0; i < options.listen.size(); ++i) {
    builder.AddListeningPort(options.listen[i],
                             grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.RegisterService(&services.admin.service());
  builder.RegisterService(&services.compute.service());
  builder.RegisterService(&services.plan.service());
  builder.RegisterService(&services.session.service());
  builder.RegisterService(&services.tensor.service());
  services.loops.emplace(builder, options.loop_count);
  services.server = builder.BuildAndStart();
  if (services.server == nullptr) {
    services.is_drained = true;
    return core::Error(
        absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
        absl::StrCat("cannot listen on ", absl::StrJoin(options.listen, ", "),
                     "; is another server there?"));
  }
  for (size_t i = 0; i < options.listen.size(); ++i) {
    const std::string& address = options.listen[i];
    result->addresses_.push_back(
        absl::StartsWith(address, "unix:")
            ? address
            : absl::StrCat(address.substr(0, address.rfind(':') + 1),
                           ports[i]));
  }
  services.admin.ServeOn(*services.loops);
  services.compute.ServeOn(*services.loops);
  services.plan.ServeOn(*services.loops);
  services.session.ServeOn(*services.loops);
  services.tensor.ServeOn(*services.loops);
  services.loops->Start();
  services.server->GetHealthCheckService()->SetServingStatus(true);
  return result;
}

RpcServer::~RpcServer() { Drain(absl::ZeroDuration()); }

void RpcServer::Drain(absl::Duration timeout) {
  if (services_->is_drained) return;
  services_->is_drained = true;
  services_->server->GetHealthCheckService()->SetServingStatus(false);
  services_->loops->Shutdown(*services_->server,
                             absl::ToChronoMilliseconds(timeout));
}

}  // namespace tensord::rpc
