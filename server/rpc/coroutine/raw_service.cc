#include "server/rpc/coroutine/raw_service.h"

#include <grpcpp/impl/rpc_service_method.h>

#include "absl/strings/str_cat.h"

namespace tensord::rpc {
namespace {

using google::protobuf::MethodDescriptor;

/// Whether gRPC receives a request before a call begins.
bool IsReadFirst(const MethodDescriptor& method, Reads reads) {
  return reads == Reads::kFirst && !method.client_streaming();
}

}  // namespace

void RawService::Register(grpc::ServerBuilder& builder, Reads reads) {
  reads_ = reads;
  for (int i = 0; i < type_.method_count(); ++i) {
    const MethodDescriptor& method = *type_.method(i);
    paths_.push_back(absl::StrCat("/", type_.full_name(), "/", method.name()));
    // To gRPC this says no more than whether there is something to receive.
    using Grpc = grpc::internal::RpcMethod;
    AddMethod(new grpc::internal::RpcServiceMethod(
        paths_.back().c_str(),
        IsReadFirst(method, reads_) ? Grpc::NORMAL_RPC : Grpc::BIDI_STREAMING,
        /*handler=*/nullptr));
    MarkMethodRaw(i);
  }
  builder.RegisterService(this);
}

const MethodDescriptor& RawService::Method(absl::string_view name) const {
  return *type_.FindMethodByName(std::string(name));
}

void RawService::Await(const MethodDescriptor& method,
                       grpc::ServerContext& context, grpc::ByteBuffer& request,
                       grpc::internal::ServerAsyncStreamingInterface& io,
                       grpc::CompletionQueue& queue,
                       grpc::ServerCompletionQueue& accepting, void* tag) {
  if (IsReadFirst(method, reads_)) {
    RequestAsyncUnary(method.index(), &context, &request, &io, &queue,
                      &accepting, tag);
  } else {
    RequestAsyncBidiStreaming(method.index(), &context, &io, &queue, &accepting,
                              tag);
  }
}

}  // namespace tensord::rpc
