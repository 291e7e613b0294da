#include "client/cpp/src/raw_call.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

namespace tensord::internal {
namespace {

constexpr std::chrono::milliseconds kPatience(200);

void* ToTag(int operation) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(operation));
}

}  // namespace

/// All that gRPC refers to while an operation is under way.
struct RawCall::State {
  explicit State(std::shared_ptr<grpc::Channel> channel)
      : stub(std::move(channel)) {}

  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  grpc::ByteBuffer incoming;
  grpc::Status status;
};

RawCall::RawCall(const Channels& channels,
                 const std::shared_ptr<grpc::Channel>& channel,
                 const char* method, absl::Time deadline)
    : channels_(channels), state_(std::make_unique<State>(channel)) {
  channels.Prepare(state_->context, deadline);
  state_->stream =
      state_->stub.PrepareCall(&state_->context, method, &state_->queue);
  Begin(kStart);
  state_->stream->StartCall(ToTag(kStart));
}

RawCall::~RawCall() {
  state_->queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  const auto deadline = std::chrono::system_clock::now() + kPatience;
  while (true) {
    switch (state_->queue.AsyncNext(&tag, &ok, deadline)) {
      case grpc::CompletionQueue::GOT_EVENT: continue;
      case grpc::CompletionQueue::SHUTDOWN: return;
      case grpc::CompletionQueue::TIMEOUT: break;
    }
    break;
  }
  // A write is stuck. Whoever waits for it must not be the caller.
  std::thread([state = std::move(state_)] {
    void* unused_tag = nullptr;
    bool unused_ok = false;
    while (state->queue.Next(&unused_tag, &unused_ok)) {
    }
  }).detach();
}

bool RawCall::AwaitStart() {
  while (pending_[kStart] && pending_[kRead]) TakeEvent();
  return !pending_[kStart];
}

void RawCall::BeginWrite(const grpc::ByteBuffer& message, bool last) {
  if (!AwaitStart()) return;
  Begin(kWrite);
  if (last) {
    state_->stream->WriteLast(message, grpc::WriteOptions(), ToTag(kWrite));
  } else {
    state_->stream->Write(message, ToTag(kWrite));
  }
}

void RawCall::BeginHalfClose() {
  if (!AwaitStart()) return;
  Begin(kWrite);
  state_->stream->WritesDone(ToTag(kWrite));
}

void RawCall::BeginRead() {
  Begin(kRead);
  state_->stream->Read(&state_->incoming, ToTag(kRead));
}

bool RawCall::AwaitWrite() {
  while (pending_[kWrite] && pending_[kRead]) TakeEvent();
  return succeeded_[kWrite];
}

bool RawCall::AwaitRead(grpc::ByteBuffer& message) {
  while (pending_[kRead]) TakeEvent();
  message.Clear();
  message.Swap(&state_->incoming);
  return succeeded_[kRead];
}

void RawCall::Cancel() { state_->context.TryCancel(); }

absl::Status RawCall::Finish() {
  Begin(kFinish);
  state_->stream->Finish(&state_->status, ToTag(kFinish));
  while (pending_[kFinish]) TakeEvent();
  return channels_.Outcome(state_->status, state_->context);
}

bool RawCall::HasWritten() {
  TakeEvents();
  return !pending_[kWrite];
}

bool RawCall::HasRead() {
  TakeEvents();
  return !pending_[kRead];
}

void RawCall::TakeEvent() {
  void* tag = nullptr;
  bool ok = false;
  state_->queue.Next(&tag, &ok);
  Note(tag, ok);
}

void RawCall::TakeEvents() {
  void* tag = nullptr;
  bool ok = false;
  while (state_->queue.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_REALTIME)) ==
         grpc::CompletionQueue::GOT_EVENT) {
    Note(tag, ok);
  }
}

void RawCall::Note(void* tag, bool ok) {
  const auto operation = reinterpret_cast<intptr_t>(tag);
  pending_[operation] = false;
  succeeded_[operation] = ok;
}

}  // namespace tensord::internal
