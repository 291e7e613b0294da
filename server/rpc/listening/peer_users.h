// Which user of this machine is at the other end of a Unix socket.
#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <array>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "server/rpc/listening/connections.h"

namespace tensord::rpc {

/// A call knows nothing of its connection but what the credentials say that let
/// it in. So there are several ways in, each with credentials of its own, and
/// each is one user's as long as they have connections.
///
/// Threads   Of() by one at a time.
/// Lifetime  outlives the server.
class PeerUsers {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  /// The most users who have connections at a time.
  static constexpr size_t kWays = 64;
  /// How long a way that was seen without connections stays its last user's:
  /// longer than any call is between its connection and its handler.
  static constexpr absl::Duration kRest = absl::Minutes(1);

  /// Before `builder` starts the server, whose ways in these are.
  explicit PeerUsers(grpc::ServerBuilder& builder);
  ~PeerUsers();

  /// What takes connections of `user`; null: others have all ways. Who has any
  /// left, `connections` says.
  Acceptor* Of(uid_t user, Connections& connections);

  /// Who is at the other end; nothing: it has come by no such way.
  static std::optional<uid_t> UserOf(const grpc::AuthContext& connection);

 private:
  class Credentials;
  struct Way {
    std::shared_ptr<Credentials> credentials;
    std::unique_ptr<Acceptor> acceptor;
    std::optional<uid_t> user;  // none yet
    absl::Time idle_since = absl::InfiniteFuture();
  };

  /// One that nobody has any more, or null.
  Way* FindIdle(Connections& connections);

  std::array<Way, kWays> ways_;
};

}  // namespace tensord::rpc
