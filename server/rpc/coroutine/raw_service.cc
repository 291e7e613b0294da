#include "server/rpc/coroutine/raw_service.h"

#include <grpcpp/impl/rpc_service_method.h>

#include "absl/strings/str_cat.h"

namespace tensord::rpc {
namespace {

using google::protobuf::MethodDescriptor;

grpc::internal::RpcMethod::RpcType TypeOf(const MethodDescriptor& method) {
  using Grpc = grpc::internal::RpcMethod;
  if (method.client_streaming()) {
    return method.server_streaming() ? Grpc::BIDI_STREAMING
                                     : Grpc::CLIENT_STREAMING;
  }
  return method.server_streaming() ? Grpc::SERVER_STREAMING : Grpc::NORMAL_RPC;
}

}  // namespace

RawService::RawService(const google::protobuf::ServiceDescriptor& type)
    : type_(type) {
  for (int i = 0; i < type.method_count(); ++i) {
    const MethodDescriptor& method = *type.method(i);
    paths_.push_back(absl::StrCat("/", type.full_name(), "/", method.name()));
    AddMethod(new grpc::internal::RpcServiceMethod(
        paths_.back().c_str(), TypeOf(method), /*handler=*/nullptr));
    MarkMethodRaw(i);
  }
}

const MethodDescriptor& RawService::Method(absl::string_view name) const {
  return *type_.FindMethodByName(std::string(name));
}

void RawService::Await(const MethodDescriptor& method,
                       grpc::ServerContext& context, grpc::ByteBuffer* request,
                       grpc::internal::ServerAsyncStreamingInterface& io,
                       grpc::CompletionQueue& queue,
                       grpc::ServerCompletionQueue& accepting, void* tag) {
  if (request != nullptr) {
    RequestAsyncUnary(method.index(), &context, request, &io, &queue,
                      &accepting, tag);
  } else {
    RequestAsyncBidiStreaming(method.index(), &context, &io, &queue, &accepting,
                              tag);
  }
}

}  // namespace tensord::rpc
