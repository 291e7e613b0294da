#include "server/rpc/listening/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/rpc/listening/peer.h"

namespace tensord::rpc {
namespace {

// How long the system is given to have files again.
constexpr absl::Duration kRest = absl::Milliseconds(10);

// What may be on its way to a client by a Unix socket, of which the system
// makes twice as much; with its own the two sides wait for each other ten times
// a megabyte.
constexpr int kSendBytes = 256 << 10;

/// Who is at the other end of a Unix socket.
uid_t UserOf(int fd) {
  ucred user = {.pid = 0, .uid = uid_t(-1), .gid = gid_t(-1)};  // nobody
  socklen_t size = sizeof(user);
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size);
  return user.uid;
}

}  // namespace

Listener::Listener(Connections& connections, bool is_operators, Refused refused)
    : connections_(connections),
      is_operators_(is_operators),
      refused_(std::move(refused)) {}

void Listener::Add(BoundAddress address, std::unique_ptr<Acceptor> acceptor) {
  addresses_.push_back({std::move(address), std::move(acceptor)});
}

void Listener::Add(BoundAddress address, PeerUsers& users) {
  addresses_.push_back({std::move(address), nullptr, &users});
}

void Listener::Start() {
  ends_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
}

void Listener::Stop() {
  if (thread_.joinable()) {
    eventfd_write(ends_, 1);
    thread_.join();
    close(ends_);
  }
  addresses_.clear();
}

void Listener::Run() {
  std::vector<pollfd> ready = {{.fd = ends_, .events = POLLIN, .revents = 0}};
  std::vector<const Address*> addresses = {nullptr};
  for (const Address& address : addresses_) {
    for (const int socket : address.bound.sockets()) {
      ready.push_back({.fd = socket, .events = POLLIN, .revents = 0});
      addresses.push_back(&address);
    }
  }
  while (true) {
    bool has_room = poll(ready.data(), ready.size(), -1) >= 0 || errno == EINTR;
    if (ready[0].revents != 0) return;
    for (size_t i = 1; i < ready.size(); ++i) {
      if (ready[i].revents == 0) continue;
      has_room = Accept(ready[i].fd, *addresses[i]) && has_room;
    }
    if (!has_room) absl::SleepFor(kRest);
  }
}

bool Listener::Accept(int socket, const Address& address) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  const int fd = accept4(socket, reinterpret_cast<sockaddr*>(&name), &size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
           errno != ENOMEM;
  }
  Acceptor* const acceptor = AcceptorOf(fd, name, address);
  if (acceptor == nullptr) return true;
  if (name.ss_family == AF_UNIX) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBytes, sizeof(kSendBytes));
  }
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = socket;
  connection.fd = fd;
  acceptor->HandleNewConnection(&connection);
  return true;
}

Listener::Acceptor* Listener::AcceptorOf(int fd, const sockaddr_storage& name,
                                         const Address& address) {
  const bool is_local = name.ss_family == AF_UNIX;
  const uid_t user = is_local ? UserOf(fd) : 0;
  const std::string peer = is_local ? UserPeer(user) : HostPeer(name);
  Connections::Answer answer =
      connections_.Take(fd, peer,
                        is_local || is_operators_ ? Connections::Kind::kClose
                                                  : Connections::Kind::kRemote);
  Acceptor* acceptor = address.acceptor.get();
  if (answer == Connections::Answer::kTaken && address.users != nullptr) {
    acceptor = address.users->Of(user, connections_);
    if (acceptor == nullptr) answer = Connections::Answer::kTooManyUsers;
  }
  if (answer == Connections::Answer::kTaken) {
    connections_.SetName(
        fd, is_local ? address.users->NameOf(user, *acceptor) : EndName(name));
    return acceptor;
  }
  refused_(answer, peer);
  close(fd);
  return nullptr;
}

}  // namespace tensord::rpc
