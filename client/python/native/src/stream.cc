#include "client/python/native/src/stream.h"

#include <grpcpp/completion_queue.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/python/native/src/batch.h"
#include "client/python/native/src/errors.h"

namespace tensord::native {
namespace {

namespace nb = nanobind;

constexpr size_t kMostUnsentBytes = size_t{4} << 20;
constexpr size_t kMostUnreadBytes = size_t{16} << 20;
constexpr size_t kBatch = 128;
// A batch that is sent is no larger; a message has its limit.
constexpr size_t kMostPacked = 64;
constexpr size_t kMostPackedBytes = size_t{64} << 10;
// What is written within it goes together.
constexpr absl::Duration kGather = absl::Microseconds(300);
constexpr absl::Duration kSlice = absl::Milliseconds(50);

enum Operation { kStart, kWrite, kRead, kFinish };

void* ToTag(Operation operation) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(operation));
}

}  // namespace

struct Stream::State : std::enable_shared_from_this<Stream::State> {
  State(Channel& channel, const CallOptions& options, bool packs)
      : origin(channel.origin()),
        grpc_channel(channel.grpc_channel()),
        packs(packs) {
    options.Prepare(context);
    entry.emplace(channel, context);
  }

  void Begin(Channel& channel, const std::string& method) {
    call = channel.stub().PrepareCall(&context, method, &queue);
    call->StartCall(ToTag(kStart));
    std::thread([self = shared_from_this()] { self->Pump(); }).detach();
    std::thread([self = shared_from_this()] { self->SendBatches(); }).detach();
  }

  /// Takes part in what gRPC has done, until the call has ended.
  void Pump();
  void Handle(Operation operation, bool ok)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// Has what was written sent, some of it at a time.
  void SendBatches();
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// What is next to be sent, a batch if it packs.
  /// Requires  something is.
  grpc::ByteBuffer TakeUnsent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void TakeReply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void ReadNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  bool HasMessages() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return ended || !replies.empty();
  }
  bool IsFull() const { return unsent_bytes >= kMostUnsentBytes && !closed; }
  /// Whether the replies that are there are worth waking Python for.
  bool IsEnough() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return replies.size() >= kBatch || !reading || reply_count >= sent_count;
  }
  /// False when nothing is sent any more.
  bool Add(grpc::ByteBuffer& message);
  /// Nothing is added any more.
  void Close();
  /// Waits until there are enough of them, or for `most`.
  void Gather(absl::Duration most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// Has all that was written sent.
  void Release() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Hurry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    hurry = true;
    Release();
    changed.SignalAll();
  }

  const Origin origin;
  const std::shared_ptr<grpc::Channel> grpc_channel;
  const bool packs;
  grpc::ClientContext context;
  std::optional<Channel::Entry> entry ABSL_GUARDED_BY(mutex);  // while it runs
  grpc::CompletionQueue queue;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;

  // Nobody does anything long with it: Python takes it with the GIL.
  absl::Mutex inbox_mutex ABSL_ACQUIRED_AFTER(mutex);
  absl::CondVar added;  // or closed
  std::vector<grpc::ByteBuffer> inbox ABSL_GUARDED_BY(inbox_mutex);
  bool sender_sleeps ABSL_GUARDED_BY(inbox_mutex) = false;
  std::atomic<bool> closed{false};
  std::atomic<size_t> unsent_bytes{0};  // those of the inbox, too
  std::atomic<int64_t> sent_count{0};

  absl::Mutex mutex;
  absl::CondVar changed;
  std::deque<grpc::ByteBuffer> unsent ABSL_GUARDED_BY(mutex);
  int64_t reply_count ABSL_GUARDED_BY(mutex) = 0;
  std::deque<grpc::ByteBuffer> replies ABSL_GUARDED_BY(mutex);
  size_t unread_bytes ABSL_GUARDED_BY(mutex) = 0;
  grpc::ByteBuffer incoming;
  grpc::Status status ABSL_GUARDED_BY(mutex);
  bool started ABSL_GUARDED_BY(mutex) = false;
  bool writing ABSL_GUARDED_BY(mutex) = false;
  bool reading ABSL_GUARDED_BY(mutex) = false;
  bool writes_end ABSL_GUARDED_BY(mutex) = false;
  bool writes_ended ABSL_GUARDED_BY(mutex) = false;  // or have failed
  bool hurry ABSL_GUARDED_BY(mutex) = false;
  bool finishing ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;
};

void Stream::State::Pump() {
  void* tag = nullptr;
  bool ok = false;
  bool is_shut_down = false;
  while (queue.Next(&tag, &ok)) {
    absl::MutexLock lock(&mutex);
    Handle(static_cast<Operation>(reinterpret_cast<intptr_t>(tag)), ok);
    if (ended && !is_shut_down) {
      is_shut_down = true;
      queue.Shutdown();
    }
  }
}

void Stream::State::Handle(Operation operation, bool ok) {
  switch (operation) {
    case kStart:
      started = ok;
      if (ok) {
        ReadNext();
        WriteNext();
      } else {
        finishing = true;
        call->Finish(&status, ToTag(kFinish));
      }
      break;
    case kWrite:
      writing = false;
      if (!ok) {  // The read says why.
        writes_ended = true;
        unsent.clear();
        Close();
      }
      WriteNext();
      if (unsent_bytes < kMostUnsentBytes) changed.SignalAll();
      break;
    case kRead:
      reading = false;
      if (ok) {
        const bool are_first = replies.empty();
        TakeReply();
        ReadNext();
        // Not for each: who gathers them sleeps on.
        if (are_first || IsEnough()) changed.SignalAll();
      } else {
        finishing = true;
        call->Finish(&status, ToTag(kFinish));
      }
      break;
    case kFinish:
      ended = true;
      entry.reset();
      Close();
      changed.SignalAll();
      break;
  }
}

void Stream::State::TakeReply() {
  unread_bytes += incoming.Length();
  if (packs) {
    for (grpc::ByteBuffer& message : MessagesOf(incoming)) {
      ++reply_count;
      replies.push_back(std::move(message));
    }
  } else {
    ++reply_count;
    replies.push_back(std::move(incoming));
  }
  incoming.Clear();
}

grpc::ByteBuffer Stream::State::TakeUnsent() {
  size_t count = 0;
  size_t bytes = 0;
  do {
    bytes += unsent[count++].Length();
  } while (packs && count < std::min(unsent.size(), kMostPacked) &&
           bytes + unsent[count].Length() <= kMostPackedBytes);
  unsent_bytes -= bytes;
  const auto end = unsent.begin() + static_cast<std::ptrdiff_t>(count);
  grpc::ByteBuffer message = count == 1
                                 ? std::move(unsent.front())
                                 : BatchOf(std::vector<grpc::ByteBuffer>(
                                       std::make_move_iterator(unsent.begin()),
                                       std::make_move_iterator(end)));
  unsent.erase(unsent.begin(), end);
  return message;
}

void Stream::State::WriteNext() {
  if (!started || writing || writes_ended || finishing) return;
  if (!unsent.empty()) {
    const grpc::ByteBuffer message = TakeUnsent();
    grpc::WriteOptions options;
    if (!unsent.empty()) options.set_buffer_hint();
    writing = true;
    call->Write(message, options, ToTag(kWrite));
  } else if (writes_end) {
    writing = writes_ended = true;
    call->WritesDone(ToTag(kWrite));
  }
}

void Stream::State::ReadNext() {
  if (reading || finishing || unread_bytes > kMostUnreadBytes) return;
  reading = true;
  call->Read(&incoming, ToTag(kRead));
}

void Stream::State::SendBatches() {
  while (true) {
    {
      absl::MutexLock lock(&inbox_mutex);
      if (inbox.empty() && closed) return;
      // More may come at once; nobody need wake this thread for that.
      if (inbox.empty()) added.WaitWithTimeout(&inbox_mutex, kGather);
      while (inbox.empty() && !closed) {
        sender_sleeps = true;
        added.Wait(&inbox_mutex);
        sender_sleeps = false;
      }
    }
    absl::MutexLock lock(&mutex);
    Release();
  }
}

void Stream::State::Release() {
  {
    absl::MutexLock lock(&inbox_mutex);
    for (grpc::ByteBuffer& message : inbox) {
      unsent.push_back(std::move(message));
    }
    inbox.clear();
  }
  WriteNext();
}

bool Stream::State::Add(grpc::ByteBuffer& message) {
  absl::MutexLock lock(&inbox_mutex);
  if (closed) return false;
  ++sent_count;
  unsent_bytes += message.Length();
  inbox.push_back(std::move(message));
  if (sender_sleeps) added.Signal();
  return true;
}

void Stream::State::Close() {
  absl::MutexLock lock(&inbox_mutex);
  closed = true;
  added.SignalAll();
}

void Stream::State::Gather(absl::Duration most) {
  const absl::Time end = absl::Now() + most;
  while (!ended && !hurry && !IsEnough() &&
         !changed.WaitWithDeadline(&mutex, end)) {
  }
  hurry = false;
}

Stream::Stream(Channel& channel, const std::string& method,
               std::optional<double> timeout_seconds, nb::handle metadata,
               bool packs)
    : state_([&] {
        channel.Check();
        return std::make_shared<State>(
            channel, OptionsOf(timeout_seconds, metadata), packs);
      }()) {
  state_->Begin(channel, method);
}

Stream::~Stream() {
  if (state_->origin.is_forked()) {
    new std::shared_ptr<State>(state_);  // Nothing of it may be touched.
    return;
  }
  Cancel();
}

bool Stream::Write(nb::bytes message) {
  state_->origin.Check();
  grpc::ByteBuffer buffer = ToBuffer(message);
  while (state_->IsFull()) {
    {
      nb::gil_scoped_release released;
      absl::MutexLock lock(&state_->mutex);
      state_->changed.WaitWithTimeout(&state_->mutex, kSlice);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return state_->Add(buffer);
}

void Stream::EndWrites() {
  if (state_->origin.is_forked()) return;
  nb::gil_scoped_release released;
  absl::MutexLock lock(&state_->mutex);
  state_->Close();
  state_->writes_end = true;
  state_->Hurry();
}

nb::list Stream::Read(double gather_seconds) {
  state_->origin.Check();
  std::deque<grpc::ByteBuffer> taken;
  bool has_ended = false;
  while (taken.empty() && !has_ended) {
    {
      nb::gil_scoped_release released;
      absl::MutexLock lock(&state_->mutex);
      if (!state_->HasMessages()) {
        state_->changed.WaitWithTimeout(&state_->mutex, kSlice);
      }
      if (state_->HasMessages()) {
        state_->Gather(absl::Seconds(gather_seconds));
        taken.swap(state_->replies);
        state_->unread_bytes = 0;
        state_->ReadNext();
        has_ended = state_->ended;
      }
    }
    if (taken.empty() && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  nb::list messages;
  for (const grpc::ByteBuffer& message : taken) {
    messages.append(ToBytes(message));
  }
  return messages;
}

void Stream::Flush() {
  if (state_->origin.is_forked()) return;
  nb::gil_scoped_release released;
  absl::MutexLock lock(&state_->mutex);
  state_->Release();
}

void Stream::Hurry() {
  if (state_->origin.is_forked()) return;
  nb::gil_scoped_release released;
  absl::MutexLock lock(&state_->mutex);
  state_->Hurry();
}

void Stream::Cancel() {
  if (!state_->origin.is_forked()) state_->context.TryCancel();
}

void Stream::Finish() {
  state_->origin.Check();
  while (true) {
    {
      nb::gil_scoped_release released;
      absl::MutexLock lock(&state_->mutex);
      if (!state_->ended)
        state_->changed.WaitWithTimeout(&state_->mutex, kSlice);
      if (state_->ended) break;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  grpc::Status status;
  {
    absl::MutexLock lock(&state_->mutex);
    status = state_->status;
  }
  if (!status.ok()) Raise(OutcomeOf(status, state_->context));
}

}  // namespace tensord::native
