// Handlers of AdminService.
#pragma once

#include "server/rpc/service.h"
#include "tensord/v1/admin.grpc.pb.h"

namespace tensord::rpc {

class AdminService final : public Service {
 public:
  explicit AdminService(ServiceContext& context) : context_(context) {}

  grpc::Service& service() override { return service_; }
  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::StatusOr<v1::GetServerInfoResponse>> GetInfo(
      Call& call, const v1::GetServerInfoRequest& request);
  Task<absl::StatusOr<v1::GetServerStatsResponse>> GetStats(
      Call& call, const v1::GetServerStatsRequest& request);

  ServiceContext& context_;
  v1::AdminService::AsyncService service_;
};

}  // namespace tensord::rpc
