// Binds handlers, which are coroutines, to the methods of a service.
//
// Handlers, one shape per kind of method (grpc::ByteBuffer as message type of
// raw ones):
//   unary          Task<absl::StatusOr<R>>(Call&, const Q&)
//   client stream  Task<absl::StatusOr<R>>(Call&, Reader<Q>)
//   server stream  Task<absl::Status>(Call&, const Q&, Writer<R>)
//   both streams   Task<absl::Status>(Call&, Reader<Q>, Writer<R>)
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/rpc/coroutine/idle_watch.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/coroutine/task.h"
#include "server/rpc/door/door.h"
#include "server/rpc/status.h"
#include "server/session/answers.h"

namespace tensord::rpc {

inline int64_t BytesOf(const grpc::ByteBuffer& message) {
  return static_cast<int64_t>(message.Length());
}
inline int64_t BytesOf(const google::protobuf::Message& message) {
  return static_cast<int64_t>(message.ByteSizeLong());
}

/// The client's messages of one call. One Read() at a time.
template <typename M>
class Reader {
 public:
  Reader(grpc::internal::AsyncReaderInterface<M>& io, Call& call)
      : io_(&io), call_(&call) {}
  /// False after the last message, and also when the call broke off, which
  /// cancelled() may tell only later: messages must say where the stream ends.
  auto Read(M& to) const {
    return Operation(
        [io = io_, &to](void* tag) { io->Read(&to, tag); },
        [call = call_, &to] { call->record().received_bytes += BytesOf(to); });
  }

 private:
  grpc::internal::AsyncReaderInterface<M>* io_;
  Call* call_;
};

/// The server's messages of one call. One Write() at a time.
template <typename M>
class Writer {
 public:
  Writer(grpc::internal::AsyncWriterInterface<M>& io, Call& call)
      : io_(&io), call_(&call) {}
  /// True when flow control lets the next message in: `message` may go then,
  /// memory that its slices refer to may not. False when the call is over.
  ///
  /// With `more`, the message may wait for the next one, which must follow
  /// soon.
  auto Write(const M& message, bool more = false) const {
    return Operation(
        [io = io_, &message, more](void* tag) {
          grpc::WriteOptions options;
          if (more) options.set_buffer_hint();
          io->Write(message, options, tag);
        },
        [call = call_, bytes = BytesOf(message)] {
          call->record().sent_bytes += bytes;
        });
  }

 private:
  grpc::internal::AsyncWriterInterface<M>* io_;
  Call* call_;
};

/// The request of a method whose requests are a stream.
struct NoRequest {};

template <typename Io>
inline constexpr bool kIsUnary = false;
template <typename R>
inline constexpr bool kIsUnary<grpc::ServerAsyncResponseWriter<R>> = true;

/// Carries out a call, or answers it as one of the same id was before. Errors
/// are not kept: what failed may be tried again.
template <typename R, typename H, typename Q>
Task<absl::StatusOr<R>> InvokeOnce(H& handler, Call& call, const Q& request) {
  const CallRecord& record = call.record();
  if (record.session == nullptr) co_return co_await handler(call, request);
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
  auto result = co_await handler(call, request);
  answers.End(
      record.request_id,
      result.ok() ? std::optional(result->SerializeAsString()) : std::nullopt);
  co_return result;
}

// Calls the handler of each kind of method.
template <typename H, typename Q, typename R>
auto Invoke(H& handler, Call& call, const Q& request,
            grpc::ServerAsyncResponseWriter<R>&) {
  return call.record().is_once ? InvokeOnce<R>(handler, call, request)
                               : handler(call, request);
}
template <typename H, typename Q, typename R>
auto Invoke(H& handler, Call& call, NoRequest,
            grpc::ServerAsyncReader<R, Q>& io) {
  return handler(call, Reader<Q>(io, call));
}
template <typename H, typename Q, typename R>
auto Invoke(H& handler, Call& call, const Q& request,
            grpc::ServerAsyncWriter<R>& io) {
  return handler(call, request, Writer<R>(io, call));
}
template <typename H, typename Q, typename R>
auto Invoke(H& handler, Call& call, NoRequest,
            grpc::ServerAsyncReaderWriter<R, Q>& io) {
  return handler(call, Reader<Q>(io, call), Writer<R>(io, call));
}

// What a handler returned.
inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename R>
const absl::Status& StatusOf(const absl::StatusOr<R>& result) {
  return result.status();
}

// Ends a call with what its handler returned.
template <typename Io>
void Finish(Call& call, Io& io, const absl::Status& status, void* tag) {
  const grpc::Status sent =
      ToGrpc(status, call.context(), call.record().request_id);
  if constexpr (requires { io.FinishWithError(sent, tag); }) {
    io.FinishWithError(sent, tag);
  } else {
    io.Finish(sent, tag);
  }
}
template <typename Io, typename R>
void Finish(Call& call, Io& io, const absl::StatusOr<R>& result, void* tag) {
  if (!result.ok()) {
    Finish(call, io, result.status(), tag);
  } else if constexpr (requires { io.Finish(*result, grpc::Status(), tag); }) {
    io.Finish(*result, grpc::Status::OK, tag);
  } else {  // a raw method whose handler returns a message
    grpc::ByteBuffer wire;
    bool own = false;
    using Traits = grpc::SerializationTraits<R>;
    const grpc::Status written = Traits::Serialize(*result, &wire, &own);
    io.Finish(wire, written, tag);
  }
}

/// What waits to be sent without being watched, as it fits what HTTP/2 sends
/// unasked.
inline constexpr int64_t kUnwatchedBytes = 65'535;

/// Serves one call of `rpc`, from the wait for it, on `accepting`, to its end,
/// on `loop`. The coroutine's frame owns all that gRPC refers to.
template <typename Io, typename Request, typename Accept, typename Handler>
Detached ServeCall(Loop& accepting, Loop& loop, const Door& door, Rpc rpc,
                   Accept accept, Handler handler) {
  Call call(loop);
  Io io(&call.context());
  Request request;
  const bool began = co_await Operation([&](void* tag) {
    accept(&call.context(), &request, &io, loop.queue(), accepting.queue(),
           tag);
  });
  if (!began)
    co_return;  // Shutdown. A call that never began has no end notice.
  call.Begin();
  // The next one.
  ServeCall<Io, Request>(accepting, loop, door, rpc, accept, handler);
  if (&accepting != &loop) co_await MoveTo(loop);
  if constexpr (!std::is_same_v<Request, NoRequest>) {
    call.record().received_bytes = BytesOf(request);
  }
  const absl::Status let_in = door.Begin(call, rpc, request);
  if (!let_in.ok()) {
    door.End(call, let_in);
    co_await Operation([&](void* tag) { Finish(call, io, let_in, tag); });
  } else {
    auto result = co_await Invoke(handler, call, request, io);
    if (!call.stopped().ok() && !StatusOf(result).ok()) result = call.stopped();
    if constexpr (requires { BytesOf(*result); }) {
      if (result.ok()) {
        call.record().sent_bytes = BytesOf(*result);
        call.record().hold.Add(call.record().sent_bytes);
      }
    }
    door.End(call, StatusOf(result));
    std::optional<IdleWatch> watch;
    if (call.record().sent_bytes > kUnwatchedBytes) {
      watch.emplace(call, door.transfer_idle(),
                    [&] { EndUnread(call, watch->Stalled("taken no data")); });
    }
    co_await Operation([&](void* tag) { Finish(call, io, result, tag); });
  }
  co_await call.End();
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
/// delivers them; copying payload, on the others, does not hold them up. It
/// accepts for the others, too, which sleep while there is nothing to copy.
/// gRPC delivers the calls of one channel nearly always, but not for certain,
/// in the order in which they were made: it reads on the threads of all Loops,
/// which may overtake each other, and so may calls that come while more wait to
/// be taken than a Loop accepts in between two turns. Only messages of one
/// stream are in order for certain.
class LoopGroup {
  using Context = grpc::ServerContext;
  using Queue = grpc::CompletionQueue;
  using ServerQueue = grpc::ServerCompletionQueue;

 public:
  /// Unless `takes_admin`, what is for operators is refused.
  /// Lifetime  `door`, which every call passes, outlives it.
  LoopGroup(grpc::ServerBuilder& builder, int loop_count, const Door& door,
            bool takes_admin)
      : door_(door), takes_admin_(takes_admin) {
    for (int i = 0; i < loop_count; ++i) {
      loops_.push_back(std::make_unique<Loop>(builder.AddCompletionQueue(),
                                              /*sleeps=*/i > 0));
    }
  }

  /// Has `handler` serve a method with one request, `rpc` in the contract. Each
  /// call has a copy of `handler`.
  ///
  /// Lifetime  what `handler` refers to outlives Shutdown().
  template <typename S, typename B, typename Io, typename Q, typename H>
  void Serve(absl::string_view rpc, S& service,
             void (B::*method)(Context*, Q*, Io*, Queue*, ServerQueue*, void*),
             H handler, Traffic traffic = Traffic::kCalls) {
    const auto accept = [&service, method](Context* context, Q* request, Io* io,
                                           Queue* queue, ServerQueue* accepting,
                                           void* tag) {
      (service.*method)(context, request, io, queue, accepting, tag);
    };
    Accept<Io, Q>(RpcOf(rpc), accept, handler, traffic);
  }
  /// The same for a method with a stream of requests.
  template <typename S, typename B, typename Io, typename H>
  void Serve(absl::string_view rpc, S& service,
             void (B::*method)(Context*, Io*, Queue*, ServerQueue*, void*),
             H handler, Traffic traffic = Traffic::kCalls) {
    const auto accept = [&service, method](Context* context, void*, Io* io,
                                           Queue* queue, ServerQueue* accepting,
                                           void* tag) {
      (service.*method)(context, io, queue, accepting, tag);
    };
    Accept<Io, NoRequest>(RpcOf(rpc), accept, handler, traffic);
  }

  /// The one that takes all calls.
  Loop& calls() { return *loops_[0]; }

  void Start() {
    for (auto& loop : loops_) threads_.emplace_back([&] { loop->Run(); });
  }

  /// Ends every call that begins from now on with UNAVAILABLE.
  void Refuse() {
    for (auto& loop : loops_) loop->Refuse();
  }

  /// Gives the running calls `grace`, cancels the rest and returns when every
  /// handler has returned and every Loop is drained. Refuse() came before.
  void Shutdown(grpc::Server& server, std::chrono::milliseconds grace) {
    // gRPC would wait for its own calls, too: who watches the server's health
    // does so for as long as it lives.
    constexpr std::chrono::milliseconds kLook{5};
    const auto end = std::chrono::steady_clock::now() + grace;
    while (is_busy() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kLook);
    }
    server.Shutdown(std::chrono::system_clock::now());
    // The first last, as it accepts for all.
    std::for_each(loops_.rbegin(), loops_.rend(),
                  [](const auto& loop) { loop->Drain(); });
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  bool is_busy() const {
    return std::any_of(loops_.begin(), loops_.end(),
                       [](const auto& loop) { return loop->is_busy(); });
  }

  // Calls of one method that a Loop takes in between two turns: of those that
  // come many at a time, and of others. gRPC as Debian has it looks through all
  // that are awaited whenever one comes.
  static constexpr int kOperationAccepts = 32;
  static constexpr int kAccepts = 4;

  Rpc RpcOf(absl::string_view name) const {
    Rpc rpc = door_.RpcOf(name);
    rpc.is_elsewhere = rpc.is_operators && !takes_admin_;
    return rpc;
  }

  template <typename Io, typename Q, typename A, typename H>
  void Accept(const Rpc& method, const A& accept, const H& handler,
              Traffic traffic) {
    Rpc rpc = method;
    rpc.is_stream = !kIsUnary<Io>;
    const bool is_on_first = traffic == Traffic::kCalls || loops_.size() == 1;
    const bool comes_often =
        rpc.operation != nullptr || rpc.name == "KeepSessionAlive";
    const size_t begin = is_on_first ? 0 : 1;
    const size_t end = is_on_first ? 1 : loops_.size();
    for (size_t at = begin; at < end; ++at) {
      for (int i = 0; i < (comes_often ? kOperationAccepts : kAccepts); ++i) {
        ServeCall<Io, Q>(*loops_[0], *loops_[at], door_, rpc, accept, handler);
      }
    }
  }

  const Door& door_;
  const bool takes_admin_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::thread> threads_;
};

}  // namespace tensord::rpc
