#include "server/rpc/listening/connections.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/time/clock.h"

namespace tensord::rpc {
namespace {

constexpr absl::Duration kSweepInterval = absl::Milliseconds(100);
// Files, devices, listeners, HTTP.
constexpr int64_t kOtherFiles = 64;
// Of the total, one in so many is for who is close.
constexpr int64_t kCloseShare = 16;
// A peer may have so many times as many as are left: one alone four fifths of
// all, and a hundred leave one in 400 to others.
constexpr int64_t kTimesLeft = 4;

/// The number of a socket in the system; 0: `fd` is none.
uint64_t SocketOf(int fd) {
  struct stat is = {};
  return fstat(fd, &is) == 0 && S_ISSOCK(is.st_mode) ? is.st_ino : 0;
}

}  // namespace

Connections::Connections(const ConnectionLimits& limits)
    : limits_({.total = std::min(
                   limits.total,
                   std::max<int64_t>(1, RaiseFileLimit() - kOtherFiles)),
               .per_peer = limits.per_peer}) {}

Connections::Answer Connections::Take(int fd, absl::string_view peer,
                                      Kind kind) {
  absl::MutexLock lock(&mutex_);
  const auto at = static_cast<size_t>(fd);
  if (connections_.size() <= at) connections_.resize(at + 1);
  Drop(connections_[at]);
  Answer answer = Fits(peer, kind);
  if (answer != Answer::kTaken) {
    Sweep();
    answer = Fits(peer, kind);
  }
  if (answer != Answer::kTaken) return answer;
  connections_[at] = {.socket = SocketOf(fd), .peer = std::string(peer)};
  ++by_peer_[connections_[at].peer];
  ++count_;
  return answer;
}

void Connections::ForgetEnded() {
  absl::MutexLock lock(&mutex_);
  Sweep();
}

bool Connections::Has(absl::string_view peer) const {
  absl::MutexLock lock(&mutex_);
  return by_peer_.contains(peer);
}

int64_t Connections::count() const {
  absl::MutexLock lock(&mutex_);
  int64_t count = 0;
  for (size_t fd = 0; fd < connections_.size(); ++fd) {
    const Connection& connection = connections_[fd];
    if (connection.socket != 0 &&
        SocketOf(static_cast<int>(fd)) == connection.socket) {
      ++count;
    }
  }
  return count;
}

void Connections::End(bool of_hosts_alone) {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < connections_.size(); ++i) {
    const uint64_t counted = connections_[i].socket;
    if (counted == 0) continue;
    // By a descriptor of its own, which nobody else closes meanwhile.
    const int fd = fcntl(static_cast<int>(i), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) continue;
    sockaddr_storage name = {};
    socklen_t size = sizeof(name);
    if (SocketOf(fd) == counted &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
        (!of_hosts_alone || name.ss_family != AF_UNIX)) {
      shutdown(fd, SHUT_RDWR);  // gRPC closes it then
    }
    close(fd);
  }
}

Connections::Answer Connections::Fits(absl::string_view peer, Kind kind) const {
  const bool is_close = kind == Kind::kClose;
  const int64_t left =
      limits_.total - (is_close ? 0 : limits_.total / kCloseShare) - count_;
  if (left <= 0) return Answer::kTooMany;
  const auto known = by_peer_.find(peer);
  if (known == by_peer_.end()) return Answer::kTaken;
  const int64_t most = is_close ? limits_.per_peer
                                : std::min(limits_.per_peer, kTimesLeft * left);
  return known->second >= most ? Answer::kTooManyOfPeer : Answer::kTaken;
}

void Connections::Drop(Connection& connection) {
  if (connection.socket == 0) return;
  const auto peer = by_peer_.find(connection.peer);
  if (--peer->second == 0) by_peer_.erase(peer);
  --count_;
  connection = {};
}

void Connections::Sweep() {
  const absl::Time now = absl::Now();
  if (now - swept_ < kSweepInterval) return;
  swept_ = now;
  for (size_t fd = 0; fd < connections_.size(); ++fd) {
    Connection& connection = connections_[fd];
    if (connection.socket != 0 &&
        SocketOf(static_cast<int>(fd)) != connection.socket) {
      Drop(connection);
    }
  }
}

int64_t RaiseFileLimit() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  // More than the system's usual limit of a process takes long to look over.
  constexpr rlim_t kMost = rlim_t{1} << 20;
  const rlim_t wanted = std::min(files.rlim_max, kMost);
  if (files.rlim_cur < wanted) {
    files.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
  }
  return static_cast<int64_t>(std::min(files.rlim_cur, kMost));
}

}  // namespace tensord::rpc
