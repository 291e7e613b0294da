// A service of the contract as gRPC serves it: by bytes.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>

#include <deque>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::rpc {

/// The descriptor of a service, in the file of the message `M`.
template <typename M>
const google::protobuf::ServiceDescriptor& ServiceBeside(const char* name) {
  return *M::descriptor()->file()->FindServiceByName(name);
}

/// Leaves messages as gRPC has received them, so that nothing is parsed before
/// it is known who asks, and what that takes.
class RawService final : public grpc::Service {
 public:
  explicit RawService(const google::protobuf::ServiceDescriptor& type);

  /// With its package.
  const std::string& name() const { return type_.full_name(); }
  const google::protobuf::MethodDescriptor& Method(
      absl::string_view name) const;

  /// Asks for the next call of a method; `request` is null where requests are a
  /// stream. All else as the generated code's Request...() has it.
  void Await(const google::protobuf::MethodDescriptor& method,
             grpc::ServerContext& context, grpc::ByteBuffer* request,
             grpc::internal::ServerAsyncStreamingInterface& io,
             grpc::CompletionQueue& queue,
             grpc::ServerCompletionQueue& accepting, void* tag);

 private:
  const google::protobuf::ServiceDescriptor& type_;
  std::deque<std::string> paths_;  // (method); gRPC refers to them
};

}  // namespace tensord::rpc
