#include "server/rpc/door/door.h"

#include <grpc/grpc_security_constants.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/base/steady_time.h"
#include "server/execution/operation_table.h"
#include "server/rpc/listening/peer.h"
#include "server/rpc/listening/peer_users.h"
#include "tensord/v1/access.pb.h"

namespace tensord::rpc {
namespace {

constexpr char kRequestIdKey[] = "x-request-id";
constexpr char kOnceKey[] = "x-request-once";
constexpr size_t kMaxRequestIdBytes = 128;

/// A call by itself. What gRPC and its coroutines keep of it is two to three
/// times as much, and up to 8 KiB more: gRPC takes no longer metadata.
int64_t OwnBytes(const WireCall& call) {
  constexpr int64_t kCallBytes = int64_t{1} << 13;
  constexpr int64_t kEntryBytes = 64;
  return kCallBytes + kEntryBytes * static_cast<int64_t>(call.entry_count());
}

/// No other server or call has it.
std::string MakeRequestId() {
  static const uint64_t process = [] {
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
      random = static_cast<uint64_t>(absl::GetCurrentTimeNanos());
    }
    return random;
  }();
  static std::atomic<uint64_t> count = 0;
  return absl::StrCat(absl::Hex(process, absl::kZeroPad16), "-",
                      absl::Hex(count.fetch_add(1)));
}

/// Whether the client gave an id that is printable, without spaces, and short.
bool IsGoodRequestId(absl::string_view given) {
  return !given.empty() && given.size() <= kMaxRequestIdBytes &&
         std::all_of(given.begin(), given.end(), [](char c) {
           return absl::ascii_isgraph(static_cast<unsigned char>(c));
         });
}

/// Behind "Bearer" in the call's metadata; "": nothing is.
absl::string_view BearerOf(const WireCall& call) {
  const absl::string_view given = call.Find("authorization").value_or("");
  constexpr absl::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(given, kScheme)) return "";
  return given.substr(kScheme.size());
}

/// Whose limits hold, where what is known of the connection is at hand.
std::string PeerOf(const WireCall& call, const grpc::AuthContext& known) {
  const auto user = PeerUsers::UserOf(known);
  if (user && *user != PeerUsers::kStranger) return UserPeer(*user);
  const std::string peer = HostPeer(call.peer());
  // Of the ways in that Unix sockets have, its own user's says nothing.
  return !user && peer == "unix" ? UserPeer(geteuid()) : peer;
}

/// The names of the client's certificate; none: it has none.
std::vector<absl::string_view> CertificateOf(const grpc::AuthContext& known) {
  std::vector<absl::string_view> names;
  if (!known.IsPeerAuthenticated()) return names;
  for (const char* const property :
       {GRPC_X509_CN_PROPERTY_NAME, GRPC_PEER_URI_PROPERTY_NAME}) {
    for (const grpc::string_ref& name : known.FindPropertyValues(property)) {
      names.emplace_back(name.data(), name.size());
    }
  }
  return names;
}

absl::string_view TenantOf(const CallRecord& record) {
  if (record.identity == nullptr) return "";
  return record.identity->tenant();
}

/// Where the time went of what ends at `now`; record.took is what the phases
/// take together.
server::PhaseTimes PhasesOf(const CallRecord& record, absl::Time now) {
  if (record.rpc->transfer != nullptr) {
    return {std::nullopt, std::nullopt, std::nullopt, record.took};
  }
  if (record.operation == nullptr) return {};
  if (!record.times) return {record.took};
  const server::RunTimes& run = *record.times;
  const absl::Duration queue = run.begun - run.made;
  const absl::Duration kernel = run.ended - run.begun - run.copying;
  const absl::Duration transfer = run.copying + (now - run.ended);
  // Each of them was rounded.
  const absl::Duration plan =
      std::max(absl::ZeroDuration(), record.took - queue - kernel - transfer);
  return {plan, queue, kernel, transfer};
}

/// Counts and times in the server's metrics.
class Counting final : public Middleware {
 public:
  explicit Counting(server::Metrics& metrics) : metrics_(metrics) {}

  absl::Status StartCall(const WireCall&, CallRecord&) override {
    metrics_.BeginCall();
    return absl::OkStatus();
  }
  void CallCompleted(const WireCall&, const CallRecord& record,
                     const absl::Status& status) override {
    record.rpc->metrics->Complete(status.code(), record.took);
    metrics_.CountRequest(TenantOf(record));
    if (record.rpc->transfer != nullptr) {
      record.rpc->transfer->Observe(record.phases);
    }
    if (record.operation != nullptr) CountOperation(record, status);
    CountReason(status);
  }
  void OperationCompleted(const CallRecord& record,
                          const absl::Status& status) override {
    CountOperation(record, status);
    CountReason(status);
  }

 private:
  void CountOperation(const CallRecord& record, const absl::Status& status) {
    record.operation->Complete(status.code(), record.phases);
    const auto kernel = record.phases[static_cast<int>(server::Phase::kKernel)];
    if (!kernel) return;
    metrics_.CountDeviceTime(TenantOf(record), *kernel, !status.ok());
  }
  void CountReason(const absl::Status& status) {
    if (status.ok()) return;
    const std::string reason = core::ReasonOf(status);
    metrics_.Reject(reason.empty() ? absl::StatusCodeToString(status.code())
                                   : reason);
  }

  server::Metrics& metrics_;
};

/// So many refusals a minute of somebody are written down; who knocks again and
/// again should not fill the log, nor hide in it what else happens.
///
/// Threads  safe for concurrent use.
class RefusalLimit {
 public:
  /// How many were left out since the last that was not; nothing: so is this.
  std::optional<int64_t> Take(const std::string& who) {
    const absl::Time now = absl::Now();
    absl::MutexLock lock(&mutex_);
    if (refusals_.size() >= kMost) {
      std::erase_if(refusals_, [now](const auto& entry) {
        return now - entry.second.begun >= kMinute;
      });
    }
    // Where that many are refused, all new ones share one account.
    const bool has_room = refusals_.size() < kMost || refusals_.contains(who);
    Refusals& of = refusals_[has_room ? who : ""];
    if (now - of.begun >= kMinute) {
      of.begun = now;
      of.count = 0;
    }
    if (++of.count <= kMostAMinute) return std::exchange(of.left_out, 0);
    ++of.left_out;
    return std::nullopt;
  }

 private:
  static constexpr int64_t kMostAMinute = 10;
  static constexpr absl::Duration kMinute = absl::Minutes(1);
  static constexpr size_t kMost = 1024;

  struct Refusals {
    absl::Time begun = absl::InfinitePast();
    int64_t count = 0;
    int64_t left_out = 0;
  };

  absl::Mutex mutex_;
  std::map<std::string, Refusals> refusals_ ABSL_GUARDED_BY(mutex_);
};

constexpr size_t kSecretDigits = 32;

/// `message` without what names of sessions keep secret.
std::string WithoutSecrets(absl::string_view message) {
  std::string text;
  while (!message.empty()) {
    const size_t digits =
        std::min(message.find_first_not_of("0123456789abcdef"), message.size());
    const size_t taken = std::max(digits, size_t{1});
    absl::StrAppend(&text,
                    digits < kSecretDigits ? message.substr(0, taken) : "***");
    message.remove_prefix(taken);
  }
  return text;
}

/// A line each; sessions by number, as who knows the name has the session.
class Logging final : public Middleware {
 public:
  explicit Logging(server::Log& log) : log_(log) {}

  absl::Status StartCall(const WireCall&, CallRecord&) override {
    return absl::OkStatus();
  }
  void CallCompleted(const WireCall& call, const CallRecord& record,
                     const absl::Status& status) override {
    // Strangers, who do nothing, are counted and not written down.
    if (record.identity != nullptr) {
      if (absl::IsPermissionDenied(status)) {
        AuditRefusal(call, record, status);
      } else if (record.rpc->is_audited) {
        Audit(call, record, status);
      }
    }
    const server::LogLevel level = LevelOf(status);
    if (!log_.Shows(level)) return;
    log_.Event(level, "call",
               {{"rpc", record.rpc->name},
                {"code", absl::StatusCodeToString(status.code())},
                {"request_id", record.request_id},
                {"tenant", TenantOf(record)},
                {"peer", call.peer()},
                {"session", NumberOf(record)},
                {"trace_id", record.trace.trace_id_text()},
                {"kernel", record.kernel},
                {"received_bytes", record.received_bytes},
                {"sent_bytes", record.sent_bytes},
                {"microseconds", absl::ToInt64Microseconds(record.took)},
                {"message", WithoutSecrets(status.message())}});
  }
  void OperationCompleted(const CallRecord& record,
                          const absl::Status& status) override {
    const server::LogLevel level = LevelOf(status);
    if (!log_.Shows(level)) return;
    log_.Event(level, "operation",
               {{"operation", record.operation->name()},
                {"code", absl::StatusCodeToString(status.code())},
                {"request_id", record.request_id},
                {"tenant", TenantOf(record)},
                {"session", NumberOf(record)},
                {"trace_id", record.trace.trace_id_text()},
                {"kernel", record.kernel},
                {"message", WithoutSecrets(status.message())}});
  }

 private:
  void AuditRefusal(const WireCall& call, const CallRecord& record,
                    const absl::Status& status) {
    const std::string& who = record.identity->name();
    const auto left_out =
        refusals_.Take(absl::StrCat(TenantOf(record), " ", who));
    if (!left_out) return;
    if (*left_out > 0) {
      log_.Audit("audit", {{"who", who},
                           {"tenant", TenantOf(record)},
                           {"left_out", *left_out}})
          .IgnoreError();
    }
    Audit(call, record, status);
  }
  /// Whatever the level: who has done what to what all share.
  void Audit(const WireCall& call, const CallRecord& record,
             const absl::Status& status) {
    // What changed something has a line already, that it was asked for.
    log_.Audit("audit",
               {{"who", record.identity->name()},
                {"tenant", TenantOf(record)},
                {"peer", record.peer.empty() ? call.peer() : record.peer},
                {"rpc", record.rpc->name},
                {"subject", record.subject},
                {"code", absl::StatusCodeToString(status.code())},
                {"request_id", record.request_id},
                {"trace_id", record.trace.trace_id_text()}})
        .IgnoreError();
  }
  static server::LogLevel LevelOf(const absl::Status& status) {
    return absl::IsInternal(status) ? server::LogLevel::kError
                                    : server::LogLevel::kDebug;
  }
  static uint64_t NumberOf(const CallRecord& record) {
    return record.session == nullptr ? 0 : record.session->number();
  }

  server::Log& log_;
  RefusalLimit refusals_;
};

}  // namespace

Door::Door(server::SessionManager& sessions, server::Metrics& metrics,
           server::Log& log, server::Authenticator* authenticator,
           absl::Duration transfer_idle, std::vector<Middleware*> more)
    : sessions_(sessions),
      metrics_(metrics),
      log_(log),
      authenticator_(authenticator),
      transfer_idle_(transfer_idle),
      unknown_plan_(&metrics.OfOperation("execute_plan")),
      running_(std::make_unique<RunningCalls>()) {
  for (int i = 0; i < server::kOperationCount; ++i) {
    operations_.push_back(&metrics.OfOperation(
        server::NameOf(static_cast<server::OperationKind>(i))));
  }
  own_.push_back(std::make_unique<Counting>(metrics));
  own_.push_back(std::make_unique<Logging>(log));
  for (const auto& middleware : own_) middleware_.push_back(middleware.get());
  middleware_.insert(middleware_.end(), more.begin(), more.end());
  sessions_.set_on_ended(
      [this](const server::Session& ended) { running_->StopStreams(ended); });
}

Door::~Door() { sessions_.set_on_ended(nullptr); }

Rpc Door::RpcOf(const google::protobuf::MethodDescriptor& method) const {
  const google::protobuf::MethodOptions& options = method.options();
  const std::string& operation = options.GetExtension(v1::operation);
  const v1::Access access = options.GetExtension(v1::access);
  const v1::Kind kind = options.GetExtension(v1::kind);
  Rpc rpc{.name = method.name(), .metrics = &metrics_.OfRpc(method.name())};
  if (!operation.empty()) rpc.operation = &metrics_.OfOperation(operation);
  if (kind == v1::TRANSFER) {
    rpc.transfer =
        method.client_streaming() ? &metrics_.uploads() : &metrics_.downloads();
  }
  rpc.only_gives_back = kind == v1::RELEASE;
  rpc.is_operators = access != v1::USER && access != v1::ANYBODY;
  rpc.is_anybodys = access == v1::ANYBODY;
  rpc.is_audited = options.GetExtension(v1::audit);
  rpc.is_announced = rpc.is_audited && kind == v1::CHANGE;
  rpc.may_be_unaudited = options.GetExtension(v1::audit_may_fail);
  rpc.has_one_request = !method.client_streaming();
  rpc.is_stream = method.client_streaming() || method.server_streaming();
  return rpc;
}

absl::Status Door::Begin(Call& call, const Rpc& rpc) const {
  CallRecord& record = call.record();
  record.rpc = &rpc;
  record.begun = std::chrono::steady_clock::now();
  WireCall& wire = call.wire();
  Count(call);
  const absl::string_view given = wire.Find(kRequestIdKey).value_or("");
  const bool is_own = IsGoodRequestId(given);
  record.request_id = is_own ? std::string(given) : MakeRequestId();
  wire.AddInitialMetadata(kRequestIdKey, record.request_id);
  record.is_once = wire.Find(kOnceKey).has_value();
  if (rpc.is_operators || rpc.is_audited) record.peer = wire.peer();
  for (Middleware* const middleware : middleware_) {
    TENSORD_RETURN_IF_ERROR(middleware->StartCall(wire, record));
    ++record.started_count;
  }
  if (record.is_once && !is_own) {
    return core::InvalidArgument(
        "REQUEST_ID_MALFORMED",
        "the call is to be carried out at most once, and its x-request-id is "
        "none of 1 to ",
        kMaxRequestIdBytes, " printable characters, without spaces");
  }
  if (rpc.is_anybodys) {
    record.identity = stranger_;
  } else {
    TENSORD_RETURN_IF_ERROR(Identify(call));
  }
  if (call.loop().refuses()) return Draining();
  if (rpc.is_stream && !rpc.is_anybodys) {
    // It may last, and never name a session.
    TENSORD_RETURN_IF_ERROR(record.hold.Take(sessions_.host_memory(),
                                             server::HostUse::kRequests,
                                             OwnBytes(wire), /*count=*/0));
    running_->Add(call, nullptr);
  }
  record.operation = rpc.operation;
  return absl::OkStatus();
}

absl::Status Door::Identify(Call& call) const {
  CallRecord& record = call.record();
  const WireCall& wire = call.wire();
  if (authenticator_ == nullptr || !authenticator_->asks()) {
    // Who is near is looked at where it matters.
    const bool is_elsewhere =
        record.rpc->is_operators && authenticator_ != nullptr &&
        authenticator_->serves_others() && !IsOfThisMachine(record.peer);
    record.identity = is_elsewhere ? elsewhere_ : anybody_;
  } else {
    const std::shared_ptr<const grpc::AuthContext> known = wire.auth_context();
    const std::string peer = PeerOf(wire, *known);
    TENSORD_ASSIGN_OR_RETURN(
        record.identity,
        authenticator_->Identify({.peer = peer,
                                  .certificate = CertificateOf(*known),
                                  .user = PeerUsers::UserOf(*known),
                                  .bearer = BearerOf(wire)}));
  }
  if (record.rpc->is_elsewhere) {
    return core::Unimplemented("ADMIN_ELSEWHERE", record.rpc->name,
                               " is served at the server's admin address");
  }
  if (!record.rpc->is_operators) return absl::OkStatus();
  if (record.identity->role() != server::Role::kOperator) {
    return core::Error(
        absl::StatusCode::kPermissionDenied, "OPERATORS_ONLY",
        absl::StrCat(record.rpc->name, " is for operators, ",
                     record.identity->name(), " is a user of tenant ",
                     record.identity->tenant()));
  }
  return absl::OkStatus();
}

absl::Status Door::AuditBegin(Call& call,
                              const google::protobuf::Message* request) const {
  constexpr size_t kRequestBytes = 128;  // of what the line quotes
  const CallRecord& record = call.record();
  constexpr size_t kMostBytes = size_t{1} << 16;  // of one that is shown
  const std::string asked =
      request == nullptr || request->ByteSizeLong() > kMostBytes
          ? ""
          : request->ShortDebugString();
  const absl::Status written =
      log_.Audit("audit_begin", {{"who", record.identity->name()},
                                 {"tenant", TenantOf(record)},
                                 {"peer", record.peer},
                                 {"rpc", record.rpc->name},
                                 {"request", asked.substr(0, kRequestBytes)},
                                 {"request_id", record.request_id},
                                 {"trace_id", record.trace.trace_id_text()}});
  if (written.ok() || record.rpc->may_be_unaudited) return absl::OkStatus();
  return core::Error(
      written.code(), core::ReasonOf(written),
      absl::StrCat(record.rpc->name,
                   " is not carried out, as no line of the "
                   "audit log can be written: ",
                   written.message(),
                   "; mend that, or start the server with --audit-log=FILE"));
}

absl::Status Door::CheckIdentity(const CallRecord& record) {
  return record.identity->IsValid() ? absl::OkStatus() : server::TokenInvalid();
}

absl::StatusOr<std::shared_ptr<server::Session>> Door::FindSession(
    Call& call, absl::string_view name) const {
  const CallRecord& record = call.record();
  TENSORD_RETURN_IF_ERROR(CheckIdentity(record));
  if (!name.empty()) return sessions_.Find(name, record.identity->tenant());
  return core::InvalidArgument(
      "SESSION_MISSING",
      "the request names no session, wanted sessions/{session}");
}

std::string Door::HolderOf(Call& call) const {
  if (authenticator_ == nullptr || !authenticator_->asks()) {
    return absl::StrCat("peer ", PeerOf(call.wire()));
  }
  const server::Identity& identity = *call.record().identity;
  return absl::StrCat(identity.name(), " of tenant ", identity.tenant());
}

absl::Status Door::Enter(Call& call, absl::string_view session,
                         int64_t bytes) const {
  CallRecord& record = call.record();
  TENSORD_ASSIGN_OR_RETURN(auto found, FindSession(call, session));
  Join(call, std::move(found));
  const bool only_gives_back = record.rpc->only_gives_back;
  record.session_use.emplace(record.session, !only_gives_back);
  // Such calls are how a session that is full gets room.
  constexpr int64_t kMostBytes = int64_t{1} << 19;
  const int64_t all_bytes = OwnBytes(call.wire()) + bytes;
  const auto& ledger = record.session->host_memory();
  if (only_gives_back && bytes <= kMostBytes) {
    record.hold.TakeAnyway(ledger, server::HostUse::kRequests, all_bytes);
    return absl::OkStatus();
  }
  return record.hold.Take(ledger, server::HostUse::kRequests, all_bytes);
}

absl::Status Door::EnterNone(Call& call, int64_t bytes) const {
  // Operators have to be heard when nothing is left.
  constexpr int64_t kMostBytes = int64_t{1} << 14;
  server::HostHold& hold = call.record().hold;
  if (bytes > kMostBytes) return hold.Grow(bytes);
  hold.Add(bytes);
  return absl::OkStatus();
}

void Door::Count(Call& call) const {
  call.record().hold.TakeAnyway(sessions_.host_memory(),
                                server::HostUse::kRequests,
                                OwnBytes(call.wire()));
}

void Door::Join(Call& call, std::shared_ptr<server::Session> session) const {
  call.record().session = std::move(session);
  running_->Add(call, call.record().session);
}

void Door::End(Call& call, const absl::Status& status) const {
  CallRecord& record = call.record();
  running_->Remove(call);
  const auto now = std::chrono::steady_clock::now();
  record.took = absl::FromChrono(now - record.begun);
  record.phases = PhasesOf(record, core::SteadyTime(now));
  for (size_t i = 0; i < record.started_count; ++i) {
    middleware_[i]->CallCompleted(call.wire(), record, status);
  }
  record.session_use.reset();
  record.session.reset();
}

void Door::EndOperation(Call& call, const EndedOperation& ended,
                        const absl::Status& status) const {
  CallRecord& record = call.record();
  if (ended.operation != nullptr) {
    record.operation = ended.operation;
    record.kernel = ended.kernel;
    const auto now = std::chrono::steady_clock::now();
    record.took = absl::FromChrono(now - ended.begun);
    record.phases = PhasesOf(record, core::SteadyTime(now));
    ++record.ended_operations;
    for (Middleware* const middleware : middleware_) {
      middleware->OperationCompleted(record, status);
    }
  }
  record.operation = nullptr;
  record.kernel = {};
  record.times.reset();
}

std::string PeerOf(const WireCall& call) {
  return PeerOf(call, *call.auth_context());
}

absl::Status Draining() {
  return core::Error(absl::StatusCode::kUnavailable, "DRAINING",
                     "the server is draining; retry elsewhere or later");
}

}  // namespace tensord::rpc
