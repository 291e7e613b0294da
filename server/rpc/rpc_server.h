// The gRPC server: listeners, loops and services.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/identity/certificates.h"
#include "server/rpc/listening/connections.h"
#include "server/rpc/service_context.h"
#include "server/rpc/transport/raw_service.h"

namespace tensord::rpc {

struct RpcServerOptions {
  /// "HOST:PORT", "unix:PATH", or "systemd": what that has passed.
  std::vector<std::string> listen;
  bool allows_remote = true;  // of those that were passed
  /// With which TCP addresses speak TLS; null: plaintext.
  const server::Certificates* certificates = nullptr;
  bool must_have_certificate = false;  // clients, if theirs are asked for
  /// Whether calls over Unix sockets are of a user who is known; null: nobody
  /// asks for users.
  std::function<bool(uid_t)> knows_user;
  /// Whether it takes what is for operators, and has reflection.
  bool takes_admin = true;
  /// Of all servers that have the same.
  std::shared_ptr<Connections> connections =
      std::make_shared<Connections>(ConnectionLimits());
  /// Whether strangers do not come here.
  bool is_operators = false;
  int socket_mode = 0;  // permissions of Unix sockets; 0: as the umask says
  /// Takes memory of clients on the same host, beside its local addresses.
  bool takes_shared_memory = true;
  int loop_count = 2;
  /// Connections whose client does not answer pings are closed. Clients that
  /// are idle look at theirs every 5 s, so the timeout has to be longer.
  absl::Duration keepalive_interval = absl::Seconds(20);
  absl::Duration keepalive_timeout = absl::Seconds(20);
  /// Those without calls for so long are closed: clients connect again when
  /// they have something to ask.
  absl::Duration connection_idle = absl::Minutes(10);
  int max_streams = 1024;  // calls at a time of one connection; others wait
  /// How long a drain refuses new calls before gRPC shuts down.
  absl::Duration refusal = absl::Milliseconds(300);
};

/// Serves all of tensord's services, standard health checks and reflection.
/// Health checks of the services "" and "readiness" say whether new calls
/// should come here, those of "liveness" whether the process is of any use.
///
/// Threads  its methods are called by one thread.
class RpcServer {
 public:
  /// Listens and serves. `context` must outlive the server.
  ///
  /// Errors  UNAVAILABLE: an address cannot be listened on.
  /// Lifetime  the certificates outlive the server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const RpcServerOptions& options, ServiceContext& context);

  /// As Drain(0).
  ~RpcServer();

  /// Where it listens, with the ports that were chosen for 0.
  const std::vector<std::string>& addresses() const { return addresses_; }

  /// Looks whether a device is lost. If so, logs that and says NOT_SERVING to
  /// all health checks from then on. Call it now and then.
  void UpdateHealth();

  /// Whether any call is open, health checks too.
  bool has_calls() const;

  /// Breaks off, soon, calls whose only message has not come whole for a while
  /// or `all` that have waited for their clients. Does nothing after Drain().
  void EndWaits(bool all, const absl::Status& why);
  /// How many that has broken off.
  int64_t ended_waits() const;

  /// Says that it is not ready, and serves on.
  void Leave();

  /// Does as Leave(), takes no new calls, gives those that run
  /// `timeout`, cancels the rest and returns when all have ended. Later calls
  /// do nothing.
  void Drain(absl::Duration timeout);

 private:
  struct Services;

  RpcServer();

  /// Has gRPC serve the addresses. Errors  as Start().
  absl::Status Listen(const RpcServerOptions& options);

  /// Opens ways for clients' memory, where there is a local address.
  void TakeSharedMemory(const RpcServerOptions& options);

  std::vector<std::string> addresses_;
  std::unique_ptr<Services> services_;
};

}  // namespace tensord::rpc
