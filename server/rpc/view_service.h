// Handlers of ViewService.
#pragma once

#include "server/rpc/service.h"
#include "tensord/v1/view.grpc.pb.h"

namespace tensord::rpc {

class ViewService final : public Service {
 public:
  explicit ViewService(ServiceContext& context) : context_(context) {}

  grpc::Service& service() override { return service_; }
  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::StatusOr<v1::CreateViewResponse>> Create(
      Call& call, const v1::CreateViewRequest& request);

  ServiceContext& context_;
  v1::ViewService::AsyncService service_;
};

}  // namespace tensord::rpc
