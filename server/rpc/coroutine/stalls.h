// Calls whose clients do nothing.
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "server/rpc/coroutine/idle_watch.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/door/open_calls.h"

namespace tensord::rpc {

/// The calls of one Loop that wait for their clients, to send the request or to
/// take the last message. What has come no further after some time is broken
/// off, unless its connection has carried other long answers meanwhile; so is,
/// of more than a number, the one that waits longest. As most are gone at once,
/// one alarm now and then, at a look, sees to all.
///
/// Threads   its Loop's, except Stop().
/// Lifetime  outlives its calls.
class Stalls final : Tag {
 public:
  /// `awaited` is for messages: "sent no request". What gRPC has begun to write
  /// goes with the connection alone: if there are `connections`, that is broken
  /// off, too, when one is still there and it takes nothing from one look to
  /// the next.
  Stalls(Loop& loop, absl::Duration limit, absl::string_view awaited,
         int64_t most = std::numeric_limits<int64_t>::max(),
         Connections* connections = nullptr)
      : loop_(loop),
        limit_(limit),
        awaited_(awaited),
        most_(most),
        connections_(connections) {}
  Stalls(const Stalls&) = delete;

  /// One of them, from its beginning to its end.
  class Wait {
   public:
    /// `bytes` is what its client is to take.
    Wait(Stalls& all, Call& call, int64_t bytes)
        : all_(all), call_(call), connection_(ConnectionOf(call, bytes)) {
      all_.Add(*this);
    }
    ~Wait() {
      if (broken_off_) {
        all_.broken_off_.erase(this);
        return;
      }
      all_.Remove(*this);
      if (!connection_.empty()) all_.progress_[connection_] = all_.look_;
    }
    Wait(const Wait&) = delete;

   private:
    friend Stalls;

    /// gRPC's name of it; "": it is fast, or nothing to speak of has to pass.
    static std::string ConnectionOf(Call& call, int64_t bytes) {
      constexpr int64_t kShortBytes = int64_t{1} << 16;
      if (bytes <= kShortBytes) return "";
      std::string name = call.wire().peer();
      return absl::StartsWith(name, "unix") ? "" : name;
    }

    Stalls& all_;
    Call& call_;
    const int64_t since_ = all_.look_;
    const std::string connection_;
    bool broken_off_ = false;
    Wait* older_ = nullptr;
    Wait* newer_ = nullptr;
  };

  /// Breaks off all that wait.
  void BreakOffAll(const absl::Status& why) {
    while (oldest_ != nullptr) BreakOff(*oldest_, why);
  }
  /// Has it look no more. Requires  there are no calls any more.
  void Stop() { alarm_.Cancel(); }

 private:
  void Add(Wait& wait) {
    wait.older_ = newest_;
    (newest_ != nullptr ? newest_->newer_ : oldest_) = &wait;
    newest_ = &wait;
    if (++count_ > most_) {
      BreakOff(*oldest_,
               core::ResourceExhausted(
                   "TOO_MANY_REQUESTS", most_,
                   " calls wait for their clients, as many as may; send "
                   "requests together with calls, and take the answers"));
    }
    LookLater();
  }
  void Remove(Wait& wait) {
    (wait.newer_ != nullptr ? wait.newer_->older_ : newest_) = wait.older_;
    (wait.older_ != nullptr ? wait.older_->newer_ : oldest_) = wait.newer_;
    --count_;
  }
  /// It ends when gRPC has heard.
  void BreakOff(Wait& wait, const absl::Status& why) {
    Remove(wait);
    wait.broken_off_ = true;
    if (connections_ != nullptr) {
      // While gRPC still knows.
      broken_off_[&wait] = ConnectionName(wait.call_.wire());
    }
    wait.call_.BreakOff(why);
  }

  void LookLater() {
    if (looks_) return;
    looks_ = true;
    const gpr_timespec wait = gpr_time_from_nanos(
        absl::ToInt64Nanoseconds(limit_ / kLooks), GPR_TIMESPAN);
    alarm_.Set(loop_.queue(), gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), wait),
               AsTag());
  }
  void Fire(bool) override {
    looks_ = false;
    ++look_;
    const int64_t latest = look_ - kLooks - 1;
    absl::erase_if(progress_, [latest](const auto& connection) {
      return connection.second <= latest;
    });
    EndConnections();
    for (Wait* each = oldest_; each != nullptr && each->since_ <= latest;) {
      Wait& stalled = *each;
      each = each->newer_;
      if (progress_.contains(stalled.connection_)) continue;
      BreakOff(stalled, TransferStalled(limit_, awaited_));
    }
    if (newest_ != nullptr || !broken_off_.empty()) LookLater();
  }

  /// Of those that were broken off before, and are there all the same.
  void EndConnections() {
    if (connections_ == nullptr) return;
    absl::flat_hash_map<std::string, int64_t> counts;
    for (const auto& [wait, name] : broken_off_) ++counts[name];
    absl::flat_hash_set<std::string> some;
    absl::flat_hash_set<std::string> many;
    for (const auto& [name, count] : counts) {
      (count > kMostBrokenOff ? many : some).insert(name);
    }
    connections_->EndStuck(some);
    connections_->EndThose(many);
  }

  static constexpr int64_t kLooks = 4;  // before the limit has passed
  /// Of one connection, however slowly it takes them.
  static constexpr int64_t kMostBrokenOff = 1024;

  Loop& loop_;
  const absl::Duration limit_;
  const absl::string_view awaited_;
  const int64_t most_;
  Connections* const connections_;  // null: they stay
  Wait* newest_ = nullptr;
  Wait* oldest_ = nullptr;
  int64_t count_ = 0;
  /// At which look connections had last carried a long answer.
  absl::flat_hash_map<std::string, int64_t> progress_;
  /// Those that have yet to end, and their connections.
  absl::flat_hash_map<const Wait*, std::string> broken_off_;
  grpc::Alarm alarm_;
  bool looks_ = false;
  int64_t look_ = 0;  // time passes by looks: a clock for each would cost more
};

}  // namespace tensord::rpc
