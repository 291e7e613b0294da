// The messages of one call.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>

#include <cstdint>

#include "server/rpc/coroutine/loop.h"

namespace tensord::rpc {

using grpc::ByteBuffer;

/// How gRPC moves them, whatever the method: one request or response is to it a
/// stream of one.
using Io = grpc::ServerAsyncReaderWriter<ByteBuffer, ByteBuffer>;

inline int64_t BytesOf(const ByteBuffer& message) {
  return static_cast<int64_t>(message.Length());
}

/// A message as it goes over the wire. Copies of gRPC's own type cost each call
/// as much as a short message.
class Outgoing {
 public:
  template <typename M>
  explicit Outgoing(const M& message) {
    bool own = false;
    grpc::SerializationTraits<M>::Serialize(message, &wire_, &own);
  }

  Outgoing(Outgoing&& other) noexcept { wire_.Swap(&other.wire_); }
  Outgoing& operator=(Outgoing&& other) noexcept {
    wire_.Swap(&other.wire_);
    return *this;
  }

  const ByteBuffer& wire() const { return wire_; }
  int64_t bytes() const { return BytesOf(wire_); }

 private:
  ByteBuffer wire_;
};

/// The client's messages. One Read() at a time.
class Reader {
 public:
  Reader(Io& io, Call& call) : io_(&io), call_(&call) {}
  /// False after the last message, and also when the call broke off, which
  /// cancelled() may tell only later: messages must say where the stream ends.
  auto Read(ByteBuffer& to) const {
    return Operation(
        [io = io_, &to](void* tag) { io->Read(&to, tag); },
        [call = call_, &to] { call->record().received_bytes += BytesOf(to); });
  }

 private:
  Io* io_;
  Call* call_;
};

/// The server's messages. One Write() at a time.
template <typename M>
class Writer {
 public:
  Writer(Io& io, Call& call) : io_(&io), call_(&call) {}
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
      io->Write(outgoing.wire(), options, tag);
    });
  }

 private:
  Io* io_;
  Call* call_;
};

}  // namespace tensord::rpc
