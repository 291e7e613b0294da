#include "server/rpc/listening/connections.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "absl/time/clock.h"

namespace tensord::rpc {
namespace {

constexpr absl::Duration kSweepInterval = absl::Milliseconds(100);
// Files, devices, listeners, HTTP.
constexpr int64_t kOtherFiles = 64;

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

Connections::Answer Connections::Take(int fd, absl::string_view peer) {
  absl::MutexLock lock(&mutex_);
  const auto at = static_cast<size_t>(fd);
  if (connections_.size() <= at) connections_.resize(at + 1);
  Drop(connections_[at]);
  Answer answer = Fits(peer);
  if (answer != Answer::kTaken && absl::Now() - swept_ >= kSweepInterval) {
    Sweep();
    answer = Fits(peer);
  }
  if (answer != Answer::kTaken) return answer;
  connections_[at] = {.socket = SocketOf(fd), .peer = std::string(peer)};
  ++by_peer_[connections_[at].peer];
  ++count_;
  return answer;
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

Connections::Answer Connections::Fits(absl::string_view peer) const {
  if (count_ >= limits_.total) return Answer::kTooMany;
  const auto known = by_peer_.find(peer);
  return known != by_peer_.end() && known->second >= limits_.per_peer
             ? Answer::kTooManyOfPeer
             : Answer::kTaken;
}

void Connections::Drop(Connection& connection) {
  if (connection.socket == 0) return;
  const auto peer = by_peer_.find(connection.peer);
  if (--peer->second == 0) by_peer_.erase(peer);
  --count_;
  connection = {};
}

void Connections::Sweep() {
  swept_ = absl::Now();
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
