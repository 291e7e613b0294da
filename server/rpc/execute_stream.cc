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
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/base/steady_time.h"
#include "server/rpc/compute_service.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/idle_watch.h"
#include "server/rpc/coroutine/patience.h"
#include "server/rpc/coroutine/pause.h"
#include "server/rpc/operations.h"

namespace tensord::rpc {
namespace {

// A message holds a response more as long as it is smaller; one is at most as
// large as what may be inline, and what is told of it.
constexpr int64_t kPackedBytes = int64_t{1} << 20;

// In which a stream has an operation of a session; strangers have none.
constexpr absl::Duration kMostWithoutSession = absl::Seconds(10);
// What an operation takes by itself, until the client has its response, is
// about twice as much.
constexpr int64_t kOperationBytes = 512;

// How long operations of one message are prepared without others having a turn:
// to see a tensor in a complicated way takes milliseconds.
constexpr absl::Duration kTurn = absl::Milliseconds(10);
// Long enough for gRPC to look for what others send.
constexpr absl::Duration kBetweenTurns = absl::Microseconds(100);

absl::Status IdleTooLong(absl::Duration limit, bool has_session) {
  return core::Error(
      absl::StatusCode::kAborted,
      has_session ? "STREAM_IDLE" : "STREAM_WITHOUT_SESSION",
      absl::StrCat("for ", absl::FormatDuration(limit), " the client has ",
                   has_session ? "asked for nothing" : "named no session",
                   "; begin another stream"));
}

}  // namespace

/// A message of the client, until its operations have been carried out.
struct ComputeService::Received {
  Received(Parser& parser, Call& call) : message(parser, call) {}

  /// Counts it as a session's, from the first operation on that has one, and
  /// as the server's before.
  /// Errors  as HostHold::Take().
  absl::Status Count(const server::Session& session) {
    if (is_counted) return absl::OkStatus();
    TENSORD_RETURN_IF_ERROR(
        hold.Take(session.host_memory(), server::HostUse::kRequests, bytes()));
    is_counted = true;
    return absl::OkStatus();
  }
  absl::Status Count(std::shared_ptr<server::HostLedger> server) {
    return hold.Take(std::move(server), server::HostUse::kRequests, bytes(),
                     /*count=*/0);
  }
  /// Of the message and, by themselves, of those operations that there are at a
  /// time.
  int64_t bytes() const {
    return message.bytes() +
           kOperationBytes *
               std::min<int64_t>(operation_count(),
                                 ServiceContext::kMostStreamOperations);
  }
  /// Its operations, one or more.
  int operation_count() const { return std::max(message->batch_size(), 1); }
  const v1::ExecuteStreamRequest& operation(int i) const {
    return message->batch().empty() ? *message : message->batch(i);
  }

  Incoming<v1::ExecuteStreamRequest> message;
  bool is_counted = false;
  server::HostHold hold;
};

/// What both coroutines of a stream see.
struct ComputeService::OpenStream final : Loop::Watcher {
  OpenStream(Call& call, absl::Duration most_idle)
      : Watcher(call.loop()), call(call), most_idle(most_idle) {
    Watch(kMostWithoutSession);
    call.OnSessionEnd([this](const absl::Status& why) { End(why); });
  }
  ~OpenStream() { call.OnSessionEnd(nullptr); }

  void Complete() {
    complete = true;
    added.Notify();
  }
  void End(const absl::Status& why) {
    failure = why;
    Complete();
  }
  void Refused() override { End(Draining()); }
  /// Gives up on a client that asks for nothing for so long.
  void Watch(absl::Duration limit) {
    idle.emplace(call, limit, [this, limit] {
      End(IdleTooLong(limit, session.has_value()));
    });
  }
  void Name(absl::string_view name) {
    if (session) return;
    session = std::string(name);
    Watch(most_idle);
    idle->set_waits(false);  // its first operation is under way
  }

  /// Whether the operation at `i` in `runs` is there and has ended.
  bool HasEnded(size_t i) const {
    return i < runs.size() && runs[i].task->await_ready();
  }

  struct Run {
    Done done;
    std::optional<Task<int64_t>> task;
  };

  Call& call;
  const absl::Duration most_idle;
  std::optional<IdleWatch> idle;
  std::optional<std::string> session;  // the first that exists
  std::deque<Run> runs;
  int64_t unanswered = 0;  // without response
  int64_t received = 0;    // operations
  bool packs = false;      // takes responses in batches
  bool complete = false;   // no operation will follow
  absl::Status failure;    // that ends it before the client does
  Signal added;            // an operation, or completeness
  Signal answered;
};

Task<absl::Status> ComputeService::ExecuteStream(
    Call& call, Reader in, Writer<v1::ExecuteStreamResponse> out) {
  const auto stream = std::make_shared<OpenStream>(call, context_.stream_idle);
  // Not awaited: the stream may end before the client has said that it sends no
  // more.
  Receive(Call::Hold(call), call, in, stream);
  const absl::Status answered = co_await Answer(call, *stream, out);
  co_return stream->failure.ok() ? answered : stream->failure;
}

Detached ComputeService::Receive(Call::Hold, Call& call, Reader in,
                                 std::shared_ptr<OpenStream> stream) {
  ByteBuffer wire;
  while (!stream->complete) {
    if (IsFull(*stream)) {
      co_await stream->answered;
      continue;
    }
    const bool came = co_await in.Read(wire);
    if (!came) break;
    const auto received = std::make_shared<Received>(context_.parser, call);
    absl::Status taken = co_await received->message.Parse(wire);
    taken.Update(received->Count(context_.sessions.host_memory()));
    if (!taken.ok()) {
      stream->End(taken);
      co_return;
    }
    stream->idle->Progress();
    stream->packs = stream->packs || !received->message->batch().empty();
    absl::Time turn_ends = core::SteadyNow() + kTurn;
    for (int i = 0; i < received->operation_count(); ++i) {
      if (core::SteadyNow() > turn_ends) {
        co_await Pause(call, kBetweenTurns);
        turn_ends = core::SteadyNow() + kTurn;
      }
      if (IsFull(*stream)) stream->added.Notify();
      while (!stream->complete && IsFull(*stream)) co_await stream->answered;
      if (stream->complete) co_return;
      OpenStream::Run& run = stream->runs.emplace_back();
      run.task.emplace(ExecuteNext(call, received, i, *stream, run.done));
      ++stream->unanswered;
      stream->idle->set_waits(false);
      run.task->Start();
    }
    stream->added.Notify();
  }
  stream->Complete();
}

bool ComputeService::IsFull(const OpenStream& stream) const {
  return stream.unanswered >= context_.max_stream_operations();
}

Task<int64_t> ComputeService::ExecuteNext(Call& call,
                                          std::shared_ptr<Received> received,
                                          int i, OpenStream& stream,
                                          Done& done) {
  EndedOperation ended{.begun = std::chrono::steady_clock::now()};
  const int64_t index = stream.received++;
  auto outcome = co_await ExecuteOne(call, *received, received->operation(i),
                                     index, stream, ended.operation);
  if (outcome.ok() && outcome->run != nullptr) {
    ended.kernel = outcome->run->runner().kernel();
  }
  context_.door.EndOperation(call, ended, outcome.status());
  v1::ExecuteStreamResponse& response = *done.response;
  response.set_index(index);
  if (!outcome.ok()) {
    done.hold.TakeAnyway(context_.sessions.host_memory(),
                         server::HostUse::kRequests, /*bytes=*/0);
    *response.mutable_error() =
        ToProto(outcome.status(), call.record().request_id);
  } else {
    *response.mutable_result() =
        outcome->answer ? *std::move(outcome->answer) : ToProto(*outcome->run);
    // Who repeats the stream will learn them.
    if (!call.record().is_once) done.unnamed = outcome->run->unnamed_results();
    done.session = std::move(outcome->session);
    done.hold = std::move(outcome->hold);
  }
  const auto bytes = static_cast<int64_t>(response.ByteSizeLong());
  done.hold.Add(kOperationBytes + bytes);
  // Until the client takes the response, nothing else is kept.
  received.reset();
  co_return bytes;
}

Task<absl::StatusOr<ComputeService::Outcome>> ComputeService::ExecuteOne(
    Call& call, Received& received, const v1::ExecuteStreamRequest& request,
    int64_t index, OpenStream& stream, server::Metrics::Operation*& operation) {
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
  auto session = context_.door.FindSession(call, name);
  if (!session.ok()) co_return session.status();
  const bool is_first = !stream.session;
  stream.Name(name);
  context_.door.Join(call, *session);
  if (is_first) {
    // It may have ended before its end could be told to this stream.
    session = context_.door.FindSession(call, name);
    if (!session.ok()) {
      stream.End(session.status());
      co_return session.status();
    }
  }
  const server::SessionUse use(*session);
  const absl::Status counted = received.Count(**session);
  if (!counted.ok()) co_return counted;
  Outcome outcome{.session = *session};
  const absl::Status held = outcome.hold.Take(
      (*session)->host_memory(), server::HostUse::kRequests, /*bytes=*/0);
  if (!held.ok()) co_return held;
  if (call.record().is_once) {
    const absl::Status executed =
        co_await ExecuteOnce(call, request, index, outcome, operation);
    if (!executed.ok()) co_return executed;
    co_return outcome;
  }
  Asked asked = Ask(**session, request);
  operation = asked.counted;
  auto run = co_await Execute(call, *session, std::move(asked));
  if (!run.ok()) co_return run.status();
  outcome.run = *std::move(run);
  co_return outcome;
}

Task<absl::Status> ComputeService::ExecuteOnce(
    Call& call, const v1::ExecuteStreamRequest& request, int64_t index,
    Outcome& outcome, server::Metrics::Operation*& operation) {
  const std::string id = absl::StrCat(call.record().request_id, " ", index);
  server::Answers& answers = outcome.session->answers();
  auto earlier = answers.Begin(id, request.SerializeAsString());
  if (!earlier.ok()) co_return earlier.status();
  if (*earlier) {
    outcome.answer.emplace().ParseFromString(**earlier);
    co_return absl::OkStatus();
  }
  Asked asked = Ask(*outcome.session, request);
  operation = asked.counted;
  auto run = co_await Execute(call, outcome.session, std::move(asked));
  if (!run.ok()) {
    answers.End(id, std::nullopt);
    co_return run.status();
  }
  outcome.run = *std::move(run);
  outcome.answer = ToProto(*outcome.run);
  answers.End(id, outcome.answer->SerializeAsString());
  co_return absl::OkStatus();
}

Task<absl::Status> ComputeService::Answer(
    Call& call, OpenStream& stream, Writer<v1::ExecuteStreamResponse> out) {
  PatientWriter writer(out, call, context_.transfer_idle);
  absl::Status written;
  while (true) {
    while (stream.runs.empty() && !stream.complete) {
      co_await stream.added;
    }
    if (stream.runs.empty()) break;
    v1::ExecuteStreamResponse packed;
    bool packs = false;
    size_t count = 0;
    int64_t bytes = 0;
    do {
      OpenStream::Run& run = stream.runs[count++];
      Task<int64_t>& task = *run.task;
      const int64_t response_bytes = co_await task;
      bytes += response_bytes;
      packs = stream.packs;
      if (packs) {
        packed.mutable_batch()->AddAllocated(run.done.response.release());
      }
    } while (packs && bytes < kPackedBytes && stream.HasEnded(count));
    // Those that began are waited for also when nobody takes what they end
    // with.
    if (written.ok()) {
      const auto& message = packs ? packed : *stream.runs.front().done.response;
      written = co_await writer.Write(message, stream.HasEnded(count));
    }
    for (; count > 0; --count) {
      const Done& done = stream.runs.front().done;
      if (!written.ok()) {
        for (const auto& tensor : done.unnamed) done.session->Remove(*tensor);
      }
      stream.runs.pop_front();
      --stream.unanswered;
    }
    stream.idle->Progress();
    stream.idle->set_waits(stream.runs.empty());
    stream.answered.Notify();
  }
  co_return written;
}

}  // namespace tensord::rpc
