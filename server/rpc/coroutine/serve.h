// Binds handlers, which are coroutines, to the methods of a service.
//
// Handlers, one shape per kind of method; what a Reader reads, they parse:
//   unary          Task<absl::StatusOr<R>>(Call&, const Q&)
//   client stream  Task<absl::StatusOr<R>>(Call&, Reader)
//   server stream  Task<absl::Status>(Call&, const Q&, Writer<R>)
//   both streams   Task<absl::Status>(Call&, Reader, Writer<R>)
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/coroutine/parser.h"
#include "server/rpc/coroutine/stalls.h"
#include "server/rpc/coroutine/streams.h"
#include "server/rpc/coroutine/task.h"
#include "server/rpc/door/door.h"
#include "server/rpc/door/open_calls.h"
#include "server/rpc/listening/connections.h"
#include "server/rpc/status.h"
#include "server/rpc/transport/raw_service.h"
#include "server/session/answers.h"

namespace tensord::rpc {

/// What a call ends with besides its status: the one response of the method,
/// or nothing, where all went as a stream.
using Answer = std::optional<Outgoing>;

/// What carries out a call of a method. `request` is empty where requests are a
/// stream, and may be let go.
using Handle =
    std::function<Task<absl::StatusOr<Answer>>(Call&, ByteBuffer& request)>;

/// A method as it is served.
struct Method {
  Rpc rpc;
  Handle handle;
  void* registered = nullptr;  // null: it is none of those apart
};

/// Carries out a call, or answers it as one of the same id was before. Errors
/// are not kept: what failed may be tried again.
template <typename S, typename Q, typename R>
Task<absl::StatusOr<R>> HandleOnce(
    Call& call, S& self, Task<absl::StatusOr<R>> (S::*handler)(Call&, const Q&),
    const Q& request) {
  const CallRecord& record = call.record();
  if (record.session == nullptr)
    co_return co_await (self.*handler)(call, request);
  server::Answers& answers = record.session->answers();
  auto earlier = answers.Begin(
      record.request_id,
      absl::StrCat(record.rpc->name, " ", request.SerializeAsString()));
  if (!earlier.ok()) co_return earlier.status();
  if (*earlier) {
    R response;
    response.ParseFromString(**earlier);
    co_return response;
  }
  auto result = co_await (self.*handler)(call, request);
  answers.End(
      record.request_id,
      result.ok() ? std::optional(result->SerializeAsString()) : std::nullopt);
  co_return result;
}

// Carry out calls of each kind of method by their handlers.
template <typename S, typename Q, typename R>
Task<absl::StatusOr<Answer>> HandleUnary(
    Call& call, const Door& door, Parser& parser, ByteBuffer& wire, S& self,
    Task<absl::StatusOr<R>> (S::*handler)(Call&, const Q&)) {
  Incoming<Q> request(parser, call);
  const absl::Status parsed = co_await request.Parse(wire);
  if (!parsed.ok()) co_return parsed;
  const absl::Status entered = door.EnterFor(call, *request, request.bytes());
  if (!entered.ok()) co_return entered;
  const absl::Status announced = door.Announce(call, &*request);
  if (!announced.ok()) co_return announced;
  Task<absl::StatusOr<R>> handled =
      call.record().is_once ? HandleOnce(call, self, handler, *request)
                            : (self.*handler)(call, *request);
  const absl::StatusOr<R> result = co_await handled;
  if (!result.ok()) co_return result.status();
  co_return Outgoing(*result);
}
template <typename S, typename R>
Task<absl::StatusOr<Answer>> HandleClientStream(
    Call& call, const Door& door, S& self,
    Task<absl::StatusOr<R>> (S::*handler)(Call&, Reader)) {
  const absl::Status announced = door.Announce(call, nullptr);
  if (!announced.ok()) co_return announced;
  const absl::StatusOr<R> result = co_await (self.*handler)(call, Reader(call));
  if (!result.ok()) co_return result.status();
  co_return Outgoing(*result);
}
template <typename S, typename R>
Task<absl::StatusOr<Answer>> HandleBothStreams(
    Call& call, const Door& door, S& self,
    Task<absl::Status> (S::*handler)(Call&, Reader, Writer<R>)) {
  const absl::Status announced = door.Announce(call, nullptr);
  if (!announced.ok()) co_return announced;
  const absl::Status status =
      co_await (self.*handler)(call, Reader(call), Writer<R>(call));
  if (!status.ok()) co_return status;
  co_return std::nullopt;
}
template <typename S, typename Q, typename R>
Task<absl::StatusOr<Answer>> HandleServerStream(
    Call& call, const Door& door, Parser& parser, ByteBuffer& wire, S& self,
    Task<absl::Status> (S::*handler)(Call&, const Q&, Writer<R>)) {
  Incoming<Q> request(parser, call);
  const absl::Status parsed = co_await request.Parse(wire);
  if (!parsed.ok()) co_return parsed;
  const absl::Status entered = door.EnterFor(call, *request, request.bytes());
  if (!entered.ok()) co_return entered;
  const absl::Status announced = door.Announce(call, &*request);
  if (!announced.ok()) co_return announced;
  const absl::Status status =
      co_await (self.*handler)(call, *request, Writer<R>(call));
  if (!status.ok()) co_return status;
  co_return std::nullopt;
}

/// What a call ends with whose messages are compressed.
inline absl::Status Compressed() {
  return core::Unimplemented("MESSAGE_COMPRESSED",
                             "the message is compressed, and the server takes "
                             "none that are; send it as it is");
}

/// Whether a call is to be carried out now that its request has come: much may
/// have happened meanwhile.
inline absl::Status StillWanted(Call& call) {
  if (!call.stopped().ok()) return call.stopped();
  if (call.wire().is_late()) {
    return core::Error(absl::StatusCode::kDeadlineExceeded, "DEADLINE_PASSED",
                       "the deadline had passed before the server could begin");
  }
  return Door::CheckIdentity(call.record());
}

/// What a call ends with whose request has not come.
inline absl::Status NoRequest(const Call& call) {
  if (!call.stopped().ok()) return call.stopped();
  if (call.wire().has_compressed()) return Compressed();
  if (call.wire().has_failed()) {
    return absl::CancelledError("the client is gone");
  }
  return core::InvalidArgument("REQUEST_MISSING",
                               "the call has ended without a request");
}

/// Where calls live.
struct Lane {
  Lane(std::unique_ptr<grpc::ServerCompletionQueue> queue, bool sleeps,
       absl::Duration patience, Connections& connections, int64_t most_calls)
      : loop(std::move(queue), sleeps),
        open(connections, most_calls),
        requests(loop, patience, "sent no request", kMost),
        calls_of_anybody(loop, patience, "sent or taken nothing",
                         kMostOfAnybody),
        answers(loop, patience, "taken no data",
                std::numeric_limits<int64_t>::max(), &connections),
        refusals(loop, patience, "taken no data", kMost, &connections) {}

  /// Requires  there are no calls any more.
  void Stop() {
    requests.Stop();
    calls_of_anybody.Stop();
    answers.Stop();
    refusals.Stop();
  }

  /// Has its Loop do as OpenCalls::EndWaits(), soon. From any thread.
  void EndWaits(bool all, const absl::Status& why) {
    if (open.count() > 0) loop.Post(new EndingWaits(*this, all, why));
  }

  /// How many may wait for their clients. Those of people who are not asked
  /// who they are count nowhere else.
  static constexpr int64_t kMost = 4096;
  static constexpr int64_t kMostOfAnybody = 1024;

  Loop loop;
  OpenCalls open;
  Stalls requests;
  Stalls calls_of_anybody;
  Stalls answers;
  Stalls refusals;  // and answers to whom nobody asks who they are

 private:
  /// A drain does not wait for requests.
  struct Refusing final : Loop::Watcher {
    explicit Refusing(Lane& lane) : Watcher(lane.loop), lane(lane) {}
    void Refused() override {
      lane.requests.BreakOffAll(Draining());
      lane.calls_of_anybody.BreakOffAll(Draining());
    }
    Lane& lane;
  };
  Refusing refusing_{*this};

  struct EndingWaits final : Tag {
    EndingWaits(Lane& lane, bool all, absl::Status why)
        : lane(lane), all(all), why(std::move(why)) {}
    void Fire(bool) override {
      lane.open.EndWaits(all, why);
      delete this;
    }
    Lane& lane;
    const bool all;
    const absl::Status why;
  };
};

/// The methods of one server.
///
/// Threads   all are added before a Loop runs; then that of one Loop.
/// Lifetime  outlives the server.
class Methods {
 public:
  const Method& Add(std::string path, Method method) {
    return by_path_.try_emplace(std::move(path), std::move(method))
        .first->second;
  }
  /// That of a call; null: there is none.
  const Method* Of(const Call& call) {
    const absl::string_view path = call.wire().method();
    if (path == last_.first) return last_.second;  // most come many at a time
    const auto found = by_path_.find(path);
    if (found == by_path_.end()) return nullptr;
    last_ = {found->first, &found->second};
    return last_.second;
  }

 private:
  absl::node_hash_map<std::string, Method> by_path_;
  std::pair<absl::string_view, const Method*> last_;
};

/// What a call of no method ends with.
inline grpc::Status NoMethod(const Call& call) {
  constexpr size_t kMostBytes = 256;  // of what is quoted
  return {grpc::StatusCode::UNIMPLEMENTED,
          absl::StrCat("there is no method ",
                       call.wire().method().substr(0, kMostBytes))};
}

/// Serves one call, from the wait for it, on `accepting`, to its end, at
/// `lane`: of a method apart or, if `apart` is null, of any other. The
/// coroutine's frame owns all that gRPC refers to.
inline Detached ServeCall(Loop& accepting, Lane& lane, const Door& door,
                          Methods& methods, const Method* apart) {
  Loop& loop = lane.loop;
  Call call(loop);
  const bool began = co_await call.Await(
      apart != nullptr ? apart->registered : nullptr, accepting);
  if (!began) co_return;  // Shutdown.
  call.Begin();
  ServeCall(accepting, lane, door, methods, apart);  // the next one
  if (&accepting != &loop) co_await MoveTo(loop);
  const OpenCalls::One open(lane.open, call);
  const Method* const method = apart != nullptr ? apart : methods.Of(call);
  if (method == nullptr) {
    door.Count(call);
    const Stalls::Wait wait(lane.refusals, call, /*bytes=*/0);
    const grpc::Status status = NoMethod(call);
    co_await call.Finish(/*message=*/nullptr, status);
    co_await call.End();
    co_return;
  }
  if (method->rpc.is_stream) call.Watch();
  CallRecord& record = call.record();
  ByteBuffer request;
  absl::Status let_in = door.Begin(call, method->rpc);
  if (let_in.ok() && method->rpc.has_one_request) {
    const Stalls::Wait wait(
        method->rpc.is_anybodys ? lane.calls_of_anybody : lane.requests, call,
        /*bytes=*/0);
    const bool came = co_await Reader(call).Read(request);
    let_in = came ? StillWanted(call) : NoRequest(call);
    if (!came) record.operation = nullptr;
    record.begun = std::chrono::steady_clock::now();
  }
  absl::StatusOr<Answer> result = Answer();
  if (let_in.ok()) {
    result = co_await method->handle(call, request);
    if (call.is_broken_off() || (!call.stopped().ok() && !result.ok())) {
      result = call.stopped();
    }
    if (call.wire().has_compressed()) result = Compressed();
    if (result.ok() && *result) {
      record.sent_bytes = (*result)->bytes();
      record.hold.Add(record.sent_bytes);
    }
  } else {
    result = let_in;
    request.Clear();
  }
  door.End(call, result.status());
  {
    const Stalls::Wait wait(result.ok() ? lane.answers : lane.refusals, call,
                            record.sent_bytes);
    const bool has_answer = result.ok() && *result;
    const grpc::Status status =
        ToGrpc(result.status(), call.wire(), record.request_id);
    co_await call.Finish(has_answer ? (*result)->wire() : nullptr, status);
  }
  co_await call.End();
  if (record.undo && call.wire().was_cancelled()) std::move(record.undo)();
}

/// The Loops of one server: create, BuildAndStart() the server, SetServer(),
/// Serve() each method, Start(), and at last Shutdown().
///
/// One Loop takes all calls, so their handlers start in the order in which gRPC
/// delivers their requests; copying payload, on the others, does not hold them
/// up. It accepts for the others, too, which sleep while there is nothing to
/// copy. gRPC delivers the calls of one channel nearly always, but not for
/// certain, in the order in which they were made: it reads on the threads of
/// all Loops, which may overtake each other, and so may calls that come while
/// more wait to be taken than a Loop accepts in between two turns. What is long
/// is parsed elsewhere, and later calls overtake it. Only messages of one
/// stream are in order for certain.
class LoopGroup {
 public:
  struct Options {
    int loop_count = 1;
    bool takes_admin = true;  // else what is for operators is refused
    Connections& connections;
    int64_t most_calls = 0;  // at a time of one connection
  };

  /// Lifetime  `door`, which every call passes, and `parser` outlive it.
  LoopGroup(grpc::ServerBuilder& builder, const Options& options,
            const Door& door, Parser& parser)
      : door_(door), parser_(parser), takes_admin_(options.takes_admin) {
    // Keeps gRPC from answering calls of methods that it does not know.
    builder.RegisterAsyncGenericService(&any_);
    for (int i = 0; i < options.loop_count; ++i) {
      lanes_.push_back(
          std::make_unique<Lane>(builder.AddCompletionQueue(),
                                 /*sleeps=*/i > 0, door.transfer_idle(),
                                 options.connections, options.most_calls));
    }
  }

  /// Whose calls they are from now on.
  void SetServer(grpc::Server& server) {
    for (auto& lane : lanes_) lane->loop.SetServer(server.c_server());
  }

  /// Has a handler of `self` serve `rpc` of `service`; those apart on the
  /// others, where there are others.
  ///
  /// Lifetime  `self` outlives Shutdown().
  template <typename S, typename Q, typename R>
  void Serve(RawService& service, absl::string_view rpc, S& self,
             Task<absl::StatusOr<R>> (S::*handler)(Call&, const Q&)) {
    Add(service, rpc, [this, &self, handler](Call& call, ByteBuffer& request) {
      return HandleUnary(call, door_, parser_, request, self, handler);
    });
  }
  template <typename S, typename R>
  void Serve(RawService& service, absl::string_view rpc, S& self,
             Task<absl::StatusOr<R>> (S::*handler)(Call&, Reader)) {
    Add(service, rpc, [this, &self, handler](Call& call, ByteBuffer&) {
      return HandleClientStream(call, door_, self, handler);
    });
  }
  template <typename S, typename Q, typename R>
  void Serve(RawService& service, absl::string_view rpc, S& self,
             Task<absl::Status> (S::*handler)(Call&, const Q&, Writer<R>)) {
    Add(service, rpc, [this, &self, handler](Call& call, ByteBuffer& request) {
      return HandleServerStream(call, door_, parser_, request, self, handler);
    });
  }
  template <typename S, typename R>
  void Serve(RawService& service, absl::string_view rpc, S& self,
             Task<absl::Status> (S::*handler)(Call&, Reader, Writer<R>)) {
    Add(service, rpc, [this, &self, handler](Call& call, ByteBuffer&) {
      return HandleBothStreams(call, door_, self, handler);
    });
  }

  /// The one that takes all calls.
  Lane& calls() { return *lanes_[0]; }

  /// Begins to take calls.
  void Start() {
    for (int i = 0; i < kAccepts; ++i) Accept(calls(), /*apart=*/nullptr);
    for (auto& lane : lanes_) {
      threads_.emplace_back([&lane] { lane->loop.Run(); });
    }
  }

  /// Ends every call that begins from now on with UNAVAILABLE.
  void Refuse() {
    for (auto& lane : lanes_) lane->loop.Refuse();
  }

  /// Whether any call is open, health checks too. From any thread.
  bool has_calls() const {
    return std::ranges::any_of(
        lanes_, [](const auto& lane) { return lane->open.count() > 0; });
  }

  /// As Lane::EndWaits(). Before Shutdown().
  void EndWaits(bool all, const absl::Status& why) {
    for (auto& lane : lanes_) lane->EndWaits(all, why);
  }
  /// How many that has broken off.
  int64_t ended_waits() const {
    int64_t count = 0;
    for (const auto& lane : lanes_) count += lane->open.ended_waits();
    return count;
  }

  /// Gives the running calls `grace`, cancels the rest and returns when every
  /// handler has returned and every Loop is drained. Refuse() came before.
  ///
  /// gRPC waits for clients to take what is on its way to them. A second after
  /// `grace`, `abandon` is called, on a Loop, to break their connections off.
  void Shutdown(grpc::Server& server, std::chrono::milliseconds grace,
                std::function<void()> abandon) {
    // gRPC would wait for its own calls, too: who watches the server's health
    // does so for as long as it lives.
    constexpr std::chrono::milliseconds kLook{5};
    const auto end = std::chrono::steady_clock::now() + grace;
    while (is_busy() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kLook);
    }
    const auto abandoning =
        std::make_shared<Abandoning>(calls().loop, std::move(abandon));
    abandoning->Begin(abandoning, end + std::chrono::seconds(1));
    server.Shutdown(std::chrono::system_clock::now());
    abandoning->Cancel();
    // The first last, as it accepts for all.
    std::for_each(lanes_.rbegin(), lanes_.rend(), [](const auto& lane) {
      lane->loop.Drain([&lane] { lane->Stop(); });
    });
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  /// Calls `abandon` on a Loop, some time.
  class Abandoning final : public Tag {
   public:
    Abandoning(Loop& loop, std::function<void()> abandon)
        : loop_(loop), abandon_(std::move(abandon)) {}
    /// An alarm fires even when it is taken back, so `self` stays until then.
    void Begin(std::shared_ptr<Abandoning> self,
               std::chrono::steady_clock::time_point at) {
      self_ = std::move(self);
      const std::chrono::nanoseconds wait =
          at - std::chrono::steady_clock::now();
      alarm_.Set(loop_.queue(),
                 gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                              gpr_time_from_nanos(wait.count(), GPR_TIMESPAN)),
                 AsTag());
    }
    void Cancel() { alarm_.Cancel(); }
    void Fire(bool is_due) override {
      if (is_due) abandon_();
      self_.reset();
    }

   private:
    Loop& loop_;
    const std::function<void()> abandon_;
    std::shared_ptr<Abandoning> self_;
    grpc::Alarm alarm_;
  };

  bool is_busy() const {
    return std::ranges::any_of(
        lanes_, [](const auto& lane) { return lane->loop.is_busy(); });
  }

  // How many calls a Loop takes in between two turns, and of each method apart.
  // gRPC as Debian has it looks through all that are awaited at each operation.
  static constexpr int kAccepts = 16;
  static constexpr int kAcceptsApart = 4;

  void Add(RawService& service, absl::string_view name, Handle handle) {
    const google::protobuf::MethodDescriptor& type = service.Method(name);
    Rpc rpc = door_.RpcOf(type);
    rpc.is_elsewhere = rpc.is_operators && !takes_admin_;
    const Method& method = methods_.Add(
        PathOf(type), {rpc, std::move(handle), service.Registered(type)});
    if (method.registered == nullptr) return;
    for (size_t at = lanes_.size() > 1 ? 1 : 0; at < lanes_.size(); ++at) {
      for (int i = 0; i < kAcceptsApart; ++i) Accept(*lanes_[at], &method);
    }
  }
  void Accept(Lane& lane, const Method* apart) {
    ServeCall(calls().loop, lane, door_, methods_, apart);
  }

  const Door& door_;
  Parser& parser_;
  const bool takes_admin_;
  grpc::AsyncGenericService any_;
  Methods methods_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::thread> threads_;
};

}  // namespace tensord::rpc
