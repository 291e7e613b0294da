// A message as it goes over the wire.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tensord::rpc {

/// It moves for nothing, as gRPC's own type does not.
class Outgoing {
 public:
  explicit Outgoing(const google::protobuf::MessageLite& message) {
    grpc_slice slice = grpc_slice_malloc(message.ByteSizeLong());
    message.SerializeWithCachedSizesToArray(GRPC_SLICE_START_PTR(slice));
    wire_.reset(grpc_raw_byte_buffer_create(&slice, 1));
    grpc_slice_unref(slice);
  }
  explicit Outgoing(const grpc::ByteBuffer& message) {
    std::vector<grpc::Slice> slices;
    message.Dump(&slices).IgnoreError();
    std::vector<grpc_slice> all;
    for (const grpc::Slice& slice : slices) all.push_back(slice.c_slice());
    wire_.reset(grpc_raw_byte_buffer_create(all.data(), all.size()));
    for (const grpc_slice& slice : all) grpc_slice_unref(slice);
  }

  /// To be sent, once.
  grpc_byte_buffer* wire() const { return wire_.get(); }
  int64_t bytes() const {
    return static_cast<int64_t>(grpc_byte_buffer_length(wire_.get()));
  }

 private:
  struct Destroy {
    void operator()(grpc_byte_buffer* buffer) const {
      grpc_byte_buffer_destroy(buffer);
    }
  };
  std::unique_ptr<grpc_byte_buffer, Destroy> wire_;
};

}  // namespace tensord::rpc
