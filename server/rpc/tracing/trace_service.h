// The handler of TraceService.
#pragma once

#include "server/rpc/service.h"
#include "tensord/v1/trace.grpc.pb.h"

namespace tensord::rpc {

class TraceService final : public Service {
 public:
  explicit TraceService(ServiceContext& context) : context_(context) {}

  grpc::Service& service() override { return service_; }
  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::Status> Record(Call& call,
                            const v1::RecordTimelineRequest& request,
                            Writer<v1::RecordTimelineResponse> out);

  ServiceContext& context_;
  v1::TraceService::AsyncService service_;
};

}  // namespace tensord::rpc
