// Messages of a stream that travel as one: field 15, `batch`, of
// ExecuteStreamRequest and ExecuteStreamResponse.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <span>
#include <vector>

namespace tensord::native {

/// A message whose batch is `messages`, in their order.
grpc::ByteBuffer BatchOf(std::span<const grpc::ByteBuffer> messages);

/// The batch of a message, in its order; the message itself when it is not a
/// batch and nothing else.
std::vector<grpc::ByteBuffer> MessagesOf(const grpc::ByteBuffer& message);

}  // namespace tensord::native
