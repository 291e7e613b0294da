// A service of the contract as gRPC serves it: by bytes.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>

#include <deque>
#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::rpc {

/// The descriptor of a service, in the file of the message `M`.
template <typename M>
const google::protobuf::ServiceDescriptor& ServiceBeside(const char* name) {
  return *M::descriptor()->file()->FindServiceByName(name);
}

/// As clients name it: "/tensord.v1.ComputeService/Contract".
std::string PathOf(const google::protobuf::MethodDescriptor& method);

/// Knows methods, and has gRPC register those whose calls are to be asked for
/// one by one. A call begins with its headers, so that it is known of each that
/// is in the server, and who asks, before more of it comes.
class RawService final : public grpc::Service {
 public:
  /// Those `apart` are asked for one by one, the others by whoever asks for
  /// calls of any method.
  explicit RawService(const google::protobuf::ServiceDescriptor& type,
                      std::initializer_list<absl::string_view> apart = {});

  /// Has the server that `builder` makes know those apart.
  void Register(grpc::ServerBuilder& builder);

  /// With its package.
  const std::string& name() const { return type_.full_name(); }
  const google::protobuf::MethodDescriptor& Method(
      absl::string_view name) const;
  /// As the server knows it, which has been started; null: it is not apart.
  void* Registered(const google::protobuf::MethodDescriptor& method) const;

 private:
  struct Apart {
    const google::protobuf::MethodDescriptor* method;
    std::string path;  // gRPC refers to it
    grpc::internal::RpcServiceMethod* registered = nullptr;
  };

  const google::protobuf::ServiceDescriptor& type_;
  std::deque<Apart> apart_;
};

}  // namespace tensord::rpc
