// The calls of one Loop, by the connections that they came by.
#pragma once

#include <algorithm>
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
/// Threads   its Loop's.
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
      if (++all.count_ > all.look_at_) all.Look();
    }
    ~One() {
      *link_ = next_;
      if (next_ != nullptr) next_->link_ = link_;
      // Some less, so that not each that comes and goes has it look.
      if (--all_.count_ + all_.most_ / 2 < all_.look_at_) {
        all_.look_at_ = std::max(all_.most_, all_.count_ + all_.most_ / 4);
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

 private:
  /// Breaks connections off that have too many, and says when to look again.
  void Look();

  Connections& connections_;
  const int64_t most_;
  int64_t count_ = 0;
  int64_t look_at_;  // when there are more
  One* first_ = nullptr;
};

}  // namespace tensord::rpc
