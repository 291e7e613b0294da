// Reading from, and writing to, a client that may do nothing for long.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/rpc/coroutine/idle_watch.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/coroutine/serve.h"
#include "server/rpc/coroutine/task.h"

namespace tensord::rpc {

/// A Reader that gives up on a client which sends nothing, and ends with the
/// session: that has a reason, as one that is broken off has not.
///
/// Threads  its call's Loop.
class PatientReader {
 public:
  PatientReader(Reader in, Call& call, absl::Duration limit)
      : in_(in),
        call_(call),
        watch_(call, limit, [coming = coming_] { coming->came.Notify(); }) {
    call_.OnSessionEnd([coming = coming_, &call](const absl::Status& why) {
      call.Stop(why);
      coming->came.Notify();
    });
  }
  ~PatientReader() { call_.OnSessionEnd(nullptr); }
  PatientReader(const PatientReader&) = delete;

  /// The next message, which lasts until the next Read(). Null: none comes any
  /// more, or failure() says why; not to be called again.
  Task<ByteBuffer*> Read() {
    if (!failure().ok()) co_return nullptr;
    coming_->is_awaited = true;
    Receive(Call::Hold(call_), in_, coming_);
    watch_.set_waits(true);
    if (coming_->is_awaited) co_await coming_->came;
    watch_.set_waits(false);
    co_return coming_->has_message&& failure().ok() ? &coming_->message
                                                    : nullptr;
  }

  /// What came has brought the transfer on.
  void Progress() { watch_.Progress(); }
  /// What ended it before the client did; OK: nothing.
  /// Errors  ABORTED: it stalled. UNAUTHENTICATED: who sends is not let in any
  ///         more. Others, with which it was stopped.
  absl::Status failure() const {
    if (!call_.stopped().ok()) return call_.stopped();
    if (watch_.has_stalled()) return watch_.Stalled("sent no data");
    return Door::CheckIdentity(call_.record());
  }

 private:
  /// Outlives a call's handler, as a read that has begun does.
  struct Coming {
    ByteBuffer message;
    bool is_awaited = false;
    bool has_message = false;
    Signal came;
  };

  static Detached Receive(Call::Hold, Reader in,
                          std::shared_ptr<Coming> coming) {
    coming->message.Clear();
    const bool received = co_await in.Read(coming->message);
    coming->has_message = received;
    coming->is_awaited = false;
    coming->came.Notify();
  }

  const Reader in_;
  Call& call_;
  const std::shared_ptr<Coming> coming_ = std::make_shared<Coming>();
  IdleWatch watch_;
};

/// A Writer that gives up on a client which takes nothing.
///
/// Threads  its call's Loop.
template <typename M>
class PatientWriter {
 public:
  PatientWriter(Writer<M> out, Call& call, absl::Duration limit)
      : out_(out),
        call_(call),
        watch_(call, limit, [this, &call] { call.BreakOff(Stalled()); }) {
    watch_.set_waits(false);
  }

  /// OK as Writer::Write() is true.
  /// Errors  CANCELLED: the client is gone. ABORTED: it took nothing.
  ///         UNAUTHENTICATED: who reads is not let in any more.
  Task<absl::Status> Write(const M& message, bool more = false) {
    const absl::Status known = Door::CheckIdentity(call_.record());
    if (!known.ok()) co_return known;
    watch_.Progress();
    watch_.set_waits(true);
    const bool sent = co_await out_.Write(message, more);
    watch_.set_waits(false);
    if (watch_.has_stalled()) co_return Stalled();
    if (!sent) co_return absl::CancelledError("the client is gone");
    co_return absl::OkStatus();
  }

 private:
  absl::Status Stalled() const { return watch_.Stalled("taken no data"); }

  const Writer<M> out_;
  Call& call_;
  IdleWatch watch_;
};

}  // namespace tensord::rpc
