#include "tensord/server.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <vector>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/listing.h"

namespace tensord {

using internal::Channels;
using internal::FromProto;

Server::Server(std::string_view address, absl::Duration deadline,
               const Credentials& credentials)
    : channels_(std::make_shared<Channels>(address, deadline, credentials)) {}

absl::StatusOr<ServerInfo> Server::Info() const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetServerInfoResponse response,
      channels_->Call(channels_->admin, &v1::AdminService::Stub::GetServerInfo,
                      v1::GetServerInfoRequest()));
  return FromProto(response);
}

absl::StatusOr<ServerStats> Server::Stats() const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetServerStatsResponse response,
      channels_->Call(channels_->admin, &v1::AdminService::Stub::GetServerStats,
                      v1::GetServerStatsRequest()));
  return FromProto(response);
}

absl::StatusOr<Health> Server::CheckHealth() const {
  // An empty HealthCheckRequest asks for the server as a whole; the response
  // is one enum, field 1.
  grpc::ClientContext context;
  channels_->Prepare(context, absl::InfinitePast());
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channels_->calls());
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  const auto call = stub.PrepareUnaryCall(
      &context, "/grpc.health.v1.Health/Check", request, &queue);
  grpc::ByteBuffer response;
  grpc::Status status;
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (!status.ok()) return channels_->Outcome(status, context);
  if (response.Length() == 0) return Health::kUnknown;
  grpc::ProtoBufferReader slices(&response);
  google::protobuf::io::CodedInputStream in(&slices);
  uint32_t value = 0;
  if (in.ReadTag() != (1 << 3 | 0) || !in.ReadVarint32(&value) || value > 2) {
    return internal::Error(absl::StatusCode::kInternal, "RESPONSE_MALFORMED",
                           "the health service answered something else than a "
                           "HealthCheckResponse");
  }
  return static_cast<Health>(value);
}

absl::StatusOr<std::vector<TensorInfo>> Server::List(
    std::string_view session) const {
  return internal::ListTensors(*channels_, session);
}

absl::StatusOr<std::vector<PlanInfo>> Server::Plans(
    std::string_view session) const {
  return internal::ListPlans(*channels_, session);
}

absl::StatusOr<std::vector<KernelInfo>> Server::Kernels(
    std::string_view device) const {
  v1::ListKernelsRequest request;
  request.set_device(std::string(device));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ListKernelsResponse response,
      channels_->Call(channels_->plan, &v1::PlanService::Stub::ListKernels,
                      request));
  std::vector<KernelInfo> kernels;
  for (const v1::Kernel& kernel : response.kernels()) {
    kernels.push_back({.name = kernel.name(),
                       .version = kernel.version(),
                       .operation = kernel.operation()});
  }
  return kernels;
}

absl::StatusOr<TensorInfo> Server::Describe(std::string_view tensor) const {
  return internal::DescribeTensor(*channels_, tensor);
}

absl::StatusOr<int64_t> Server::Delete(
    std::span<const std::string> tensors) const {
  return channels_->DeleteTensors(tensors);
}

absl::StatusOr<SharedTensor> Server::Share(
    const std::string& tensor, std::span<const std::string> tenants) const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const v1::ShareTensorResponse response,
                                  channels_->Share(tensor, tenants));
  return SharedTensor{response.share(),
                      {response.tenants().begin(), response.tenants().end()}};
}

absl::StatusOr<std::vector<std::string>> Server::Unshare(
    const std::string& tensor, std::span<const std::string> tenants) const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const v1::UnshareTensorResponse response,
                                  channels_->Unshare(tensor, tenants));
  return std::vector<std::string>(response.tenants().begin(),
                                  response.tenants().end());
}

}  // namespace tensord
