// Opens, finds and closes sessions.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/engine/engine.h"
#include "server/engine/host_memory.h"
#include "server/engine/tenant_account.h"
#include "server/session/session.h"
#include "server/session/tensor_share.h"

namespace tensord::server {

/// What all sessions together keep in host memory, at most, and the server
/// itself. Bytes of most are bounded by the limit of all uses together.
inline constexpr HostLimits kServerHostLimits = {{
    {1'000'000, int64_t{1} << 40},  // tensors
    {100'000, int64_t{1} << 40},    // plans
    {100'000, int64_t{1} << 40},    // programs
    {65'536, int64_t{1} << 40},     // requests
    {16, int64_t{1} << 40},         // snapshots
    {100'000, int64_t{1} << 40},    // answers
    {0, 0},                         // arriving: nobody asks for it
}};

struct SessionLimits {
  int64_t max_sessions = 1024;
  /// Of those that one holder has opened and that live, where its tenant has no
  /// limit of its own; 0: a quarter of all.
  int64_t max_sessions_per_peer = 0;
  absl::Duration default_lease = absl::Seconds(60);
  /// Of tenants that have limits, and of others, who may have the default, too.
  absl::Duration max_lease = absl::Hours(24);
  absl::Duration max_lease_of_others = absl::Hours(1);
  /// Default and most memory of one session; 0: all that its device has.
  int64_t quota_bytes = 0;
  HostLimits session_host = kSessionHostLimits;
  HostLimits server_host = kServerHostLimits;
  /// Of all uses of host memory together; 0: an eighth of the host's.
  int64_t host_bytes = 0;
  int max_priority = 9;
};

/// What one tenant may have; none: as all may.
struct TenantLimits {
  std::optional<int> priority;
  std::optional<int64_t> sessions;
  TenantQuotas quotas;
};
using TenantsLimits = std::map<std::string, TenantLimits, std::less<>>;

/// What OpenSession asks for; zero and empty mean the default.
struct OpenRequest {
  std::string job;
  absl::Duration lease;
  int64_t memory_quota_bytes = 0;
  std::string device;
  int priority = 0;
  std::string tenant = std::string(kDefaultTenant);
  std::string peer;  // who asks, as SessionOptions has it
  /// Whose it is, of those who may have so many: "token 1a2b3c4d of tenant a",
  /// or "peer 10.0.0.2" where nobody is asked who they are.
  std::string holder;
};

/// Threads   safe for concurrent use; a thread of its own closes sessions whose
///           lease has run out, and others that nobody is to wait for.
/// Lifetime  the engine must outlive it.
class SessionManager {
 public:
  /// `on_expired` is told of every session that ran out, on that thread.
  SessionManager(Engine& engine, const SessionLimits& limits,
                 std::function<void(const Session&)> on_expired);
  /// Closes all sessions.
  ~SessionManager();

  /// Errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED as OpenSession in the proto.
  absl::StatusOr<std::shared_ptr<Session>> Open(const OpenRequest& request);

  /// What tenants may have; those that are there stay, whatever they have.
  /// Errors  INVALID_ARGUMENT, reason RESERVATIONS_TOO_LARGE: together they
  ///         reserve more than a device has. Nothing has changed then.
  absl::Status SetTenants(TenantsLimits tenants);

  /// The session of that name, a tenant's; its lease starts anew.
  /// Errors  NOT_FOUND, reason SESSION_NOT_FOUND: also another tenant's.
  absl::StatusOr<std::shared_ptr<Session>> Find(absl::string_view name,
                                                absl::string_view tenant);

  /// The session of that number, whosever it is; its lease goes on.
  /// Errors  as Find.
  absl::StatusOr<std::shared_ptr<Session>> FindNumber(uint64_t number) const;

  /// Errors  as Find.
  absl::Status Close(absl::string_view name);
  /// The same on the manager's thread, as it takes long where there are many
  /// tensors; nobody finds the session any more on return. `closed` is called
  /// there, once it is.
  /// Errors  as Find; `closed` is not called then.
  absl::Status Close(absl::string_view name, std::function<void()> closed);

  /// Has `on_ended` told of every session that nobody finds any more, on
  /// whichever thread ended it; null: nobody hears of it. Waits for a call that
  /// is under way.
  void set_on_ended(std::function<void(const Session&)> on_ended);

  /// Of sessions of that tenant.
  absl::Duration max_lease(absl::string_view tenant) const;
  const SessionLimits& limits() const { return limits_; }
  /// What sessions and the server itself keep in the host's memory.
  const std::shared_ptr<HostLedger>& host_memory() const {
    return host_memory_;
  }
  /// All of them; their leases do not start anew.
  std::vector<std::shared_ptr<Session>> List() const;
  /// Up to `most` of them, those first that hold most memory.
  std::vector<std::shared_ptr<Session>> Largest(size_t most) const;
  int64_t session_count() const;
  int64_t tensor_count() const;
  TensorShares& shares() { return shares_; }
  /// Of tenants that have limits, or have had sessions.
  std::vector<std::shared_ptr<TenantAccount>> Accounts() const;

 private:
  /// Counts a session for its tenant and peer. Errors  RESOURCE_EXHAUSTED, as
  /// Open().
  absl::Status CountIn(const OpenRequest& request,
                       const TenantLimits& tenant_limits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  struct Leaving {
    std::shared_ptr<Session> session;
    std::function<void()> closed;
  };
  /// Nobody finds the session any more, which has to be closed.
  absl::StatusOr<std::shared_ptr<Session>> Take(absl::string_view name);
  /// What its thread does.
  void CloseSessions();
  void CloseExpired();
  void SayEnded(const Session& session) const;
  /// Nothing: it has none.
  std::optional<TenantLimits> LimitsOf(absl::string_view tenant) const;
  absl::Status CheckReservations(const TenantsLimits& tenants) const;
  const std::shared_ptr<TenantAccount>& AccountOf(const std::string& tenant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The session is no longer one of its peer's and its tenant's.
  void Forget(const Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Engine& engine_;
  const SessionLimits limits_;
  const std::function<void(const Session&)> on_expired_;
  mutable absl::Mutex ended_mutex_;
  std::function<void(const Session&)> on_ended_ ABSL_GUARDED_BY(ended_mutex_);
  TensorShares shares_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_
      ABSL_GUARDED_BY(mutex_);
  // How many sessions there are of each peer that has any, and each tenant.
  std::map<std::string, int64_t> holders_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> tenants_ ABSL_GUARDED_BY(mutex_);
  TenantsLimits tenant_limits_ ABSL_GUARDED_BY(mutex_);
  // Of those with limits, and of others: all, until there are twice as many as
  // had to be kept when they were last looked through.
  std::map<std::string, std::shared_ptr<TenantAccount>> accounts_
      ABSL_GUARDED_BY(mutex_);
  size_t kept_accounts_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  const std::shared_ptr<HostLedger> host_memory_;
  // Not Abseil's, which wait by the wall clock.
  std::mutex closing_mutex_;
  std::condition_variable closes_;
  bool closing_ = false;          // guarded by closing_mutex_
  std::vector<Leaving> leaving_;  // guarded by closing_mutex_
  std::thread reaper_;
};

}  // namespace tensord::server
