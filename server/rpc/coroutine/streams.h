// The messages of one call.
#pragma once

#include <cstdint>

#include "server/rpc/coroutine/loop.h"
#include "server/rpc/transport/outgoing.h"

namespace tensord::rpc {

/// The client's messages. One Read() at a time.
class Reader {
 public:
  explicit Reader(Call& call) : call_(&call) {}
  /// False after the last message, and also when the call broke off, which
  /// cancelled() may tell only later: messages must say where the stream ends.
  auto Read(ByteBuffer& to) const {
    return Operation(
        [call = call_, &to](void* tag) {
          call->SetAwaited(Call::Awaited::kMessage);
          call->wire().Receive(to, tag);
        },
        [call = call_, &to](bool ok) {
          call->SetAwaited(Call::Awaited::kNothing);
          if (!call->wire().TakeReceived(ok)) return false;
          call->record().received_bytes += static_cast<int64_t>(to.Length());
          return true;
        });
  }

 private:
  Call* call_;
};

/// The server's messages. One Write() at a time.
template <typename M>
class Writer {
 public:
  explicit Writer(Call& call) : call_(&call) {}
  /// True when flow control lets the next message in: `message` may go then,
  /// memory that its slices refer to may not. False when the call is over.
  ///
  /// With `more`, the message may wait for the next one, which must follow
  /// soon.
  auto Write(const M& message, bool more = false) const {
    return Operation([call = call_, &message, more](void* tag) {
      const Outgoing outgoing(message);
      // The first goes with the call's metadata: gRPC says that it is in only
      // when these are on their way, which nothing would see to.
      const bool is_first = call->record().sent_bytes == 0;
      call->record().sent_bytes += outgoing.bytes();
      call->wire().Send(outgoing.wire(), /*more=*/more && !is_first, tag);
    });
  }

 private:
  Call* call_;
};

}  // namespace tensord::rpc
