// What every call passes on its way to its handler and back.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "server/execution/operation_request.h"
#include "server/identity/authenticator.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/door/running_calls.h"
#include "server/rpc/door/session_names.h"
#include "server/session/session.h"
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

  /// A call has begun; nobody has looked at its request. Anything but OK is
  /// what the call ends with; CallCompleted() does not follow then.
  virtual absl::Status StartCall(const WireCall& call, CallRecord& record) = 0;
  /// A call that was started ends with `status`, which is yet to be sent.
  virtual void CallCompleted(const WireCall& call, const CallRecord& record,
                             const absl::Status& status) = 0;
  /// The operation that the record names has ended; its call goes on.
  virtual void OperationCompleted(const CallRecord& record,
                                  const absl::Status& status) = 0;
};

/// An operation of a stream.
struct EndedOperation {
  server::Metrics::Operation* operation = nullptr;  // null: nothing to report
  absl::string_view kernel;                         // "": none ran
  std::chrono::steady_clock::time_point begun;
};

/// Has every call looked at by the same middleware, in order.
///
/// Threads  safe for concurrent use.
class Door {
 public:
  /// Counts and logs, and has `more` look at calls behind that. Without an
  /// `authenticator` everybody may do everything.
  /// Lifetime  all that it refers to outlives it.
  Door(server::SessionManager& sessions, server::Metrics& metrics,
       server::Log& log, server::Authenticator* authenticator,
       absl::Duration transfer_idle, std::vector<Middleware*> more = {});

  ~Door();
  Door(const Door&) = delete;

  /// How long a client may neither send nor take anything.
  absl::Duration transfer_idle() const { return transfer_idle_; }

  /// A method, as the contract's options say what it is. Of one that does not
  /// say who may call it, operators may.
  Rpc RpcOf(const google::protobuf::MethodDescriptor& method) const;

  /// How operations of that kind are counted.
  server::Metrics::Operation* OperationOf(server::OperationKind kind) const {
    return operations_[static_cast<size_t>(kind)];
  }
  /// The same of one whose plan is not there to say its kind.
  server::Metrics::Operation* unknown_plan() const { return unknown_plan_; }

  /// Begins a call, of which nobody has looked at any message: gives it an id
  /// and finds out who asks. On error, answer the call with it; End() is due
  /// either way.
  ///
  /// Errors  UNAUTHENTICATED, as Authenticator::Identify(). PERMISSION_DENIED,
  ///         reason OPERATORS_ONLY. UNIMPLEMENTED, reason ADMIN_ELSEWHERE: the
  ///         server takes such calls at another address. UNAVAILABLE, reason
  ///         DRAINING. RESOURCE_EXHAUSTED, reason HOST_MEMORY_LIMIT: a stream.
  absl::Status Begin(Call& call, const Rpc& rpc) const;

  /// Finds the session that the request of a call names, and counts the
  /// `bytes` that the request takes, of the session or, if it names none, of
  /// the server.
  /// Errors  those of Enter().
  template <typename Request>
  absl::Status EnterFor(Call& call, const Request& request,
                        int64_t bytes) const {
    TENSORD_ASSIGN_OR_RETURN(const std::optional<absl::string_view> session,
                             SessionNameIn(request));
    return session ? Enter(call, *session, bytes) : EnterNone(call, bytes);
  }

  /// Has the audit log say who asks for what, before an rpc is carried out that
  /// changes something; does nothing for others. `request` is null when it is
  /// yet to come.
  ///
  /// Errors  UNAVAILABLE, reason AUDIT_FAILED, unless the rpc is one that is
  ///         carried out all the same.
  absl::Status Announce(Call& call,
                        const google::protobuf::Message* request) const {
    return call.record().rpc->is_announced ? AuditBegin(call, request)
                                           : absl::OkStatus();
  }

  /// The session that a request of `call` names.
  ///
  /// Errors  INVALID_ARGUMENT, reason SESSION_MISSING: the name is empty.
  ///         NOT_FOUND, reason SESSION_NOT_FOUND: also another tenant's.
  ///         UNAUTHENTICATED, as CheckIdentity().
  absl::StatusOr<std::shared_ptr<server::Session>> FindSession(
      Call& call, absl::string_view name) const;

  /// Whether who asked is still who they were when the call began; one that
  /// lasts is to look at that now and then.
  /// Errors  UNAUTHENTICATED, reason TOKEN_INVALID.
  static absl::Status CheckIdentity(const CallRecord& record);

  /// Whose sessions opened by `call` are, as server::OpenRequest has it.
  std::string HolderOf(Call& call) const;

  /// Makes the session of that name the call's, holds its lease until End(),
  /// and counts the call, with `bytes` of its request, as the session's.
  ///
  /// Errors  as FindSession(). RESOURCE_EXHAUSTED, reason TOO_MANY_REQUESTS or
  ///         HOST_MEMORY_LIMIT, unless a short call only renews the lease or
  ///         gives back.
  absl::Status Enter(Call& call, absl::string_view session,
                     int64_t bytes) const;

  /// The call is one of that session.
  void Join(Call& call, std::shared_ptr<server::Session> session) const;

  /// Counts a call by itself, whatever the limits, until it is there no more.
  /// Begin() does that, too.
  void Count(Call& call) const;

  /// Calls that have not ended: those of a session, and streams of none.
  RunningCalls& running() const { return *running_; }

  /// Ends a call, before the client hears of it.
  void End(Call& call, const absl::Status& status) const;

  /// Reports the end of one operation of a stream.
  void EndOperation(Call& call, const EndedOperation& ended,
                    const absl::Status& status) const;

 private:
  absl::Status Identify(Call& call) const;
  absl::Status AuditBegin(Call& call,
                          const google::protobuf::Message* request) const;
  /// Enter() of a call without session.
  absl::Status EnterNone(Call& call, int64_t bytes) const;

  server::SessionManager& sessions_;
  server::Metrics& metrics_;
  server::Log& log_;
  server::Authenticator* const authenticator_;  // null: nobody is asked
  const std::shared_ptr<const server::Identity> anybody_ =
      std::make_shared<const server::Identity>();
  /// The same from other machines.
  const std::shared_ptr<const server::Identity> elsewhere_ =
      std::make_shared<const server::Identity>(
          anybody_->tenant(), server::Role::kUser, "anybody of other machines");
  const std::shared_ptr<const server::Identity> stranger_ =
      std::make_shared<const server::Identity>("", server::Role::kUser,
                                               "anybody");
  const absl::Duration transfer_idle_;
  std::vector<server::Metrics::Operation*> operations_;  // (kind)
  server::Metrics::Operation* unknown_plan_;
  const std::unique_ptr<RunningCalls> running_;
  std::vector<std::unique_ptr<Middleware>> own_;
  std::vector<Middleware*> middleware_;  // in order
};

/// Whose limits hold for a call: "ipv4:10.0.0.2", "ipv6:2001:db8:0:7::",
/// "unix", or, where those are known, a user of this machine, "user 1000".
std::string PeerOf(const WireCall& call);

/// What calls end with that a draining server does not serve.
absl::Status Draining();

}  // namespace tensord::rpc
