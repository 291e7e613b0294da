#include "tests/testing/in_process_server.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"

namespace tensord::testing {
namespace {

std::string NewFolder() {
  std::string name =
      (std::filesystem::temp_directory_path() / "tensord-test-XXXXXX").string();
  return mkdtemp(name.data());
}

std::unique_ptr<server::Engine> NewEngine(server::EngineOptions options) {
  SelectDevices(options);
  return server::Engine::Create(options).value();
}

rpc::RpcServerOptions At(const std::string& address,
                         rpc::RpcServerOptions options) {
  options.listen.insert(options.listen.begin(), address);
  return options;
}

}  // namespace

InProcessServer::InProcessServer(const InProcessOptions& options)
    : folder_(NewFolder()),
      address_(absl::StrCat("unix:", folder_, "/socket")),
      log_(options.log_level),
      engine_(NewEngine(options.engine)),
      sessions_(*engine_, options.sessions, [](const server::Session&) {}),
      context_{.engine = *engine_,
               .sessions = sessions_,
               .log = log_,
               .metrics = metrics_,
               .health = health_,
               .authenticator = options.authenticator,
               .queue_limit = options.engine.queue_limit,
               .limits = {},
               .transfer_idle = options.transfer_idle,
               .stream_idle = options.stream_idle,
               .middleware = options.middleware},
      rpc_(rpc::RpcServer::Start(At(address_, options.rpc), context_).value()) {
}

InProcessServer::~InProcessServer() {
  rpc_.reset();
  std::filesystem::remove_all(folder_);
}

std::shared_ptr<grpc::Channel> InProcessServer::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace tensord::testing
