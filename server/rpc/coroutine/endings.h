// Answers that clients do not take.
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "server/rpc/coroutine/idle_watch.h"
#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

/// The calls of one Loop whose last message is on its way. What a client has
/// not taken after some time is broken off, unless its connection has carried
/// other long answers meanwhile. As most are gone at once, one alarm now and
/// then looks at all.
///
/// Threads   its Loop's, except Stop().
/// Lifetime  outlives its calls.
class Endings final : Tag {
 public:
  using Clock = std::chrono::steady_clock;

  Endings(Loop& loop, absl::Duration limit) : loop_(loop), limit_(limit) {}
  Endings(const Endings&) = delete;

  /// One of them, from its beginning to its end.
  class Ending {
   public:
    /// `bytes` is what its client is to take.
    Ending(Endings& all, Call& call, int64_t bytes)
        : all_(all),
          call_(call),
          connection_(ConnectionOf(call, bytes)),
          older_(all.newest_) {
      if (older_ != nullptr) older_->newer_ = this;
      all_.newest_ = this;
      all_.LookLater();
    }
    ~Ending() {
      (newer_ != nullptr ? newer_->older_ : all_.newest_) = older_;
      if (older_ != nullptr) older_->newer_ = newer_;
      if (!connection_.empty() && !is_broken_off_) {
        all_.progress_[connection_] = Clock::now();
      }
    }
    Ending(const Ending&) = delete;

   private:
    friend Endings;

    /// gRPC's name of it; "": it is fast, or nothing to speak of has to pass.
    static std::string ConnectionOf(Call& call, int64_t bytes) {
      constexpr int64_t kShortBytes = int64_t{1} << 16;
      if (bytes <= kShortBytes) return "";
      std::string name = call.context().peer();
      return absl::StartsWith(name, "unix") ? "" : name;
    }

    Endings& all_;
    Call& call_;
    const Clock::time_point since_ = Clock::now();
    const std::string connection_;
    bool is_broken_off_ = false;
    Ending* older_;
    Ending* newer_ = nullptr;
  };

  /// Has it look no more. Requires  there are no calls any more.
  void Stop() { alarm_.Cancel(); }

 private:
  void LookLater() {
    if (looks_) return;
    looks_ = true;
    constexpr int64_t kLooks = 4;  // before the limit has passed
    const gpr_timespec wait = gpr_time_from_nanos(
        absl::ToInt64Nanoseconds(limit_ / kLooks), GPR_TIMESPAN);
    alarm_.Set(loop_.queue(), gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), wait),
               AsTag());
  }
  void Fire(bool) override {
    looks_ = false;
    const auto latest = Clock::now() - absl::ToChronoNanoseconds(limit_);
    absl::erase_if(progress_, [&](const auto& connection) {
      return connection.second <= latest;
    });
    for (Ending* each = newest_; each != nullptr; each = each->older_) {
      if (each->since_ > latest || each->is_broken_off_ ||
          progress_.contains(each->connection_)) {
        continue;
      }
      each->is_broken_off_ = true;  // it goes when gRPC has heard
      EndUnread(each->call_, TransferStalled(limit_, "taken no data"));
    }
    if (newest_ != nullptr) LookLater();
  }

  Loop& loop_;
  const absl::Duration limit_;
  Ending* newest_ = nullptr;
  /// When connections have last carried a long answer.
  absl::flat_hash_map<std::string, Clock::time_point> progress_;
  grpc::Alarm alarm_;
  bool looks_ = false;
};

}  // namespace tensord::rpc
