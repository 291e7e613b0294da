// How many connections there are, and whose.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tensord::rpc {

struct ConnectionLimits {
  int64_t total = 16'384;
  int64_t per_peer = 4'096;
};

/// Counts connections that others close: a file descriptor whose socket is no
/// more the one that was counted stands for a connection that has ended.
///
/// Some of the total are left for who is closer, and the fewer of the others
/// are left, the fewer of them a peer may have: whoever takes all they get
/// leaves some to who has none.
///
/// Threads  safe for concurrent use.
class Connections {
 public:
  explicit Connections(const ConnectionLimits& limits);

  enum class Kind {
    kRemote,
    kClose,  // by a Unix socket, or at the address for operators
  };
  enum class Answer { kTaken, kTooMany, kTooManyOfPeer, kTooManyUsers };
  /// Counts the socket `fd` of `peer` if that fits. What has ended meanwhile is
  /// seen now, a few times a second at most.
  Answer Take(int fd, absl::string_view peer, Kind kind);
  /// Says what calls call the connection of the socket `fd`, which was taken.
  void SetName(int fd, absl::string_view name);

  /// Looks which have ended, a few times a second at most.
  void ForgetEnded();
  /// Whether `peer` has any that is not known to have ended.
  bool Has(absl::string_view peer) const;

  /// Those that live.
  int64_t count() const;

  /// Breaks all off that have come by TCP.
  void EndOfHosts();
  /// Breaks all off.
  void EndAll();
  /// Breaks those off that have one of these names.
  void EndThose(const absl::flat_hash_set<std::string>& names);
  /// The same of those that wait for who is at the other end, who has taken
  /// nothing since it was called before.
  void EndStuck(const absl::flat_hash_set<std::string>& names);

 private:
  struct Connection {
    uint64_t socket = 0;  // its number in the system; 0: none
    std::string peer;
    std::string name;           // others may have it, too
    int64_t waiting_bytes = 0;  // at the last EndStuck()
  };

  /// Breaks those off of which `ends` says so, of those that live.
  void End(absl::FunctionRef<bool(Connection&, int fd)> ends);
  void Drop(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer Fits(absl::string_view peer, Kind kind) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);  // (fd)
  std::map<std::string, int64_t, std::less<>> by_peer_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time swept_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

/// Lets the process open as many files as the system allows it. Connections
/// beyond that, less some for all else, do not fit.
int64_t RaiseFileLimit();

}  // namespace tensord::rpc
