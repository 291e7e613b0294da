// Takes connections and hands them to gRPC.
#pragma once

#include <grpcpp/server_builder.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/rpc/listening/bound_address.h"
#include "server/rpc/listening/connections.h"
#include "server/rpc/listening/peer_users.h"

namespace tensord::rpc {

/// gRPC's own listener stops for good when the process has no file left, and
/// takes whatever comes until then. This one takes no more connections than
/// fit, closes others at once, and goes on.
///
/// Threads  one of its own. Its methods are called by one thread.
class Listener {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  /// Hears of a connection that was not taken.
  using Refused = std::function<void(Connections::Answer, absl::string_view)>;

  /// `is_operators`: strangers do not come to its addresses.
  /// Lifetime  `connections`, which several may share, outlives it.
  Listener(Connections& connections, bool is_operators, Refused refused);
  Listener(const Listener&) = delete;
  ~Listener() { Stop(); }

  /// Has `acceptor` get the connections of `address`. Before Start().
  void Add(BoundAddress address, std::unique_ptr<Acceptor> acceptor);
  /// Has each of `users` get theirs, of a Unix socket. They outlive it.
  void Add(BoundAddress address, PeerUsers& users);

  /// Takes connections from now on. gRPC's server has started.
  void Start();
  /// Takes none any more, and gives the addresses back.
  void Stop();

 private:
  struct Address {
    BoundAddress bound;
    std::unique_ptr<Acceptor> acceptor;  // null: there are `users`
    PeerUsers* users = nullptr;
  };

  void Run();
  /// Takes one connection. False: the system has no room for any.
  bool Accept(int socket, const Address& address);
  /// Null: the connection of `fd` is closed, and refused.
  Acceptor* AcceptorOf(int fd, const sockaddr_storage& name,
                       const Address& address);

  Connections& connections_;
  const bool is_operators_;
  const Refused refused_;
  std::vector<Address> addresses_;
  int ends_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace tensord::rpc
