// Binds handlers, which are coroutines, to the methods of a service.
//
// Handlers, one shape per kind of method; what a Reader reads, they parse:
//   unary          Task<absl::StatusOr<R>>(Call&, const Q&)
//   client stream  Task<absl::StatusOr<R>>(Call&, Reader)
//   server stream  Task<absl::Status>(Call&, const Q&, Writer<R>)
//   both streams   Task<absl::Status>(Call&, Reader, Writer<R>)
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/coroutine/outgoing.h"
#include "server/rpc/coroutine/parser.h"
#include "server/rpc/coroutine/raw_service.h"
#include "server/rpc/coroutine/stalls.h"
#include "server/rpc/coroutine/task.h"
#include "server/rpc/door/door.h"
#include "server/rpc/status.h"
#include "server/session/answers.h"

namespace tensord::rpc {

using grpc::ByteBuffer;

inline int64_t BytesOf(const ByteBuffer& message) {
  return static_cast<int64_t>(message.Length());
}

/// The client's messages of one call. One Read() at a time.
class Reader {
 public:
  Reader(grpc::internal::AsyncReaderInterface<ByteBuffer>& io, Call& call)
      : io_(&io), call_(&call) {}
  /// False after the last message, and also when the call broke off, which
  /// cancelled() may tell only later: messages must say where the stream ends.
  auto Read(ByteBuffer& to) const {
    return Operation(
        [io = io_, &to](void* tag) { io->Read(&to, tag); },
        [call = call_, &to] { call->record().received_bytes += BytesOf(to); });
  }

 private:
  grpc::internal::AsyncReaderInterface<ByteBuffer>* io_;
  Call* call_;
};

/// The server's messages of one call. One Write() at a time.
template <typename M>
class Writer {
 public:
  Writer(grpc::internal::AsyncWriterInterface<Outgoing>& io, Call& call)
      : io_(&io), call_(&call) {}
  /// True when flow control lets the next message in: `message` may go then,
  /// memory that its slices refer to may not. False when the call is over.
  ///
  /// With `more`, the message may wait for the next one, which must follow
  /// soon.
  auto Write(const M& message, bool more = false) const {
    return Operation([io = io_, call = call_, &message, more](void* tag) {
      grpc::WriteOptions options;
      const Outgoing outgoing(message);
      // The first goes with the call's metadata: gRPC says that it is in only
      // when these are on their way, which nothing would see to.
      const bool is_first = call->record().sent_bytes == 0;
      if (more && !is_first) options.set_buffer_hint();
      call->record().sent_bytes += outgoing.bytes();
      io->Write(outgoing, options, tag);
    });
  }

 private:
  grpc::internal::AsyncWriterInterface<Outgoing>* io_;
  Call* call_;
};

// How gRPC moves messages of methods with one response, and with a stream of
// them. One request is to it a stream of one.
using OneResponseIo = grpc::ServerAsyncReader<Outgoing, ByteBuffer>;
using ResponsesIo = grpc::ServerAsyncReaderWriter<Outgoing, ByteBuffer>;

template <typename Io>
inline constexpr bool kHasOneResponse = std::is_same_v<Io, OneResponseIo>;

/// What carries out a call of a method and returns what it ends with. `request`
/// is empty where requests are a stream, and may be let go.
template <typename Io>
using Handle = std::function<
    Task<std::conditional_t<kHasOneResponse<Io>, absl::StatusOr<Outgoing>,
                            absl::Status>>(Call&, ByteBuffer& request, Io&)>;

/// A method as it is served.
template <typename Io>
struct Method {
  RawService& service;
  const google::protobuf::MethodDescriptor& type;
  Rpc rpc;
  Handle<Io> handle;
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
Task<absl::StatusOr<Outgoing>> HandleUnary(
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
Task<absl::StatusOr<Outgoing>> HandleClientStream(
    Call& call, const Door& door, OneResponseIo& io, S& self,
    Task<absl::StatusOr<R>> (S::*handler)(Call&, Reader)) {
  const absl::Status announced = door.Announce(call, nullptr);
  if (!announced.ok()) co_return announced;
  const absl::StatusOr<R> result =
      co_await (self.*handler)(call, Reader(io, call));
  if (!result.ok()) co_return result.status();
  co_return Outgoing(*result);
}
template <typename S, typename R>
Task<absl::Status> HandleBothStreams(
    Call& call, const Door& door, ResponsesIo& io, S& self,
    Task<absl::Status> (S::*handler)(Call&, Reader, Writer<R>)) {
  const absl::Status announced = door.Announce(call, nullptr);
  if (!announced.ok()) co_return announced;
  co_return co_await (self.*handler)(call, Reader(io, call),
                                     Writer<R>(io, call));
}
template <typename S, typename Q, typename R>
Task<absl::Status> HandleServerStream(
    Call& call, const Door& door, Parser& parser, ByteBuffer& wire,
    ResponsesIo& io, S& self,
    Task<absl::Status> (S::*handler)(Call&, const Q&, Writer<R>)) {
  Incoming<Q> request(parser, call);
  const absl::Status parsed = co_await request.Parse(wire);
  if (!parsed.ok()) co_return parsed;
  const absl::Status entered = door.EnterFor(call, *request, request.bytes());
  if (!entered.ok()) co_return entered;
  const absl::Status announced = door.Announce(call, &*request);
  if (!announced.ok()) co_return announced;
  co_return co_await (self.*handler)(call, *request, Writer<R>(io, call));
}

/// What a call ends with whose request has not come.
inline absl::Status NoRequest(const Call& call, const Stalls::Wait& wait) {
  if (!wait.broken_off().ok()) return wait.broken_off();
  if (call.cancelled()) return absl::CancelledError("the client is gone");
  return core::InvalidArgument("REQUEST_MISSING",
                               "the call has ended without a request");
}

// What a handler returned.
inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
inline const absl::Status& StatusOf(const absl::StatusOr<Outgoing>& result) {
  return result.status();
}

// Ends a call with what its handler returned.
template <typename Io>
void Finish(Call& call, Io& io, const absl::Status& status, void* tag) {
  const grpc::Status sent =
      ToGrpc(status, call.context(), call.record().request_id);
  if constexpr (kHasOneResponse<Io>) {
    io.FinishWithError(sent, tag);
  } else {
    io.Finish(sent, tag);
  }
}
template <typename Io>
void Finish(Call& call, Io& io, const absl::StatusOr<Outgoing>& result,
            void* tag) {
  if (result.ok()) {
    io.Finish(*result, grpc::Status::OK, tag);
  } else {
    Finish(call, io, result.status(), tag);
  }
}

/// Where calls live.
struct Lane {
  Lane(std::unique_ptr<grpc::ServerCompletionQueue> queue, bool sleeps,
       absl::Duration patience)
      : loop(std::move(queue), sleeps),
        requests(loop, patience, "sent no request", kMost),
        calls_of_anybody(loop, patience, "sent or taken nothing",
                         kMostOfAnybody),
        answers(loop, patience, "taken no data") {}

  /// Requires  there are no calls any more.
  void Stop() {
    requests.Stop();
    calls_of_anybody.Stop();
    answers.Stop();
  }

  /// How many may wait for their clients. Those of people who are not asked
  /// who they are count nowhere else.
  static constexpr int64_t kMost = 4096;
  static constexpr int64_t kMostOfAnybody = 1024;

  Loop loop;
  Stalls requests;
  Stalls calls_of_anybody;
  Stalls answers;

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
};

/// Serves one call of `method`, from the wait for it, on `accepting`, to its
/// end, at `lane`. The coroutine's frame owns all that gRPC refers to.
template <typename Io>
Detached ServeCall(Loop& accepting, Lane& lane, const Door& door,
                   const Method<Io>& method) {
  Loop& loop = lane.loop;
  Call call(loop);
  Io io(&call.context());
  ByteBuffer request;
  const bool began = co_await Operation([&](void* tag) {
    method.service.Await(method.type, call.context(), request, io,
                         *loop.queue(), *accepting.queue(), tag);
  });
  if (!began)
    co_return;  // Shutdown. A call that never began has no end notice.
  call.Begin();
  ServeCall(accepting, lane, door, method);  // the next one
  if (&accepting != &loop) co_await MoveTo(loop);
  CallRecord& record = call.record();
  record.received_bytes = BytesOf(request);
  absl::Status let_in = door.Begin(call, method.rpc);
  if (let_in.ok() && method.rpc.is_read_last) {
    const Stalls::Wait wait(
        method.rpc.is_anybodys ? lane.calls_of_anybody : lane.requests, call,
        /*bytes=*/0);
    const bool came = co_await Reader(io, call).Read(request);
    // Much may have happened meanwhile.
    let_in = came ? Door::CheckIdentity(record) : NoRequest(call, wait);
    if (!came) record.operation = nullptr;
    record.begun = std::chrono::steady_clock::now();
    if (!method.rpc.is_stream) record.open_hold = server::HostHold();
  }
  if (!let_in.ok()) {
    request.Clear();
    door.End(call, let_in);
    const Stalls::Wait wait(lane.answers, call, /*bytes=*/0);
    co_await Operation([&](void* tag) { Finish(call, io, let_in, tag); });
  } else {
    auto result = co_await method.handle(call, request, io);
    if (!call.stopped().ok() && !StatusOf(result).ok()) result = call.stopped();
    if constexpr (kHasOneResponse<Io>) {
      if (result.ok()) {
        record.sent_bytes = result->bytes();
        record.hold.Add(record.sent_bytes);
      }
    }
    door.End(call, StatusOf(result));
    const Stalls::Wait wait(lane.answers, call, record.sent_bytes);
    co_await Operation([&](void* tag) { Finish(call, io, result, tag); });
  }
  co_await call.End();
  if (record.undo && call.context().IsCancelled()) std::move(record.undo)();
}

/// Which Loops serve a method.
enum class Traffic {
  kCalls,      // small messages: the first
  kTransfers,  // payload: the others, or the first when there is no other
};

/// The Loops of one server: create, BuildAndStart() the server, Serve() each
/// method, Start(), and at last Shutdown().
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
  /// Unless `takes_admin`, what is for operators is refused.
  /// Lifetime  `door`, which every call passes, and `parser` outlive it.
  LoopGroup(grpc::ServerBuilder& builder, int loop_count, const Door& door,
            Parser& parser, bool takes_admin)
      : door_(door), parser_(parser), takes_admin_(takes_admin) {
    for (int i = 0; i < loop_count; ++i) {
      lanes_.push_back(std::make_unique<Lane>(builder.AddCompletionQueue(),
                                              /*sleeps=*/i > 0,
                                              door.transfer_idle()));
    }
  }

  /// Has a handler of `self` serve `rpc` of `service`.
  ///
  /// Lifetime  `self` outlives Shutdown().
  template <typename S, typename Q, typename R>
  void Serve(RawService& service, absl::string_view rpc, S& self,
             Task<absl::StatusOr<R>> (S::*handler)(Call&, const Q&),
             Traffic traffic = Traffic::kCalls) {
    Accept<OneResponseIo>(service, rpc, traffic,
                          [this, &self, handler](
                              Call& call, ByteBuffer& request, OneResponseIo&) {
                            return HandleUnary(call, door_, parser_, request,
                                               self, handler);
                          });
  }
  template <typename S, typename R>
  void Serve(RawService& service, absl::string_view rpc, S& self,
             Task<absl::StatusOr<R>> (S::*handler)(Call&, Reader),
             Traffic traffic = Traffic::kCalls) {
    Accept<OneResponseIo>(
        service, rpc, traffic,
        [this, &self, handler](Call& call, ByteBuffer&, OneResponseIo& io) {
          return HandleClientStream(call, door_, io, self, handler);
        });
  }
  template <typename S, typename Q, typename R>
  void Serve(RawService& service, absl::string_view rpc, S& self,
             Task<absl::Status> (S::*handler)(Call&, const Q&, Writer<R>),
             Traffic traffic = Traffic::kCalls) {
    Accept<ResponsesIo>(service, rpc, traffic,
                        [this, &self, handler](Call& call, ByteBuffer& request,
                                               ResponsesIo& io) {
                          return HandleServerStream(call, door_, parser_,
                                                    request, io, self, handler);
                        });
  }
  template <typename S, typename R>
  void Serve(RawService& service, absl::string_view rpc, S& self,
             Task<absl::Status> (S::*handler)(Call&, Reader, Writer<R>),
             Traffic traffic = Traffic::kCalls) {
    Accept<ResponsesIo>(
        service, rpc, traffic,
        [this, &self, handler](Call& call, ByteBuffer&, ResponsesIo& io) {
          return HandleBothStreams(call, door_, io, self, handler);
        });
  }

  /// The one that takes all calls.
  Lane& calls() { return *lanes_[0]; }

  void Start() {
    for (auto& lane : lanes_) {
      threads_.emplace_back([&lane] { lane->loop.Run(); });
    }
  }

  /// Ends every call that begins from now on with UNAVAILABLE.
  void Refuse() {
    for (auto& lane : lanes_) lane->loop.Refuse();
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

  // How many calls of one method a Loop takes in between two turns: of what
  // comes many at a time more, of what people ask for by hand one. gRPC as
  // Debian has it looks through all that are awaited three times a call.
  static int AcceptsOf(const Rpc& rpc) {
    constexpr int kOperations = 32;
    constexpr int kOthers = 4;
    if (rpc.is_operators) return 1;
    return rpc.operation != nullptr ? kOperations : kOthers;
  }

  template <typename Io>
  void Accept(RawService& service, absl::string_view name, Traffic traffic,
              Handle<Io> handle) {
    const google::protobuf::MethodDescriptor& type = service.Method(name);
    Method<Io>& method =
        std::get<std::deque<Method<Io>>>(methods_).emplace_back(
            Method<Io>{service, type, door_.RpcOf(type), std::move(handle)});
    method.rpc.is_elsewhere = method.rpc.is_operators && !takes_admin_;
    method.rpc.is_read_last = service.IsReadLast(type);
    const bool is_on_first = traffic == Traffic::kCalls || lanes_.size() == 1;
    const size_t begin = is_on_first ? 0 : 1;
    const size_t end = is_on_first ? 1 : lanes_.size();
    const int accepts = AcceptsOf(method.rpc);
    for (size_t at = begin; at < end; ++at) {
      for (int i = 0; i < accepts; ++i) {
        ServeCall(calls().loop, *lanes_[at], door_, method);
      }
    }
  }

  const Door& door_;
  Parser& parser_;
  const bool takes_admin_;
  std::tuple<std::deque<Method<OneResponseIo>>, std::deque<Method<ResponsesIo>>>
      methods_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::thread> threads_;
};

}  // namespace tensord::rpc
