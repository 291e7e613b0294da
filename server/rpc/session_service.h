// Handlers of SessionService.
#pragma once

#include "server/rpc/service.h"
#include "tensord/v1/session.pb.h"

namespace tensord::rpc {

class SessionService final : public Service {
 public:
  explicit SessionService(ServiceContext& context)
      : Service(ServiceBeside<v1::OpenSessionRequest>("SessionService")),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::StatusOr<v1::OpenSessionResponse>> Open(
      Call& call, const v1::OpenSessionRequest& request);
  Task<absl::StatusOr<v1::KeepSessionAliveResponse>> KeepAlive(
      Call& call, const v1::KeepSessionAliveRequest& request);
  Task<absl::StatusOr<v1::DescribeSessionResponse>> Describe(
      Call& call, const v1::DescribeSessionRequest& request);
  Task<absl::StatusOr<v1::CloseSessionResponse>> Close(
      Call& call, const v1::CloseSessionRequest& request);

  Task<absl::StatusOr<v1::OpenSharedMemoryResponse>> OpenSharedMemory(
      Call& call, const v1::OpenSharedMemoryRequest& request);

  ServiceContext& context_;
};

}  // namespace tensord::rpc
