#include "server/rpc/listening/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensord::rpc {
namespace {

// How long the system is given to have files again.
constexpr absl::Duration kRest = absl::Milliseconds(10);

/// Who has connected: a host's address, of IPv6 the network's, which is one
/// host's to choose from, or a user of this machine.
std::string PeerOf(int fd, const sockaddr_storage& name) {
  char text[INET6_ADDRSTRLEN] = {};
  if (name.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(name).sin_addr,
              text, sizeof(text));
    return text;
  }
  if (name.ss_family == AF_INET6) {
    in6_addr address = reinterpret_cast<const sockaddr_in6&>(name).sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&address) && !IN6_IS_ADDR_LOOPBACK(&address)) {
      std::memset(&address.s6_addr[8], 0, 8);
    }
    inet_ntop(AF_INET6, &address, text, sizeof(text));
    return text;
  }
  ucred user = {};
  socklen_t size = sizeof(user);
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size);
  return absl::StrCat("user ", user.uid);
}

}  // namespace

Listener::Listener(Connections& connections, Refused refused)
    : connections_(connections), refused_(std::move(refused)) {}

void Listener::Add(BoundAddress address, std::unique_ptr<Acceptor> acceptor) {
  addresses_.push_back({std::move(address), std::move(acceptor)});
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
  std::vector<Acceptor*> acceptors = {nullptr};
  for (const Address& address : addresses_) {
    for (const int socket : address.bound.sockets()) {
      ready.push_back({.fd = socket, .events = POLLIN, .revents = 0});
      acceptors.push_back(address.acceptor.get());
    }
  }
  while (true) {
    bool has_room = poll(ready.data(), ready.size(), -1) >= 0 || errno == EINTR;
    if (ready[0].revents != 0) return;
    for (size_t i = 1; i < ready.size(); ++i) {
      if (ready[i].revents == 0) continue;
      has_room = Accept(ready[i].fd, *acceptors[i]) && has_room;
    }
    if (!has_room) absl::SleepFor(kRest);
  }
}

bool Listener::Accept(int socket, Acceptor& acceptor) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  const int fd = accept4(socket, reinterpret_cast<sockaddr*>(&name), &size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
           errno != ENOMEM;
  }
  const std::string peer = PeerOf(fd, name);
  const Connections::Answer answer = connections_.Take(fd, peer);
  if (answer != Connections::Answer::kTaken) {
    close(fd);
    refused_(answer, peer);
    return true;
  }
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = socket;
  connection.fd = fd;
  acceptor.HandleNewConnection(&connection);
  return true;
}

}  // namespace tensord::rpc
