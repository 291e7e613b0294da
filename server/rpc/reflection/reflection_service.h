// The standard service that says what a server serves.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "grpc_reflection/reflection.pb.h"
#include "server/rpc/service.h"

namespace tensord::rpc {

/// Tells whoever the door knows. gRPC's own would have a thread for each
/// stream, of strangers, too.
class ReflectionService final : public Service {
 public:
  /// `services` are the full names of those that there are.
  ReflectionService(ServiceContext& context, std::vector<std::string> services);

  void ServeOn(LoopGroup& loops) override;

 private:
  using Request = ::grpc::reflection::v1alpha::ServerReflectionRequest;
  using Response = ::grpc::reflection::v1alpha::ServerReflectionResponse;
  using Files = std::set<const google::protobuf::FileDescriptor*>;

  Task<absl::Status> Tell(Call& call, Reader in, Writer<Response> out);
  /// Answers a request of a stream that has been told of `told`.
  Response AnswerTo(const Request& request, Files& told) const;

  ServiceContext& context_;
  const std::vector<std::string> services_;
};

}  // namespace tensord::rpc
