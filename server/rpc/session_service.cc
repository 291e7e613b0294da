#include "server/rpc/session_service.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/until_called.h"

namespace tensord::rpc {
void SessionService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "OpenSession", *this, &SessionService::Open);
  loops.Serve(raw(), "KeepSessionAlive", *this, &SessionService::KeepAlive);
  loops.Serve(raw(), "DescribeSession", *this, &SessionService::Describe);
  loops.Serve(raw(), "CloseSession", *this, &SessionService::Close);
  loops.Serve(raw(), "OpenSharedMemory", *this,
              &SessionService::OpenSharedMemory);
}

Task<absl::StatusOr<v1::OpenSessionResponse>> SessionService::Open(
    Call& call, const v1::OpenSessionRequest& request) {
  const auto lease = FromProto(request.lease(), "lease");
  if (!lease.ok()) co_return lease.status();
  const auto session = context_.sessions.Open(
      {.job = request.job(),
       .lease = *lease,
       .memory_quota_bytes = request.memory_quota_bytes(),
       .device = request.device(),
       .priority = request.priority(),
       .tenant = call.record().identity->tenant(),
       .peer = PeerOf(call.wire()),
       .holder = context_.door.HolderOf(call)});
  if (!session.ok()) co_return session.status();
  const server::SessionOptions& options = (*session)->options();
  context_.log.Info("session_opened",
                    {{"session", (*session)->number()},
                     {"tenant", options.tenant},
                     {"job", options.job},
                     {"peer", call.wire().peer()},
                     {"lease_seconds", absl::ToInt64Seconds(options.lease)},
                     {"quota_bytes", options.memory_quota_bytes}});
  call.OnUnheard([this, name = (*session)->name()] {
    context_.sessions.Close(name, [] {}).IgnoreError();
  });
  v1::OpenSessionResponse response;
  *response.mutable_session() = ToProto(**session);
  co_return response;
}

Task<absl::StatusOr<v1::KeepSessionAliveResponse>> SessionService::KeepAlive(
    Call& call, const v1::KeepSessionAliveRequest&) {
  v1::KeepSessionAliveResponse response;
  *response.mutable_lease() = ToProto(call.session().options().lease);
  co_return response;
}

Task<absl::StatusOr<v1::DescribeSessionResponse>> SessionService::Describe(
    Call& call, const v1::DescribeSessionRequest&) {
  v1::DescribeSessionResponse response;
  *response.mutable_session() = ToProto(call.session());
  co_return response;
}

Task<absl::StatusOr<v1::CloseSessionResponse>> SessionService::Close(
    Call& call, const v1::CloseSessionRequest& request) {
  absl::Status closed;
  auto close = [&](std::function<void()> done) {
    closed = context_.sessions.Close(request.session(), std::move(done));
    return closed.ok();
  };
  co_await UntilCalled(call, close);
  if (!closed.ok()) co_return closed;
  context_.log.Info("session_closed", {{"session", call.session().number()}});
  co_return v1::CloseSessionResponse();
}

}  // namespace tensord::rpc
