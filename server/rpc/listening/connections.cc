#include "server/rpc/listening/connections.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

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

/// Ends it, and takes what has come and nobody has read, so that nobody does:
/// all at once, as gRPC reads, too, and is not to read what comes behind a gap.
void BreakOff(int fd) {
  shutdown(fd, SHUT_RDWR);
  std::array<char, size_t{1} << 16> unread;
  std::array<iovec, 256> pieces;  // more than a socket holds
  pieces.fill({.iov_base = unread.data(), .iov_len = unread.size()});
  msghdr all = {};
  all.msg_iov = pieces.data();
  all.msg_iovlen = pieces.size();
  recvmsg(fd, &all, MSG_DONTWAIT);
}

/// What who is at the other end has yet to take; it stays the same for long
/// only when they take nothing.
int64_t WaitingBytes(int fd) {
  int waiting = 0;
  return ioctl(fd, SIOCOUTQ, &waiting) == 0 ? waiting : 0;
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
  connections_[at].socket = SocketOf(fd);
  connections_[at].peer = std::string(peer);
  ++by_peer_[connections_[at].peer];
  ++count_;
  return answer;
}

void Connections::SetName(int fd, absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  connections_[static_cast<size_t>(fd)].name = std::string(name);
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

void Connections::EndOfHosts() {
  End([](const Connection&, int fd) {
    sockaddr_storage own = {};
    socklen_t size = sizeof(own);
    return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
           own.ss_family != AF_UNIX;
  });
}

void Connections::EndAll() {
  End([](const Connection&, int) { return true; });
}

void Connections::EndThose(const absl::flat_hash_set<std::string>& names) {
  if (names.empty()) return;
  End([&names](const Connection& connection, int) {
    return names.contains(connection.name);
  });
}

void Connections::EndStuck(const absl::flat_hash_set<std::string>& names) {
  if (names.empty()) return;
  End([&names](Connection& connection, int fd) {
    if (!names.contains(connection.name)) return false;
    const int64_t before =
        std::exchange(connection.waiting_bytes, WaitingBytes(fd));
    return before != 0 && connection.waiting_bytes == before;
  });
}

void Connections::End(absl::FunctionRef<bool(Connection&, int fd)> ends) {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    if (connection.socket == 0) continue;
    // By a descriptor of its own, which nobody else closes meanwhile.
    const int fd = fcntl(static_cast<int>(i), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) continue;
    if (SocketOf(fd) == connection.socket && ends(connection, fd)) {
      BreakOff(fd);  // gRPC closes it then
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
