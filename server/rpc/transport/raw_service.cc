#include "server/rpc/transport/raw_service.h"

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
  for (const absl::string_view name : apart) {
    apart_.push_back({.method = &Method(name), .path = PathOf(Method(name))});
  }
}

void RawService::Register(grpc::ServerBuilder& builder) {
  if (apart_.empty()) return;
  for (Apart& each : apart_) {
    // To gRPC this says no more than that nothing is received first.
    each.registered = new grpc::internal::RpcServiceMethod(
        each.path.c_str(), grpc::internal::RpcMethod::BIDI_STREAMING,
        /*handler=*/nullptr);
    // Else it would have a queue and threads for methods that it calls itself.
    each.registered->SetServerApiType(
        grpc::internal::RpcServiceMethod::ApiType::RAW);
    AddMethod(each.registered);
  }
  builder.RegisterService(this);
}

const MethodDescriptor& RawService::Method(absl::string_view name) const {
  return *type_.FindMethodByName(std::string(name));
}

void* RawService::Registered(const MethodDescriptor& method) const {
  const auto found = std::ranges::find(apart_, &method, &Apart::method);
  return found == apart_.end() ? nullptr : found->registered->server_tag();
}

}  // namespace tensord::rpc
