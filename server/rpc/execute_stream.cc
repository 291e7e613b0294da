// The handler of ComputeService that takes many operations in one call.
//
// Two coroutines share a stream: one reads requests and has their operations
// queued, the other awaits the operations and writes responses. Both, and the
// operations, live on the call's Loop.
#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/rpc/compute_service.h"
#include "server/rpc/convert.h"
#include "server/rpc/operations.h"

namespace tensord::rpc {
namespace {

// A message holds a response more as long as it is smaller; one is at most as
// large as what may be inline, and what is told of it.
constexpr size_t kPackedBytes = size_t{1} << 20;

}  // namespace

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

  bool NextHasEnded() const {
    return !runs.empty() && runs.front().await_ready();
  }

  std::optional<std::string> session;  // the first that exists
  std::deque<Task<absl::StatusOr<Done>>> runs;
  int64_t unanswered = 0;  // without response
  int64_t received = 0;    // operations
  bool packs = false;      // takes responses in batches
  bool complete = false;   // no operation will follow
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
  const absl::Status answered = co_await Answer(call, *stream, out);
  co_return stream->draining ? Draining() : answered;
}

Detached ComputeService::Receive(Call::Hold, Call& call,
                                 Reader<v1::ExecuteStreamRequest> in,
                                 std::shared_ptr<OpenStream> stream) {
  v1::ExecuteStreamRequest message;
  while (!stream->complete) {
    if (IsFull(*stream)) {
      co_await stream->answered;
      continue;
    }
    const bool received = co_await in.Read(message);
    if (!received) break;
    stream->packs = stream->packs || !message.batch().empty();
    const int count = std::max(message.batch_size(), 1);
    for (int i = 0; i < count; ++i) {
      if (IsFull(*stream)) stream->added.Notify();
      while (!stream->complete && IsFull(*stream)) co_await stream->answered;
      if (stream->complete) co_return;
      stream->runs.push_back(ExecuteNext(
          call, message.batch().empty() ? message : message.batch(i), *stream));
      ++stream->unanswered;
      stream->runs.back().Start();
    }
    stream->added.Notify();
  }
  stream->Complete();
}

bool ComputeService::IsFull(const OpenStream& stream) const {
  return stream.unanswered >= context_.max_stream_operations();
}

Task<absl::StatusOr<ComputeService::Done>> ComputeService::ExecuteNext(
    Call& call, const v1::ExecuteStreamRequest& request, OpenStream& stream) {
  EndedOperation ended{.begun = std::chrono::steady_clock::now()};
  auto done = co_await ExecuteOne(call, request, stream, ended.operation);
  if (done.ok() && done->run != nullptr) {
    ended.kernel = done->run->runner().kernel();
  }
  context_.door.EndOperation(call, ended, done.status());
  co_return done;
}

Task<absl::StatusOr<ComputeService::Done>> ComputeService::ExecuteOne(
    Call& call, const v1::ExecuteStreamRequest& request, OpenStream& stream,
    server::Metrics::Operation*& operation) {
  const int64_t index = stream.received++;
  if (request.operation_case() == v1::ExecuteStreamRequest::OPERATION_NOT_SET) {
    co_return core::InvalidArgument("OPERATION_MISSING",
                                    "the request has no operation");
  }
  operation = VisitOperation(
      request,
      [this](const auto& one) {
        return context_.door.OperationOf(KindOf(&one));
      },
      [this] { return context_.door.unknown_plan(); });
  const auto named = SessionNameIn(request);
  if (!named.ok()) co_return named.status();
  const absl::string_view name = **named;
  if (stream.session && name != *stream.session) {
    co_return core::InvalidArgument(
        "SESSION_DIFFERS", "the request names session '", name.substr(0, 300),
        "', earlier ones of the stream '", *stream.session,
        "', wanted one a stream");
  }
  const auto session = context_.door.FindSession(call, name);
  if (!session.ok()) co_return session.status();
  stream.session = std::string(name);
  context_.door.Join(call, *session);
  const server::SessionUse use(*session);
  server::HostHold hold;
  const absl::Status held = hold.Take(
      (*session)->host_memory(), server::HostUse::kRequests, BytesOf(request));
  if (!held.ok()) co_return held;
  if (call.record().is_once) {
    co_return co_await ExecuteOnce(call, request, index, *session, operation);
  }
  Asked asked = Ask(**session, request);
  operation = asked.counted;
  auto run = co_await Execute(call, *session, std::move(asked));
  if (!run.ok()) co_return run.status();
  co_return Done{*std::move(run), std::nullopt};
}

Task<absl::StatusOr<ComputeService::Done>> ComputeService::ExecuteOnce(
    Call& call, const v1::ExecuteStreamRequest& request, int64_t index,
    std::shared_ptr<server::Session> session,
    server::Metrics::Operation*& operation) {
  const std::string id = absl::StrCat(call.record().request_id, " ", index);
  server::Answers& answers = session->answers();
  auto earlier = answers.Begin(id, request.SerializeAsString());
  if (!earlier.ok()) co_return earlier.status();
  if (*earlier) {
    Done done{nullptr, v1::Result()};
    done.answer->ParseFromString(**earlier);
    co_return done;
  }
  Asked asked = Ask(*session, request);
  operation = asked.counted;
  auto run = co_await Execute(call, session, std::move(asked));
  if (!run.ok()) {
    answers.End(id, std::nullopt);
    co_return run.status();
  }
  Done done{*std::move(run), std::nullopt};
  done.answer = ToProto(*done.run);
  answers.End(id, done.answer->SerializeAsString());
  co_return done;
}

void ComputeService::Say(const absl::StatusOr<Done>& done, int64_t index,
                         const std::string& request_id,
                         v1::ExecuteStreamResponse& response) {
  response.set_index(index);
  if (!done.ok()) {
    *response.mutable_error() = ToProto(done.status(), request_id);
  } else if (done->answer) {
    *response.mutable_result() = *done->answer;
  } else {
    *response.mutable_result() = ToProto(*done->run);
  }
}

Task<absl::Status> ComputeService::Answer(
    Call& call, OpenStream& stream, Writer<v1::ExecuteStreamResponse> out) {
  const std::string& request_id = call.record().request_id;
  bool connected = true;
  int64_t index = 0;
  while (true) {
    while (stream.runs.empty() && !stream.complete) {
      co_await stream.added;
    }
    if (stream.runs.empty()) break;
    std::vector<absl::StatusOr<Done>> done;
    v1::ExecuteStreamResponse message;
    size_t bytes = 0;
    do {
      Task<absl::StatusOr<Done>>& first = stream.runs.front();
      auto next = co_await first;
      stream.runs.pop_front();
      v1::ExecuteStreamResponse& response =
          stream.packs ? *message.add_batch() : message;
      Say(next, index++, request_id, response);
      bytes += response.ByteSizeLong();
      done.push_back(std::move(next));
    } while (stream.packs && bytes < kPackedBytes && stream.NextHasEnded());
    // Those that began are waited for also when the client is gone.
    if (connected) {
      connected = co_await out.Write(message, stream.NextHasEnded());
    }
    // Who repeats the stream will learn them.
    if (!connected && !call.record().is_once) {
      for (const absl::StatusOr<Done>& each : done) {
        if (each.ok()) each->run->DropUnnamed();
      }
    }
    stream.unanswered -= std::ssize(done);
    done.clear();
    stream.answered.Notify();
  }
  if (!connected) co_return absl::CancelledError("the client is gone");
  co_return absl::OkStatus();
}

}  // namespace tensord::rpc
