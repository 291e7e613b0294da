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

/// When the request of a method that has one is received.
enum class Reads {
  kFirst,  // before the call begins, by gRPC; costs least
  /// After the call has begun, as the first of a stream, so that it is known of
  /// each call in the server, and who asks, before more of it comes.
  kLast,
};

/// Leaves messages as gRPC has received them, so that nothing is parsed before
/// it is known who asks, and what that takes.
class RawService final : public grpc::Service {
 public:
  explicit RawService(const google::protobuf::ServiceDescriptor& type)
      : type_(type) {}

  /// Has the server that `builder` makes know its methods.
  void Register(grpc::ServerBuilder& builder, Reads reads);

  /// With its package.
  const std::string& name() const { return type_.full_name(); }
  const google::protobuf::MethodDescriptor& Method(
      absl::string_view name) const;

  /// Whether the request of a method is yet to be received when a call of it
  /// begins; that of one whose requests are a stream is none.
  bool IsReadLast(const google::protobuf::MethodDescriptor& method) const {
    return reads_ == Reads::kLast && !method.client_streaming();
  }

  /// Asks for the next call of a method. `request` is where gRPC puts what it
  /// receives before that. All else as the generated code's Request...() has
  /// it.
  void Await(const google::protobuf::MethodDescriptor& method,
             grpc::ServerContext& context, grpc::ByteBuffer& request,
             grpc::internal::ServerAsyncStreamingInterface& io,
             grpc::CompletionQueue& queue,
             grpc::ServerCompletionQueue& accepting, void* tag);

 private:
  const google::protobuf::ServiceDescriptor& type_;
  Reads reads_ = Reads::kFirst;
  std::deque<std::string> paths_;  // (method); gRPC refers to them
};

}  // namespace tensord::rpc
