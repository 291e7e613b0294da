// The handler of ComputeService that takes many operations in one call.
//
// Two coroutines share a stream: one reads requests and has their operations
// queued, the other awaits the operations and writes responses. Both, and the
// operations, live on the call's Loop.
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/status.h"
#include "server/rpc/compute_service.h"

namespace tensord::rpc {

/// What both coroutines of a stream see.
struct ComputeService::OpenStream final : Loop::Watcher {
  using Watcher::Watcher;

  void Complete() {
    complete = true;
    added.Notify();
  }
  void Refused() override {
    draining = true;
    Complete();
  }

  std::optional<std::string> session;  // the first that exists
  std::deque<Task<absl::StatusOr<Executed>>> operations;  // without response
  bool complete = false;  // no operation will follow
  bool draining = false;
  Signal added;  // an operation, or completeness
  Signal answered;
};

Task<absl::Status> ComputeService::ExecuteStream(
    Call& call, Reader<v1::ExecuteStreamRequest> in,
    Writer<v1::ExecuteStreamResponse> out) {
  const auto stream = std::make_shared<OpenStream>(call.loop());
  // Not awaited: when the server drains, the stream ends before the client has
  // said that it sends no more.
  Receive(Call::Hold(call), call, in, stream);
  const absl::Status answered = co_await Answer(*stream, out);
  co_return stream->draining ? Draining() : answered;
}

Detached ComputeService::Receive(Call::Hold, Call& call,
                                 Reader<v1::ExecuteStreamRequest> in,
                                 std::shared_ptr<OpenStream> stream) {
  v1::ExecuteStreamRequest request;
  while (!stream->complete) {
    if (std::ssize(stream->operations) >= context_.max_stream_operations()) {
      co_await stream->answered;
      continue;
    }
    const bool received = co_await in.Read(request);
    if (!received) break;
    if (stream->complete) co_return;
    stream->operations.push_back(ExecuteNext(call, request, *stream));
    stream->operations.back().Start();
    stream->added.Notify();
  }
  stream->Complete();
}

Task<absl::StatusOr<ComputeService::Executed>> ComputeService::ExecuteNext(
    Call& call, const v1::ExecuteStreamRequest& request, OpenStream& stream) {
  absl::StatusOr<Asked> asked = Ask(request);
  if (!asked.ok()) co_return asked.status();
  if (!stream.session && context_.sessions.Find(asked->session).ok()) {
    stream.session = asked->session;
  }
  if (stream.session && asked->session != *stream.session) {
    asked->operation = core::InvalidArgument(
        "SESSION_DIFFERS", "the request names session '",
        asked->session.substr(0, 300), "', earlier ones of the stream '",
        *stream.session, "', wanted one a stream");
  }
  co_return co_await Execute(call, *std::move(asked));
}

Task<absl::Status> ComputeService::Answer(
    OpenStream& stream, Writer<v1::ExecuteStreamResponse> out) {
  bool connected = true;
  for (int64_t index = 0;; ++index) {
    while (stream.operations.empty() && !stream.complete) {
      co_await stream.added;
    }
    if (stream.operations.empty()) break;
    auto& operation = stream.operations.front();
    auto executed = co_await operation;
    v1::ExecuteStreamResponse response;
    response.set_index(index);
    if (executed.ok()) {
      FillResult(*executed, response.mutable_result());
    } else {
      *response.mutable_error() = ToProto(executed.status());
    }
    // Those that began are waited for also when the client is gone.
    const bool more =
        std::ssize(stream.operations) > 1 && stream.operations[1].await_ready();
    if (connected) connected = co_await out.Write(response, more);
    if (!connected && executed.ok()) DropOutput(*executed);
    stream.operations.pop_front();
    stream.answered.Notify();
  }
  if (!connected) co_return absl::CancelledError("the client is gone");
  co_return absl::OkStatus();
}

}  // namespace tensord::rpc
