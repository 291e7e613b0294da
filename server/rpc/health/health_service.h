// The standard service of health checks.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc_health/health.pb.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/coroutine/serve.h"
#include "server/rpc/coroutine/task.h"
#include "server/rpc/door/door.h"
#include "server/rpc/transport/raw_service.h"
#include "server/telemetry/health.h"

namespace tensord::rpc {

/// Says whether the server can be used: of the services "" and "readiness"
/// whether new calls should come here, of "liveness" whether the process is of
/// any use. Whoever asks need not say who that is; no drain waits for who
/// watches. gRPC's own would have threads poll that wake the Loops.
///
/// Threads  Changed() from any.
class HealthService {
 public:
  /// Lifetime  both outlive it.
  HealthService(const server::Health& health, const Door& door)
      : health_(health), door_(door) {}

  /// Has the server that `builder` makes know it.
  void Register(grpc::ServerBuilder& builder) { service_.Register(builder); }
  /// Answers there.
  void ServeOn(Lane& lane);
  /// Those who watch hear what has become of the health.
  void Changed();

 private:
  using Request = ::grpc::health::v1::HealthCheckRequest;
  using Response = ::grpc::health::v1::HealthCheckResponse;
  class Change;

  /// The request, or INVALID_ARGUMENT: nobody knows who asks, and what is
  /// longer than any is not looked at.
  static grpc::Status Read(grpc::ByteBuffer& wire, Request& request);
  Detached Check(Lane& lane);
  Detached Watch(Lane& lane);
  /// Receives the request of a call.
  static Task<grpc::Status> Receive(Lane& lane, Call& call, Request& request);
  void* Registered(absl::string_view method) const;
  Response::ServingStatus StatusOf(const Request& request) const;

  const server::Health& health_;
  const Door& door_;
  RawService service_{ServiceBeside<Request>("Health"), {"Check", "Watch"}};
  absl::Mutex mutex_;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Change*> awaited_ ABSL_GUARDED_BY(mutex_);
  int64_t watch_count_ = 0;  // of calls that go on
};

}  // namespace tensord::rpc
