// A whole server inside a test.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/engine/engine.h"
#include "server/identity/authenticator.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/service_context.h"
#include "server/session/session_manager.h"
#include "server/telemetry/health.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace tensord::testing {

struct InProcessOptions {
  server::EngineOptions engine = {.cpu_threads = 2,
                                  .memory_limit_bytes = int64_t{256} << 20};
  server::SessionLimits sessions;
  absl::Duration transfer_idle = absl::Seconds(30);
  absl::Duration stream_idle = absl::Hours(1);
  /// It listens where these say, too.
  rpc::RpcServerOptions rpc = {};
  server::LogLevel log_level = server::LogLevel::kError;
  std::vector<rpc::Middleware*> middleware = {};  // outlives the server
  /// Says who asks; outlives the server. Null: everybody may do everything.
  server::Authenticator* authenticator = nullptr;
};

/// Sets the devices of `options` to those under test. There are two of this
/// function, in cpu_under_test.cc and cuda_under_test.cc: a test links one.
void SelectDevices(server::EngineOptions& options);

/// Serves on a Unix socket of its own, with the devices under test.
class InProcessServer {
 public:
  /// `options.engine` does not choose devices: SelectDevices() does.
  explicit InProcessServer(const InProcessOptions& options = {});
  ~InProcessServer();

  const std::string& address() const { return address_; }
  /// A channel that shares its connection with no other.
  std::shared_ptr<grpc::Channel> NewChannel() const;

  server::Engine& engine() { return *engine_; }
  server::Device& device() { return *engine_->devices().front(); }
  server::SessionManager& sessions() { return sessions_; }
  server::Metrics& metrics() { return metrics_; }
  server::Health& health() { return health_; }
  rpc::RpcServer& rpc() { return *rpc_; }

  /// Bytes that tensors and operations hold on the device.
  int64_t used_bytes() { return device().memory_statistics().used_bytes; }

 private:
  std::string folder_;
  std::string address_;
  server::Log log_;
  server::Metrics metrics_;
  server::Health health_;
  std::unique_ptr<server::Engine> engine_;
  server::SessionManager sessions_;
  rpc::ServiceContext context_;
  std::unique_ptr<rpc::RpcServer> rpc_;
};

}  // namespace tensord::testing
