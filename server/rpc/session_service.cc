#include "server/rpc/session_service.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/until_called.h"

namespace tensord::rpc {
void SessionService::ServeOn(LoopGroup& loops) {
  using S = v1::SessionService::AsyncService;
  loops.Serve("OpenSession", service_, &S::RequestOpenSession,
              [this](auto& call, auto& q) { return Open(call, q); });
  loops.Serve("KeepSessionAlive", service_, &S::RequestKeepSessionAlive,
              [this](auto& call, auto& q) { return KeepAlive(call, q); });
  loops.Serve("DescribeSession", service_, &S::RequestDescribeSession,
              [this](auto& call, auto& q) { return Describe(call, q); });
  loops.Serve("CloseSession", service_, &S::RequestCloseSession,
              [this](auto& call, auto& q) { return Close(call, q); });
  loops.Serve(
      "OpenSharedMemory", service_, &S::RequestOpenSharedMemory,
      [this](auto& call, auto& q) { return OpenSharedMemory(call, q); });
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
       .peer = PeerOf(call.context())});
  if (!session.ok()) co_return session.status();
  const server::SessionOptions& options = (*session)->options();
  context_.log.Info("session_opened",
                    {{"session", (*session)->number()},
                     {"tenant", options.tenant},
                     {"job", options.job},
                     {"peer", call.context().peer()},
                     {"lease_seconds", absl::ToInt64Seconds(options.lease)},
                     {"quota_bytes", options.memory_quota_bytes}});
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
