#include "server/rpc/coroutine/raw_service.h"

#include <grpcpp/impl/rpc_service_method.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tensord::rpc {

using google::protobuf::MethodDescriptor;

std::string PathOf(const MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

RawService::RawService(const google::protobuf::ServiceDescriptor& type,
                       std::initializer_list<absl::string_view> apart)
    : type_(type) {
  for (const absl::string_view name : apart) apart_.push_back(&Method(name));
}

void RawService::Register(grpc::ServerBuilder& builder) {
  if (apart_.empty()) return;
  for (const MethodDescriptor* const method : apart_) {
    paths_.push_back(PathOf(*method));
    // To gRPC this says no more than that nothing is received first.
    AddMethod(new grpc::internal::RpcServiceMethod(
        paths_.back().c_str(), grpc::internal::RpcMethod::BIDI_STREAMING,
        /*handler=*/nullptr));
    MarkMethodRaw(static_cast<int>(paths_.size()) - 1);
  }
  builder.RegisterService(this);
}

const MethodDescriptor& RawService::Method(absl::string_view name) const {
  return *type_.FindMethodByName(std::string(name));
}

bool RawService::IsApart(const MethodDescriptor& method) const {
  return std::ranges::find(apart_, &method) != apart_.end();
}

void RawService::Await(const MethodDescriptor& method,
                       grpc::ServerContext& context, Io& io,
                       grpc::CompletionQueue& queue,
                       grpc::ServerCompletionQueue& accepting, void* tag) {
  const auto at = std::ranges::find(apart_, &method) - apart_.begin();
  RequestAsyncBidiStreaming(static_cast<int>(at), &context, &io, &queue,
                            &accepting, tag);
}

}  // namespace tensord::rpc
