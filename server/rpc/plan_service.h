// Handlers of PlanService.
#pragma once

#include "server/rpc/serve.h"
#include "server/rpc/service_context.h"
#include "tensord/v1/plan.grpc.pb.h"

namespace tensord::rpc {

class PlanService {
 public:
  explicit PlanService(ServiceContext& context) : context_(context) {}

  grpc::Service& service() { return service_; }
  void ServeOn(LoopGroup& loops);

 private:
  template <typename Request>
  absl::StatusOr<v1::ExplainPlanResponse> ExplainOperation(
      const Request& request);
  Task<absl::StatusOr<v1::ExplainPlanResponse>> Explain(
      Call& call, const v1::ExplainPlanRequest& request);

  ServiceContext& context_;
  v1::PlanService::AsyncService service_;
};

}  // namespace tensord::rpc
