// Which user of this machine is at the other end of a Unix socket.
#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/rpc/listening/connections.h"

namespace tensord::rpc {

/// A call knows nothing of its connection but what the credentials say that let
/// it in. So there are several ways in, each with credentials of its own, and
/// each is one user's as long as they have connections. Users whom nobody knows
/// share one, so that they take none from others. Where nobody asks for users,
/// those who find none share that, too, and the server's own has one that says
/// nothing: what is said costs each call a microsecond or two.
///
/// Threads   Of() by one at a time.
/// Lifetime  outlives the server.
class PeerUsers {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  /// The most users who are known and have connections at a time.
  static constexpr size_t kWays = 64;
  /// Stands for all who are not known.
  static constexpr uid_t kStranger = static_cast<uid_t>(-1);
  /// How long a way that was seen without connections stays its last user's:
  /// longer than any call is between its connection and its handler.
  static constexpr absl::Duration kRest = absl::Minutes(1);

  /// Before `builder` starts the server, whose ways in these are. `knows` says
  /// whether a user is known; null: nobody asks for users.
  PeerUsers(grpc::ServerBuilder& builder, std::function<bool(uid_t)> knows);
  ~PeerUsers();

  /// What takes connections of `user`; null: others have all ways. Who has any
  /// left, `connections` says.
  Acceptor* Of(uid_t user, Connections& connections);

  /// What calls of `user` that come by that way have as their peer.
  std::string NameOf(uid_t user, const Acceptor& way) const;

  /// Who is at the other end, or kStranger; nothing: no such way has said it.
  static std::optional<uid_t> UserOf(const grpc::AuthContext& connection);

 private:
  class Credentials;
  struct Way {
    std::shared_ptr<Credentials> credentials;
    std::unique_ptr<Acceptor> acceptor;
    std::optional<uid_t> user;  // none yet
    absl::Time idle_since = absl::InfiniteFuture();
  };

  static Way Open(grpc::ServerBuilder& builder);
  /// One that nobody has any more, or null.
  Way* FindIdle(Connections& connections);

  const std::function<bool(uid_t)> knows_;
  std::array<Way, kWays> ways_;
  Way strangers_;
  std::unique_ptr<Acceptor> own_;  // null: users are asked for
};

}  // namespace tensord::rpc
