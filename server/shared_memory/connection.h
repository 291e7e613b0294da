// One client's connection that brings memory.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/session/session.h"
#include "server/shared_memory/local_socket.h"
#include "server/shared_memory/protocol.h"
#include "server/shared_memory/region.h"

namespace tensord::shared_memory {

/// Regions that no tensor is in any more, from whatever thread sees that to the
/// one that tells the client.
///
/// Threads  safe for concurrent use.
class ReleasedRegions {
 public:
  struct Released {
    uint64_t connection;
    uint64_t region;
    uint64_t adoptions;
  };

  ReleasedRegions();

  void Add(const Released& released);
  /// Has the poll below return.
  void Wake() const;
  std::vector<Released> Take();
  /// An eventfd: there are some, or Wake() was called.
  int descriptor() const { return event_.get(); }

 private:
  const Descriptor event_;
  absl::Mutex mutex_;
  std::vector<Released> released_ ABSL_GUARDED_BY(mutex_);
};

/// Threads  used by one.
struct Connection {
  uint64_t number = 0;
  Descriptor descriptor;
  absl::Time since;
  /// Null: it has not said whose it is.
  std::shared_ptr<server::Session> session;
  std::map<uint64_t, std::shared_ptr<Region>> regions;  // by id
  /// What the client does not take now: answers, one for each message, and for
  /// each region the last that is known of it.
  std::deque<Reply> answers;
  std::map<uint64_t, uint64_t> released;  // adoptions, by id

  /// Sends what waits, as far as the client takes it.
  /// Errors  ABORTED: it is broken.
  absl::Status Flush();
};

}  // namespace tensord::shared_memory
