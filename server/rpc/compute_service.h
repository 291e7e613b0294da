// Handlers of ComputeService.
#pragma once

#include "server/rpc/serve.h"
#include "server/rpc/service_context.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::rpc {

class ComputeService {
 public:
  explicit ComputeService(ServiceContext& context) : context_(context) {}

  grpc::Service& service() { return service_; }
  void ServeOn(LoopGroup& loops);

 private:
  /// All operations: they differ in their messages only.
  template <typename Response, typename Request>
  Task<absl::StatusOr<Response>> Compute(Call& call, const Request& request);

  ServiceContext& context_;
  v1::ComputeService::AsyncService service_;
};

}  // namespace tensord::rpc
