// Handlers of ViewService.
#pragma once

#include "server/rpc/service.h"
#include "tensord/v1/view.pb.h"

namespace tensord::rpc {

class ViewService final : public Service {
 public:
  explicit ViewService(ServiceContext& context)
      : Service(ServiceBeside<v1::CreateViewRequest>("ViewService")),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::StatusOr<v1::CreateViewResponse>> Create(
      Call& call, const v1::CreateViewRequest& request);

  ServiceContext& context_;
};

}  // namespace tensord::rpc
