// The calls of one Loop, by the connections that they came by.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "server/rpc/coroutine/loop.h"
#include "server/rpc/listening/connections.h"

namespace tensord::rpc {

/// The connection that a call came by, as Connections::SetName() has it; of
/// Unix sockets, which have no names, all of its user. A call that was
/// cancelled has none.
std::string ConnectionName(const WireCall& call);

/// gRPC holds a connection to as many calls at a time as it may have only once
/// its client has said that it knows how many; a client that never does would
/// fill the memory. Whoever has more loses the connection. Calls that are
/// known to be cancelled do not count: their work ends soon.
///
/// Threads   its Loop's, where nothing else is said.
/// Lifetime  outlives its calls.
class OpenCalls {
 public:
  OpenCalls(Connections& connections, int64_t most)
      : connections_(connections), most_(most), look_at_(most) {}
  OpenCalls(const OpenCalls&) = delete;

  /// One of them, from its beginning to its end.
  class One {
   public:
    One(OpenCalls& all, Call& call)
        : all_(all), call_(call), next_(all.first_), link_(&all.first_) {
      if (next_ != nullptr) next_->link_ = &next_;
      all.first_ = this;
      if (all.Count(1) > all.look_at_) all.Look();
    }
    ~One() {
      *link_ = next_;
      if (next_ != nullptr) next_->link_ = link_;
      // Some less, so that not each that comes and goes has it look.
      const int64_t left = all_.Count(-1);
      if (left + all_.most_ / 2 < all_.look_at_) {
        all_.look_at_ = std::max(all_.most_, left + all_.most_ / 4);
      }
    }
    One(const One&) = delete;

   private:
    friend OpenCalls;
    OpenCalls& all_;
    Call& call_;
    One* next_;
    One** link_;  // that refers to it
  };

  /// Breaks off, with `why`, those that have waited for their only message for
  /// a while, as gRPC alone knows how much of it has come; or `all` that have
  /// waited for their clients, to send a message or to take the last.
  void EndWaits(bool all, const absl::Status& why);

  // From any thread:
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// How many EndWaits() has broken off.
  int64_t ended_waits() const {
    return ended_waits_.load(std::memory_order_relaxed);
  }

 private:
  /// One more or less; how many these are. Its Loop alone writes.
  int64_t Count(int64_t more) {
    const int64_t now = count() + more;
    count_.store(now, std::memory_order_relaxed);
    return now;
  }
  /// Breaks connections off that have too many, and says when to look again.
  void Look();

  Connections& connections_;
  const int64_t most_;
  std::atomic<int64_t> count_ = 0;
  std::atomic<int64_t> ended_waits_ = 0;
  int64_t look_at_;  // when there are more
  One* first_ = nullptr;
};

}  // namespace tensord::rpc
