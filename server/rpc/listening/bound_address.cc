#include "server/rpc/listening/bound_address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace tensord::rpc {
namespace {

// Connections that wait to be taken; the system may allow fewer.
constexpr int kBacklog = 4096;

/// After a call of the system that failed.
absl::Status CannotListen(absl::string_view address, int error = errno) {
  return core::Error(
      absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
      absl::StrCat("cannot listen on ", address, ": ", std::strerror(error),
                   error == EADDRINUSE ? "; is another server there?" : ""));
}

int Socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

bool Answers(const sockaddr_un& name) {
  const int probe = Socket(AF_UNIX);
  const bool answers = connect(probe, reinterpret_cast<const sockaddr*>(&name),
                               sizeof(name)) == 0 ||
                       errno == EAGAIN;  // it does not keep up
  close(probe);
  return answers;
}

int PortOf(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

void SetPort(sockaddr& name, int port) {
  const auto wanted = htons(static_cast<uint16_t>(port));
  if (name.sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(name).sin6_port = wanted;
  } else {
    reinterpret_cast<sockaddr_in&>(name).sin_port = wanted;
  }
}

/// Where a socket listens, as Bind() takes it.
absl::StatusOr<std::string> AddressOf(int socket) {
  int listens = 0;
  socklen_t size = sizeof(listens);
  sockaddr_storage name = {};
  socklen_t length = sizeof(name);
  if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      listens == 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return core::Error(
        absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
        absl::StrCat("cannot listen on systemd: file ", socket,
                     " is no socket that listens, wanted ListenStream="));
  }
  char host[INET6_ADDRSTRLEN] = {};
  if (name.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(name).sin_addr,
              host, sizeof(host));
    return absl::StrCat(host, ":", PortOf(socket));
  }
  if (name.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(name).sin6_addr,
              host, sizeof(host));
    return absl::StrCat("[", host, "]:", PortOf(socket));
  }
  return absl::StrCat("unix:",
                      reinterpret_cast<const sockaddr_un&>(name).sun_path);
}

using Names = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Names> Resolve(const std::string& host) {
  const addrinfo hints = {.ai_flags = AI_PASSIVE,
                          .ai_family = AF_UNSPEC,
                          .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  // In brackets where it has colons.
  const std::string name(absl::StripPrefix(absl::StripSuffix(host, "]"), "["));
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (error == 0) return Names(found, freeaddrinfo);
  return core::InvalidArgument("ADDRESS_MALFORMED", "host '", name,
                               "' has no address: ", gai_strerror(error));
}

}  // namespace

bool IsLocal(absl::string_view address) {
  return absl::StartsWith(address, "unix:");
}

absl::StatusOr<BoundAddress> BoundAddress::Bind(absl::string_view address,
                                                int mode) {
  BoundAddress bound;
  bound.address_ = std::string(address);
  if (IsLocal(address)) {
    TENSORD_RETURN_IF_ERROR(
        bound.BindUnix(std::string(absl::StripPrefix(address, "unix:")), mode));
    return bound;
  }
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return core::InvalidArgument("ADDRESS_MALFORMED", "address '", address,
                                 "', wanted HOST:PORT or unix:PATH");
  }
  // Another may have the port at the next of the host's addresses that the
  // first one was given.
  absl::Status status;
  for (int tries = port == 0 ? 8 : 1; tries > 0; --tries) {
    status = bound.BindHost(std::string(address.substr(0, colon)), port);
    if (status.ok()) return bound;
    bound.Close();
  }
  return status;
}

absl::StatusOr<std::vector<BoundAddress>> BoundAddress::Adopt() {
  constexpr int kFirst = 3;
  const auto number = [](const char* variable) {
    const char* const text = std::getenv(variable);
    int value = 0;
    return text != nullptr && absl::SimpleAtoi(text, &value) ? value : 0;
  };
  const int count = number("LISTEN_PID") == getpid() ? number("LISTEN_FDS") : 0;
  if (count < 1) {
    return core::Error(absl::StatusCode::kUnavailable, "CANNOT_LISTEN",
                       "cannot listen on systemd: it has passed no socket "
                       "(LISTEN_PID, LISTEN_FDS)");
  }
  std::vector<BoundAddress> adopted;
  for (int socket = kFirst; socket < kFirst + count; ++socket) {
    BoundAddress bound;
    bound.sockets_.push_back(socket);
    TENSORD_ASSIGN_OR_RETURN(bound.address_, AddressOf(socket));
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    adopted.push_back(std::move(bound));
  }
  return adopted;
}

absl::Status BoundAddress::BindUnix(const std::string& path, int mode) {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof(name.sun_path)) {
    return core::InvalidArgument(
        "ADDRESS_MALFORMED", "the path of unix:", path, " has ", path.size(),
        " characters, wanted 1 to ", sizeof(name.sun_path) - 1);
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  if (Answers(name)) return CannotListen(address_, EADDRINUSE);
  struct stat there = {};
  if (stat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) {
    unlink(path.c_str());
  }
  sockets_.push_back(Socket(AF_UNIX));
  if (bind(sockets_.back(), reinterpret_cast<const sockaddr*>(&name),
           sizeof(name)) != 0) {
    return CannotListen(address_);
  }
  path_ = path;
  if ((mode != 0 && chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) ||
      listen(sockets_.back(), kBacklog) != 0) {
    return CannotListen(address_);
  }
  return absl::OkStatus();
}

absl::Status BoundAddress::BindHost(const std::string& host, int port) {
  TENSORD_ASSIGN_OR_RETURN(const Names names, Resolve(host));
  absl::Status failure = absl::OkStatus();
  for (addrinfo* name = names.get(); name != nullptr; name = name->ai_next) {
    const int one = 1;
    const int socket = Socket(name->ai_family);
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (name->ai_family == AF_INET6) {
      // Also for IPv4, where it is all addresses; a host's own come by
      // themselves.
      const int only = host == "[::]" ? 0 : 1;
      setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    }
    SetPort(*name->ai_addr, port);
    if (bind(socket, name->ai_addr, name->ai_addrlen) != 0 ||
        listen(socket, kBacklog) != 0) {
      const int error = errno;
      close(socket);
      // One that the machine does not have, as ::1 where there is no IPv6.
      failure = CannotListen(address_, error);
      if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EBADF) {
        continue;
      }
      return failure;
    }
    sockets_.push_back(socket);
    if (port == 0) port = PortOf(socket);
  }
  if (sockets_.empty()) return failure;
  address_ = absl::StrCat(host, ":", port);
  return absl::OkStatus();
}

BoundAddress::BoundAddress(BoundAddress&& other) noexcept
    : address_(std::move(other.address_)),
      path_(std::exchange(other.path_, {})),
      sockets_(std::exchange(other.sockets_, {})) {}

BoundAddress::~BoundAddress() {
  if (!path_.empty()) unlink(path_.c_str());
  Close();
}

void BoundAddress::Close() {
  for (const int socket : std::exchange(sockets_, {})) close(socket);
}

}  // namespace tensord::rpc
