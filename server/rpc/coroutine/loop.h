// A completion queue, its thread, and the calls that live on it.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/rpc/door/call_record.h"
#include "server/rpc/transport/tag.h"
#include "server/rpc/transport/wire_call.h"

namespace tensord::rpc {

/// Awaits one gRPC operation, begun by `start(tag)`; yields gRPC's `ok`, or
/// what `done(ok)` makes of it.
///
/// `start` and `done` must not own anything: GCC 12 destroys a closure twice
/// when it is written inside an expression with co_await. Capture by reference.
template <typename Start, typename Done = bool (*)(bool)>
class [[nodiscard]] Operation final : Tag {
 public:
  explicit Operation(
      Start start, Done done = [](bool ok) { return ok; })
      : start_(start), done_(done) {}
  Operation(const Operation&) = delete;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    start_(AsTag());
  }
  bool await_resume() const noexcept { return ok_; }

 private:
  void Fire(bool ok) override {
    ok_ = done_(ok);
    waiter_.resume();
  }

  Start start_;
  Done done_;
  std::coroutine_handle<> waiter_;
  bool ok_ = false;
};

/// One completion queue of a server and the one thread that polls it. A call
/// lives on one Loop: its handler, its operations and its cancellation run
/// there one at a time, without locks. Handlers start in the order in which
/// gRPC delivers their requests.
///
/// Whichever thread polls reads for all connections, and wakes another when
/// what it has read is for that: so a Loop may sleep while no call lives there.
class Loop final : Tag {
 public:
  /// Hears, on the Loop's thread, that the Loop refuses from now on: calls that
  /// go on as long as the client likes should end.
  class Watcher {
   public:
    explicit Watcher(Loop& loop) : loop_(loop) {
      loop_.watchers_.push_back(this);
    }
    Watcher(const Watcher&) = delete;
    virtual void Refused() = 0;

   protected:
    ~Watcher() { std::erase(loop_.watchers_, this); }

   private:
    Loop& loop_;
  };

  /// One that `sleeps` takes calls that another has accepted; see MoveTo.
  Loop(std::unique_ptr<grpc::ServerCompletionQueue> queue, bool sleeps)
      : queue_(std::move(queue)), sleeps_(sleeps) {}

  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }
  /// Whose calls may be awaited from then on.
  void SetServer(grpc_server* server) { server_ = server; }

  /// Has the Loop fire `tag`, from any thread, while a call lives here. `tag`
  /// may be gone on return. One alarm wakes the Loop for all that pile up.
  void Post(Tag* tag) {
    Tag* head = posted_.load(std::memory_order_relaxed);
    do {
      tag->next_ = head;
    } while (!posted_.compare_exchange_weak(
        head, tag, std::memory_order_release, std::memory_order_relaxed));
    if (head == nullptr) {
      wake_.Set(queue_.get(), gpr_inf_past(GPR_CLOCK_MONOTONIC), AsTag());
    }
  }

  /// Polls until the queue is shut down and drained.
  void Run() {
    void* tag = nullptr;
    bool ok = false;
    while (Next(&tag, &ok)) Tag::Of(tag)->Fire(ok);
  }

  /// From any thread, before Drain(): calls that begin from now on are refused.
  void Refuse() {
    refuses_.store(true, std::memory_order_relaxed);
    Post(&refusal_);
  }
  bool refuses() const { return refuses_.load(std::memory_order_relaxed); }

  /// Whether a call has begun that has not ended.
  bool is_busy() const { return begun_.load() > 0; }

  /// Waits for the last call to end, then has Run() return, after `ended`.
  /// gRPC's own shutdown does not wait for handlers that are busy elsewhere.
  /// Requires  no call can begin any more.
  void Drain(absl::FunctionRef<void()> ended) {
    while (const int calls = calls_.load()) calls_.wait(calls);
    ended();
    queue_->Shutdown();
    Begin();  // for good, so that it sees that
  }

 private:
  friend class Call;
  /// Waits for what the queue delivers. False: nothing any more.
  bool Next(void** tag, bool* ok) {
    constexpr std::chrono::milliseconds kLinger{20};  // others may follow soon
    while (sleeps_ && begun_.load() == 0) {
      const auto until = std::chrono::system_clock::now() + kLinger;
      switch (queue_->AsyncNext(tag, ok, until)) {
        case grpc::CompletionQueue::GOT_EVENT: return true;
        case grpc::CompletionQueue::SHUTDOWN: return false;
        case grpc::CompletionQueue::TIMEOUT: begun_.wait(0);
      }
    }
    return queue_->Next(tag, ok);
  }
  void Begin() {
    if (begun_.fetch_add(1) == 0 && sleeps_) begun_.notify_one();
  }

  class Refusal final : public Tag {
   public:
    explicit Refusal(Loop& loop) : loop_(loop) {}
    void Fire(bool) override {
      // A copy, as watchers may go when they hear it. None goes with another.
      for (Watcher* const watcher : std::vector(loop_.watchers_)) {
        watcher->Refused();
      }
    }

   private:
    Loop& loop_;
  };

  void Fire(bool) override {
    Tag* newest = posted_.exchange(nullptr, std::memory_order_acquire);
    Tag* oldest = nullptr;
    while (newest != nullptr) {
      Tag* const next = std::exchange(newest->next_, oldest);
      oldest = std::exchange(newest, next);
    }
    while (oldest != nullptr) std::exchange(oldest, oldest->next_)->Fire(true);
  }

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  grpc_server* server_ = nullptr;
  const bool sleeps_;
  std::atomic<Tag*> posted_ = nullptr;
  grpc::Alarm wake_;
  std::atomic<bool> refuses_ = false;
  Refusal refusal_{*this};
  std::vector<Watcher*> watchers_;
  std::atomic<int> calls_ = 0;  // those still waited for included
  std::atomic<int> begun_ = 0;
};

/// One call, from the wait for it to its end.
///
/// Threads  its Loop's, except cancelled().
class Call final : Tag {
 public:
  explicit Call(Loop& loop) : loop_(loop) { ++loop_.calls_; }
  ~Call() {
    if (has_begun_) --loop_.begun_;
    if (--loop_.calls_ == 0) loop_.calls_.notify_all();
  }
  Call(const Call&) = delete;

  /// Awaits that a client makes it, which `accepting` hears; false: none will.
  /// Of a registered method or, if that is null, of any that is not.
  auto Await(void* registered, Loop& accepting) {
    return Operation([this, registered, &accepting](void* tag) {
      wire_.Await(loop_.server_, registered, *loop_.queue(), *accepting.queue(),
                  tag);
    });
  }

  /// The client has made it, and a drain waits for it.
  void Begin() {
    has_begun_ = true;
    loop_.Begin();
  }

  /// Has cancelled() tell from now on. Streams do so from their beginning,
  /// other calls when they wait for something else than gRPC: what is answered
  /// at once need not know.
  void Watch() {
    if (!wire_.awaits_end()) wire_.AwaitEnd(AsTag());
  }

  WireCall& wire() { return wire_; }
  const WireCall& wire() const { return wire_; }
  Loop& loop() { return loop_; }
  CallRecord& record() { return record_; }

  /// The session that the request names. Requires  it names one.
  server::Session& session() const { return *record_.session; }
  const std::shared_ptr<server::Session>& shared_session() const {
    return record_.session;
  }

  /// True once nobody waits for the answer: the client cancelled or vanished,
  /// the deadline passed, the server shuts down, or an operator stopped it. Of
  /// a call that nobody Watch()es, only the last. From any thread.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  /// Has the call's work end as if nobody waited for it, and the call, unless
  /// it is answered all the same, with `why`.
  void Stop(const absl::Status& why) {
    stopped_ = why;
    StopWork();
  }
  /// OK unless it was stopped, or broken off.
  const absl::Status& stopped() const { return stopped_; }
  /// Whether it ends with that, however it goes on.
  bool is_broken_off() const { return is_broken_off_; }

  /// What its client is to do, and since when.
  enum class Awaited { kNothing, kMessage, kTaking };
  using Clock = std::chrono::steady_clock;
  Awaited awaited() const { return awaited_; }
  Clock::time_point awaited_since() const { return awaited_since_; }
  void SetAwaited(Awaited awaited) {
    awaited_ = awaited;
    if (awaited != Awaited::kNothing) awaited_since_ = Clock::now();
  }

  /// Has `undo` called at the call's end if the client hears nothing of what it
  /// is answered, so that it never learns names that the server gave. Whoever
  /// repeats a call of a session will.
  void OnUnheard(absl::AnyInvocable<void() &&> undo) {
    const bool is_kept = record_.is_once && record_.session != nullptr;
    if (!is_kept) record_.undo = std::move(undo);
  }

  /// Has `end` called, instead of the call's being broken off, when the session
  /// of a stream ends; null: no more.
  void OnSessionEnd(std::function<void(const absl::Status&)> end) {
    on_session_end_ = std::move(end);
  }
  /// Whether there is such a function; it is called with `why` then.
  bool EndWithSession(const absl::Status& why) {
    const auto end = on_session_end_;  // which may go meanwhile
    if (end) end(why);
    return end != nullptr;
  }

  /// What cancelled() looks at.
  const std::atomic<bool>& cancelled_flag() const { return cancelled_; }

  /// A wait that gRPC does not end by itself when the call is cancelled. A call
  /// may have many.
  class Wait : protected Tag {
   protected:
    explicit Wait(Call& call) : call_(call) {}
    ~Wait() = default;
    Wait(const Wait&) = delete;

    /// Requires  the call is not cancelled.
    void Suspend(std::coroutine_handle<> waiter) {
      call_.Watch();
      waiter_ = waiter;
      older_ = std::exchange(call_.newest_wait_, this);
      if (older_ != nullptr) older_->newer_ = this;
    }
    /// Takes Suspend() back.
    void Abandon() {
      (newer_ != nullptr ? newer_->older_ : call_.newest_wait_) = older_;
      if (older_ != nullptr) older_->newer_ = newer_;
    }
    void Fire(bool) override {
      Abandon();
      waiter_.resume();
    }
    Call& call_;

   private:
    friend Call;
    /// Has this wait fired, now or soon. Must not touch other waits.
    virtual void Cancel() = 0;
    std::coroutine_handle<> waiter_;
    Wait* older_ = nullptr;
    Wait* newer_ = nullptr;
  };

  /// Keeps the call and its handler's arguments alive, for a coroutine that may
  /// outlast the handler. Take it as a parameter: parameters are destroyed
  /// last.
  class Hold {
   public:
    explicit Hold(Call& call) : call_(&call) { ++call.holds_; }
    Hold(Hold&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (call_ != nullptr && --call_->holds_ == 0) call_->ResumeOwner();
    }

   private:
    Call* call_;
  };

  /// Awaits that `message`, unless that is null, and `status` have been sent;
  /// unless the call is watched, also that gRPC is done with it.
  auto Finish(grpc_byte_buffer* message, const grpc::Status& status) {
    return Operation(
        [this, message, &status](void* tag) {
          SetAwaited(Awaited::kTaking);
          ends_with_answer_ = !wire_.awaits_end();
          wire_.Finish(message, status, tag);
        },
        [this](bool ok) {
          ended_ = ended_ || ends_with_answer_;
          return ok;
        });
  }
  /// Ends it with `why`, past what its client has yet to take; a reason in the
  /// metadata could not pass that. Its waits end when gRPC says so, if it is
  /// watched.
  void BreakOff(const absl::Status& why) {
    stopped_ = why;
    is_broken_off_ = true;
    cancelled_.store(true, std::memory_order_relaxed);
    wire_.Cancel({static_cast<grpc::StatusCode>(why.code()),
                  std::string(why.message())});
  }

  /// Awaits that gRPC is done with the call, and the end of every Hold.
  /// Requires  Finish() has been awaited.
  auto End() {
    struct Awaiter {
      Call& call;
      bool await_ready() const noexcept { return call.over(); }
      void await_suspend(std::coroutine_handle<> owner) { call.owner_ = owner; }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this};
  }

 private:
  void Fire(bool) override {
    ended_ = true;
    if (wire_.was_cancelled()) StopWork();
    ResumeOwner();
  }
  void StopWork() {
    cancelled_.store(true, std::memory_order_relaxed);
    // Newest first, so that a job leaves a queue before those that it waits
    // behind.
    for (Wait* wait = newest_wait_; wait != nullptr;) {
      std::exchange(wait, wait->older_)->Cancel();
    }
  }
  bool over() const { return ended_ && holds_ == 0; }
  void ResumeOwner() {
    if (over() && owner_) owner_.resume();  // ends *this
  }

  Loop& loop_;
  CallRecord record_;
  WireCall wire_;
  std::atomic<bool> cancelled_ = false;
  absl::Status stopped_;
  std::function<void(const absl::Status&)> on_session_end_;
  bool has_begun_ = false;
  bool is_broken_off_ = false;
  Awaited awaited_ = Awaited::kNothing;
  Clock::time_point awaited_since_;
  bool ended_ = false;
  bool ends_with_answer_ = false;
  int holds_ = 0;
  Wait* newest_wait_ = nullptr;
  std::coroutine_handle<> owner_;
};

/// Awaiting it goes on on the thread of `loop`, where a call lives that has
/// begun.
class [[nodiscard]] MoveTo final : Tag {
 public:
  explicit MoveTo(Loop& loop) : loop_(loop) {}
  MoveTo(const MoveTo&) = delete;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    loop_.Post(this);
  }
  void await_resume() const noexcept {}

 private:
  void Fire(bool) override { waiter_.resume(); }

  Loop& loop_;
  std::coroutine_handle<> waiter_;
};

}  // namespace tensord::rpc
