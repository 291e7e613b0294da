// The handler of TraceService.
#pragma once

#include "server/rpc/service.h"
#include "tensord/v1/trace.pb.h"

namespace tensord::rpc {

class TraceService final : public Service {
 public:
  explicit TraceService(ServiceContext& context)
      : Service(ServiceBeside<v1::RecordTimelineRequest>("TraceService"),
                {"RecordTimeline"}),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::Status> Record(Call& call,
                            const v1::RecordTimelineRequest& request,
                            Writer<v1::RecordTimelineResponse> out);

  ServiceContext& context_;
};

}  // namespace tensord::rpc
