// What the server sends.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <cstdint>

namespace tensord::rpc {

/// A message as it goes over the wire. gRPC takes its bytes when it is sent,
/// where it would copy those of a ByteBuffer.
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

  /// How many; once it is sent, none.
  int64_t bytes() const { return static_cast<int64_t>(wire_.Length()); }

 private:
  friend class grpc::SerializationTraits<Outgoing>;
  mutable grpc::ByteBuffer wire_;
};

}  // namespace tensord::rpc

/// How gRPC sends one.
template <>
class grpc::SerializationTraits<tensord::rpc::Outgoing> {
 public:
  static Status Serialize(const tensord::rpc::Outgoing& message, ByteBuffer* to,
                          bool* own) {
    to->Swap(&message.wire_);
    *own = true;
    return Status::OK;
  }
};
