// A streaming call of raw messages, driven by the thread that made it.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/src/channels.h"

namespace tensord::internal {

/// At most one read and one write at a time. All of it ends by the deadline,
/// but for a write to a peer that does not read. So nothing here waits for a
/// write alone, and what gRPC still needs for one outlives this object.
///
/// Threads  one at a time.
class RawCall {
 public:
  /// `channel` is one of `channels`, which outlives this.
  RawCall(const Channels& channels,
          const std::shared_ptr<grpc::Channel>& channel, const char* method,
          absl::Time deadline);
  ~RawCall();

  RawCall(const RawCall&) = delete;
  RawCall& operator=(const RawCall&) = delete;

  /// Begins to send `message`; with `last` nothing may follow.
  /// Requires  a read has begun; the write before has ended.
  void BeginWrite(const grpc::ByteBuffer& message, bool last);

  /// Begins to say that nothing will follow; counts as a write.
  /// Requires  as BeginWrite().
  void BeginHalfClose();

  /// Begins to receive a message.
  /// Requires  the read before has ended.
  void BeginRead();

  /// Waits for the write. False when it failed or the read has ended before.
  bool AwaitWrite();

  /// Waits for the read and takes its message. False when none comes any more.
  bool AwaitRead(grpc::ByteBuffer& message);

  /// Whether the write has ended; never waits.
  bool HasWritten();
  /// Whether the read has ended; never waits.
  bool HasRead();

  void Cancel();

  /// Waits for the outcome of the call.
  /// Requires  no read is under way.
  absl::Status Finish();

 private:
  enum Operation { kStart, kWrite, kRead, kFinish, kOperationCount };
  struct State;

  void Begin(Operation operation) {
    pending_[operation] = true;
    succeeded_[operation] = false;
  }
  void TakeEvent();
  /// Takes the events that are there.
  void TakeEvents();
  void Note(void* tag, bool ok);
  /// Waits until the call has started, as writes must. False when it ended
  /// first.
  bool AwaitStart();

  const Channels& channels_;
  std::unique_ptr<State> state_;
  bool pending_[kOperationCount] = {};
  bool succeeded_[kOperationCount] = {};
};

}  // namespace tensord::internal
