#include "server/rpc/health/health_service.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <coroutine>
#include <optional>
#include <utility>

#include "server/rpc/coroutine/serve.h"

namespace tensord::rpc {

namespace {

/// Nobody looks at what comes after a request, and gRPC would keep it.
Detached AwaitNoMore(Call::Hold, Call& call) {
  grpc::ByteBuffer wire;
  const bool came = co_await Reader(call).Read(wire);
  if (came) {
    call.BreakOff(core::InvalidArgument("REQUEST_MALFORMED",
                                        "there is more than one request"));
  }
}

}  // namespace

/// Awaiting it resumes when the health has changed since `seen`, or the call
/// has been cancelled.
class HealthService::Change final : Call::Wait {
 public:
  Change(HealthService& service, Call& call, uint64_t seen)
      : Wait(call), service_(service), seen_(seen) {}

  bool await_ready() const noexcept { return call_.cancelled(); }
  bool await_suspend(std::coroutine_handle<> waiter) {
    absl::MutexLock lock(&service_.mutex_);
    if (service_.version_ != seen_) return false;
    Suspend(waiter);
    service_.awaited_.push_back(this);
    return true;
  }
  void await_resume() const noexcept {}

  /// What awaits it goes on soon.
  void Happen() { call_.loop().Post(this); }

 private:
  void Cancel() override {
    {
      absl::MutexLock lock(&service_.mutex_);
      if (std::erase(service_.awaited_, this) == 0) return;  // it happens
    }
    Fire(false);
  }

  HealthService& service_;
  const uint64_t seen_;
};

void HealthService::ServeOn(Lane& lane) {
  // Calls that are taken in between two turns.
  constexpr int kAccepts = 4;
  for (int i = 0; i < kAccepts; ++i) {
    Check(lane);
    Watch(lane);
  }
}

void HealthService::Changed() {
  absl::MutexLock lock(&mutex_);
  ++version_;
  for (Change* const change : std::exchange(awaited_, {})) change->Happen();
}

HealthService::Response::ServingStatus HealthService::StatusOf(
    const Request& request) const {
  const std::string& service = request.service();
  if (service.empty() || service == "readiness") {
    return health_.readiness().ok() ? Response::SERVING : Response::NOT_SERVING;
  }
  if (service == "liveness") {
    return health_.liveness().ok() ? Response::SERVING : Response::NOT_SERVING;
  }
  return Response::SERVICE_UNKNOWN;
}

grpc::Status HealthService::Read(grpc::ByteBuffer& wire, Request& request) {
  constexpr size_t kMostBytes = 1024;
  if (wire.Length() <= kMostBytes) {
    grpc::ProtoBufferReader slices(&wire);
    if (request.ParseFromZeroCopyStream(&slices)) return grpc::Status::OK;
  }
  return {grpc::StatusCode::INVALID_ARGUMENT, "this is no health check"};
}

void* HealthService::Registered(absl::string_view method) const {
  return service_.Registered(service_.Method(method));
}

Task<grpc::Status> HealthService::Receive(Lane& lane, Call& call,
                                          Request& request) {
  const Stalls::Wait wait(lane.calls_of_anybody, call, /*bytes=*/0);
  grpc::ByteBuffer wire;
  const bool came = co_await Reader(call).Read(wire);
  if (came) co_return Read(wire, request);
  co_return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                         "the call has no request");
}

Detached HealthService::Check(Lane& lane) {
  Call call(lane.loop);
  const bool began = co_await call.Await(Registered("Check"), lane.loop);
  if (!began) co_return;
  Check(lane);  // the next one
  const OpenCalls::One open(lane.open, call);
  door_.Count(call);
  Request request;
  Response response;
  grpc::Status status = co_await Receive(lane, call, request);
  if (status.ok()) response.set_status(StatusOf(request));
  if (response.status() == Response::SERVICE_UNKNOWN) {
    status = {grpc::StatusCode::NOT_FOUND,
              "there is no such service; \"\", \"readiness\" and \"liveness\" "
              "are known"};
  }
  const Outgoing answer(response);
  const Stalls::Wait wait(lane.refusals, call, /*bytes=*/0);
  co_await call.Finish(status.ok() ? answer.wire() : nullptr, status);
  co_await call.End();
}

Detached HealthService::Watch(Lane& lane) {
  Call call(lane.loop);
  const bool began = co_await call.Await(Registered("Watch"), lane.loop);
  if (!began) co_return;
  Watch(lane);  // the next one
  const OpenCalls::One open(lane.open, call);
  door_.Count(call);
  Request request;
  grpc::Status read = co_await Receive(lane, call, request);
  // They last as long as whoever asks likes, and nobody is asked who that is.
  constexpr int64_t kMostWatches = 1024;
  if (read.ok() && watch_count_ >= kMostWatches) {
    read = {grpc::StatusCode::RESOURCE_EXHAUSTED,
            "so many watch the health that no more can; ask by Check"};
  }
  if (!read.ok()) {
    const Stalls::Wait wait(lane.refusals, call, /*bytes=*/0);
    co_await call.Finish(/*message=*/nullptr, read);
    co_await call.End();
    co_return;
  }
  ++watch_count_;
  call.Watch();
  AwaitNoMore(Call::Hold(call), call);
  const Writer<Response> out(call);
  std::optional<Response::ServingStatus> told;
  bool connected = true;
  while (connected && !call.cancelled()) {
    uint64_t version = 0;
    {
      absl::MutexLock lock(&mutex_);
      version = version_;
    }
    Response response;
    response.set_status(StatusOf(request));
    if (told != response.status()) {
      told = response.status();
      connected = co_await out.Write(response);
      continue;
    }
    Change change(*this, call, version);
    co_await change;
  }
  co_await call.Finish(/*message=*/nullptr, grpc::Status::CANCELLED);
  co_await call.End();
  --watch_count_;
}

}  // namespace tensord::rpc
