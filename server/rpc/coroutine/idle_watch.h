// Calls that wait for a client which neither sends nor takes anything.
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/alarm.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

/// What a call ends with whose client has not done what was `awaited` for
/// `limit`.
inline absl::Status TransferStalled(absl::Duration limit,
                                    absl::string_view awaited) {
  return core::Error(
      absl::StatusCode::kAborted, "TRANSFER_STALLED",
      absl::StrCat("for ", absl::FormatDuration(limit), " the client has ",
                   awaited, "; resume, or start again"));
}

/// Notices, by the monotonic clock, that a call which waits for its client has
/// come no further for a time.
///
/// Threads  its call's Loop.
class IdleWatch {
 public:
  /// `stalled` is told once, when `limit` has passed since the beginning or the
  /// last Progress().
  IdleWatch(Call& call, absl::Duration limit, std::function<void()> stalled)
      : limit_(limit),
        stalled_(std::move(stalled)),
        timer_(new Timer(*this, call)) {
    timer_->Set(limit_);
  }
  ~IdleWatch() { timer_->Leave(); }
  IdleWatch(const IdleWatch&) = delete;

  void Progress() { since_ = Clock::now(); }
  /// Only while it waits a call can stall, as it does at first.
  void set_waits(bool waits) { waits_ = waits; }
  bool has_stalled() const { return has_stalled_; }
  /// What a stalled transfer ends with; `awaited` says what did not happen.
  absl::Status Stalled(absl::string_view awaited) const {
    return TransferStalled(limit_, awaited);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// An alarm fires even when it is taken back, so it outlives the watch.
  class Timer final : public Tag {
   public:
    Timer(IdleWatch& watch, Call& call)
        : hold_(call), queue_(call.loop().queue()), watch_(&watch) {}

    void Set(absl::Duration after) {
      const gpr_timespec wait =
          gpr_time_from_nanos(absl::ToInt64Nanoseconds(after), GPR_TIMESPAN);
      alarm_.Set(queue_, gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), wait),
                 AsTag());
      is_set_ = true;
    }
    void Leave() {
      watch_ = nullptr;
      if (is_set_) {
        alarm_.Cancel();
      } else {
        delete this;
      }
    }
    void Fire(bool) override {
      is_set_ = false;
      if (watch_ == nullptr) {
        delete this;
      } else {
        watch_->Look();  // which may be the end of both
      }
    }

   private:
    const Call::Hold hold_;  // the last to go
    grpc::ServerCompletionQueue* const queue_;
    IdleWatch* watch_;  // null: has gone
    grpc::Alarm alarm_;
    bool is_set_ = false;
  };

  void Look() {
    const absl::Duration left =
        limit_ - absl::FromChrono(Clock::now() - since_);
    if (!waits_) {
      timer_->Set(limit_);
    } else if (left > absl::ZeroDuration()) {
      timer_->Set(left);
    } else {
      has_stalled_ = true;
      const auto stalled = stalled_;
      stalled();  // may end the watch
    }
  }

  const absl::Duration limit_;
  const std::function<void()> stalled_;
  Clock::time_point since_ = Clock::now();
  bool waits_ = true;
  bool has_stalled_ = false;
  Timer* const timer_;  // deletes itself
};

}  // namespace tensord::rpc
