// What every call passes on its way to its handler and back.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/door/session_names.h"
#include "server/session/session_manager.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace tensord::rpc {

/// Sees calls, and the operations of streams, begin and end.
///
/// Threads  each call on its Loop, several at a time.
class Middleware {
 public:
  virtual ~Middleware() = default;

  /// A call has begun; its request is not looked at yet. Unless OK the call
  /// ends with this.
  virtual absl::Status StartCall(const grpc::ServerContext&, CallRecord&) {
    return absl::OkStatus();
  }
  /// The call ends with `status`, which is yet to be sent.
  virtual void CallCompleted(const grpc::ServerContext& context,
                             const CallRecord& record,
                             const absl::Status& status) = 0;
  /// One of a call's operations, which the record names, has ended; the call
  /// goes on.
  virtual void OperationCompleted(const CallRecord& record,
                                  const absl::Status& status) = 0;
};

/// Has every call looked at by the same middleware, in order.
///
/// Threads  safe for concurrent use.
class Door {
 public:
  /// What it refers to must outlive it.
  Door(server::SessionManager& sessions, server::Metrics& metrics,
       server::Log& log, absl::Duration transfer_idle);

  /// How long a client may neither send nor take anything.
  absl::Duration transfer_idle() const { return transfer_idle_; }

  /// The rpc of that name in the contract, which must outlive the result.
  Rpc RpcOf(absl::string_view name) const;

  /// Lets a call of `rpc` in, or ends it with what is returned: names it, and
  /// finds its session.
  template <typename Request>
  absl::Status Begin(Call& call, const Rpc& rpc, const Request& request) const {
    TENSORD_RETURN_IF_ERROR(Start(call, rpc));
    TENSORD_ASSIGN_OR_RETURN(const std::optional<absl::string_view> session,
                             SessionNameIn(request));
    return session ? Enter(call, *session) : absl::OkStatus();
  }

  /// The call is one of the session of that name from now on. Begin() does it
  /// where the first message is a request that names one.
  ///
  /// Errors  NOT_FOUND, reason SESSION_NOT_FOUND. RESOURCE_EXHAUSTED, reason
  ///         TOO_MANY_REQUESTS or HOST_MEMORY_LIMIT, unless the call only
  ///         renews the lease or gives back.
  absl::Status Enter(Call& call, absl::string_view session) const;

  /// Ends what Begin() began, OK or not, before the client hears of it.
  void End(Call& call, const absl::Status& status) const;

  /// One of several operations of a call has ended; "": it was none. `kernel`
  /// computed it, or "".
  void EndOperation(Call& call, absl::string_view operation,
                    absl::string_view kernel, const absl::Status& status) const;

 private:
  absl::Status Start(Call& call, const Rpc& rpc) const;

  server::SessionManager& sessions_;
  server::Metrics& metrics_;
  const absl::Duration transfer_idle_;
  std::vector<std::unique_ptr<Middleware>> middleware_;
};

/// What calls end with that a draining server does not serve.
absl::Status Draining();

}  // namespace tensord::rpc
