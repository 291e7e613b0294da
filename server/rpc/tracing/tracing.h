// Follows calls, for collectors of traces and for who records a timeline.
#pragma once

#include "server/rpc/door/door.h"
#include "server/telemetry/activity.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/timelines.h"

namespace tensord::rpc {

/// Where the calls of traces go.
struct TraceExport {
  server::ActivityQueue* queue = nullptr;  // null: nowhere
  double ratio = 0;  // of calls whose caller does not say whether to trace them
};

/// Lifetime  what it refers to outlives it.
class Tracing final : public Middleware {
 public:
  Tracing(server::Metrics& metrics, server::Timelines& timelines,
          const TraceExport& exported)
      : metrics_(metrics), timelines_(timelines), export_(exported) {}

  absl::Status StartCall(const WireCall& call, CallRecord& record) override;
  void CallCompleted(const WireCall& call, const CallRecord& record,
                     const absl::Status& status) override;
  void OperationCompleted(const CallRecord& record,
                          const absl::Status& status) override;

 private:
  void Take(const CallRecord& record, const absl::Status& status,
            bool is_of_stream);

  server::Metrics& metrics_;
  server::Timelines& timelines_;
  const TraceExport export_;
};

}  // namespace tensord::rpc
