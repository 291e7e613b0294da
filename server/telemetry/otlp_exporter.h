// Sends the calls of traces to a collector.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "opentelemetry/trace_service.grpc.pb.h"
#include "server/telemetry/activity.h"
#include "server/telemetry/metrics.h"

namespace tensord::server {

namespace otlp = opentelemetry::proto::collector::trace::v1;

/// Sends what is in its queue by OTLP over gRPC, in batches, on a thread of its
/// own. A batch that a collector cannot take now is sent again until it can;
/// meanwhile, the queue fills, and then drops.
///
/// Threads  safe for concurrent use.
class OtlpExporter {
 public:
  /// `address` is "HOST:PORT" or "unix:PATH", `version` the server's. `tell`
  /// hears what went wrong, or OK, whenever that changes; on the exporter's
  /// thread.
  OtlpExporter(const std::string& address, std::string version,
               Metrics& metrics, std::function<void(const absl::Status&)> tell);
  /// Breaks off.
  ~OtlpExporter();

  ActivityQueue& queue() { return queue_; }

  /// Sends what waits, as far as that takes no longer than `most`. Nothing is
  /// sent afterwards.
  void Flush(absl::Duration most);

 private:
  using Request = otlp::ExportTraceServiceRequest;

  void Run();
  /// Until the collector has answered for good, or Flush() gives up.
  void Send(const Request& request, int64_t spans);
  absl::Status Try(const Request& request, int64_t* refused);
  void Tell(const absl::Status& status);

  static constexpr size_t kQueueLimit = 4096;

  const std::string version_;
  const std::string instance_;  // names this process
  Metrics& metrics_;
  const std::function<void(const absl::Status&)> tell_;
  const std::unique_ptr<otlp::TraceService::Stub> collector_;
  ActivityQueue queue_{kQueueLimit};
  absl::Status told_;  // of Run() alone
  absl::Mutex mutex_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace tensord::server
