#include "server/session/session_manager.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/engine/quota.h"
#include "server/session/random_name.h"

namespace tensord::server {
namespace {

constexpr auto kReapInterval = std::chrono::milliseconds(200);
constexpr size_t kMaxJobLength = 128;

/// With whom a session shares the device's time as one: a tenant is one, and
/// where there are none, a job or a peer.
std::string OwnerOf(const OpenRequest& request) {
  if (request.tenant != kDefaultTenant) {
    return OwnerOfTenant(request.tenant);
  }
  return request.job.empty() ? absl::StrCat("\npeer ", request.peer)
                             : request.job;
}

/// With what is said by 0.
SessionLimits Complete(SessionLimits limits) {
  if (limits.max_sessions_per_peer == 0) {
    limits.max_sessions_per_peer = (limits.max_sessions + 3) / 4;
  }
  return limits;
}

absl::Duration MaxLease(const std::optional<TenantLimits>& tenant_limits,
                        const SessionLimits& limits) {
  return tenant_limits
             ? limits.max_lease
             : std::min(limits.max_lease, std::max(limits.max_lease_of_others,
                                                   limits.default_lease));
}

/// Whether a session may be as it is asked for.
absl::Status CheckRequest(const OpenRequest& request, absl::Duration lease,
                          const std::optional<TenantLimits>& tenant_limits,
                          const SessionLimits& limits) {
  const absl::Duration most = MaxLease(tenant_limits, limits);
  if (lease < absl::Seconds(1) || lease > most) {
    return core::InvalidArgument(
        "LEASE_OUT_OF_RANGE", "lease is ", absl::FormatDuration(lease),
        ", wanted 1s to ", absl::FormatDuration(most),
        most < limits.max_lease
            ? absl::StrCat(", as no file of tenants names the tenant ",
                           request.tenant)
            : "");
  }
  if (request.memory_quota_bytes < 0) {
    return core::InvalidArgument("QUOTA_NEGATIVE", "memory_quota_bytes is ",
                                 request.memory_quota_bytes, ", wanted >= 0");
  }
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (request.job.size() > kMaxJobLength ||
      !std::all_of(request.job.begin(), request.job.end(), is_printable)) {
    return core::InvalidArgument("JOB_MALFORMED", "job label wanted as up to ",
                                 kMaxJobLength, " printable characters, got ",
                                 request.job.size());
  }
  const int max_priority = std::min(
      limits.max_priority, tenant_limits.value_or(TenantLimits())
                               .priority.value_or(limits.max_priority));
  if (request.priority < 0 || request.priority > max_priority) {
    return core::InvalidArgument("PRIORITY_OUT_OF_BOUNDS", "priority is ",
                                 request.priority, ", wanted 0 to ",
                                 max_priority);
  }
  return absl::OkStatus();
}

absl::Status NoSuchSession(absl::string_view name) {
  return core::NotFound("SESSION_NOT_FOUND", "session '", name,
                        "' does not exist or its lease ran out");
}

}  // namespace

SessionManager::SessionManager(Engine& engine, const SessionLimits& limits,
                               std::function<void(const Session&)> on_expired)
    : engine_(engine),
      limits_(Complete(limits)),
      on_expired_(std::move(on_expired)),
      host_memory_(std::make_shared<HostLedger>(
          "server", limits.server_host,
          limits.host_bytes > 0 ? limits.host_bytes : HostMemoryBytes() / 8)) {
  reaper_ = std::thread([this] { CloseSessions(); });
}

SessionManager::~SessionManager() {
  {
    const std::lock_guard lock(closing_mutex_);
    closing_ = true;
  }
  closes_.notify_all();
  reaper_.join();
  for (const auto& [name, session] : sessions_) session->Close();
}

absl::StatusOr<std::shared_ptr<Session>> SessionManager::Open(
    const OpenRequest& request) {
  const absl::Duration lease = request.lease == absl::ZeroDuration()
                                   ? limits_.default_lease
                                   : request.lease;
  const std::optional<TenantLimits> tenant_limits = LimitsOf(request.tenant);
  TENSORD_RETURN_IF_ERROR(CheckRequest(request, lease, tenant_limits, limits_));
  TENSORD_ASSIGN_OR_RETURN(Device * device, engine_.FindDevice(request.device));
  TENSORD_RETURN_IF_ERROR(device->health());
  const int64_t most =
      limits_.quota_bytes > 0
          ? std::min(limits_.quota_bytes, device->memory_limit_bytes())
          : device->memory_limit_bytes();
  const int64_t quota = request.memory_quota_bytes > 0
                            ? std::min(request.memory_quota_bytes, most)
                            : most;
  TENSORD_ASSIGN_OR_RETURN(std::string name, RandomName("sessions/"));
  absl::MutexLock lock(&mutex_);
  TENSORD_RETURN_IF_ERROR(
      CountIn(request, tenant_limits.value_or(TenantLimits())));
  auto session = std::make_shared<Session>(
      name, next_number_++, *device,
      SessionOptions{.tenant = request.tenant,
                     .job = request.job,
                     .owner = OwnerOf(request),
                     .priority = request.priority,
                     .lease = lease,
                     .memory_quota_bytes = quota,
                     .peer = request.peer,
                     .holder = request.holder,
                     .host_limits = limits_.session_host},
      AccountOf(request.tenant));
  sessions_.emplace(std::move(name), session);
  return session;
}

absl::Duration SessionManager::max_lease(absl::string_view tenant) const {
  return MaxLease(LimitsOf(tenant), limits_);
}

absl::Status SessionManager::CountIn(const OpenRequest& request,
                                     const TenantLimits& tenant_limits) {
  if (std::ssize(sessions_) >= limits_.max_sessions) {
    return core::ResourceExhausted("TOO_MANY_SESSIONS", "the server has ",
                                   sessions_.size(), " sessions, its limit is ",
                                   limits_.max_sessions, "; retry later");
  }
  const auto count = [](const auto& counts, const std::string& of) {
    const auto known = counts.find(of);
    return known == counts.end() ? int64_t{0} : known->second;
  };
  const int64_t of_tenant = count(tenants_, request.tenant);
  if (tenant_limits.sessions && of_tenant >= *tenant_limits.sessions) {
    return QuotaExceeded({.tenant = request.tenant,
                          .quota = "sessions",
                          .limit = *tenant_limits.sessions,
                          .used = of_tenant,
                          .retry_after = {}},
                         1, "TOO_MANY_SESSIONS_OF_TENANT");
  }
  const int64_t of_holder = count(holders_, request.holder);
  if (!tenant_limits.sessions && of_holder >= limits_.max_sessions_per_peer) {
    return core::ResourceExhausted(
        "TOO_MANY_SESSIONS_OF_PEER", request.holder, " has ", of_holder,
        " sessions, its limit is ", limits_.max_sessions_per_peer,
        "; close some, or retry when their leases have run out");
  }
  ++holders_[request.holder];
  ++tenants_[request.tenant];
  return absl::OkStatus();
}

absl::Status SessionManager::SetTenants(TenantsLimits tenants) {
  TENSORD_RETURN_IF_ERROR(CheckReservations(tenants));
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, account] : accounts_) {
      if (!tenants.contains(name)) account->SetQuotas({});
    }
    tenant_limits_ = std::move(tenants);  // whose accounts stay
    for (const auto& [name, limits] : tenant_limits_) {
      TenantAccount& account = *AccountOf(name);
      account.SetQuotas(limits.quotas);
      if (!limits.quotas.reserved_bytes) continue;
      for (const auto& device : engine_.devices()) account.On(*device);
    }
  }
  for (const auto& device : engine_.devices()) {
    device->worker().LimitsChanged();
  }
  return absl::OkStatus();
}

absl::Status SessionManager::CheckReservations(
    const TenantsLimits& tenants) const {
  for (const auto& device : engine_.devices()) {
    int64_t left = device->memory_limit_bytes();
    for (const auto& [name, limits] : tenants) {
      const int64_t reserved = limits.quotas.reserved_bytes.value_or(0);
      if (reserved > left) {
        return core::InvalidArgument("RESERVATIONS_TOO_LARGE", "tenant ", name,
                                     " has reserved_bytes of ", reserved,
                                     ", of ", device->memory_limit_bytes(),
                                     " bytes of ", device->info().name,
                                     " others leave ", left);
      }
      left -= reserved;
    }
  }
  return absl::OkStatus();
}

const std::shared_ptr<TenantAccount>& SessionManager::AccountOf(
    const std::string& tenant) {
  if (accounts_.size() > 2 * kept_accounts_ + 16) {
    std::erase_if(accounts_, [this](const auto& entry) {
      return entry.second.use_count() == 1 &&
             !tenant_limits_.contains(entry.first);
    });
    kept_accounts_ = accounts_.size();
  }
  std::shared_ptr<TenantAccount>& account = accounts_[tenant];
  if (account == nullptr) {
    account = std::make_shared<TenantAccount>(tenant, host_memory_);
  }
  return account;
}

std::vector<std::shared_ptr<TenantAccount>> SessionManager::Accounts() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<TenantAccount>> accounts;
  for (const auto& [name, account] : accounts_) accounts.push_back(account);
  return accounts;
}

std::optional<TenantLimits> SessionManager::LimitsOf(
    absl::string_view tenant) const {
  absl::MutexLock lock(&mutex_);
  const auto known = tenant_limits_.find(tenant);
  if (known == tenant_limits_.end()) return std::nullopt;
  return known->second;
}

absl::StatusOr<std::shared_ptr<Session>> SessionManager::Find(
    absl::string_view name, absl::string_view tenant) {
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(std::string(name));
    if (found == sessions_.end() || found->second->options().tenant != tenant) {
      return NoSuchSession(name);
    }
    session = found->second;
  }
  session->Touch();
  return session;
}

absl::StatusOr<std::shared_ptr<Session>> SessionManager::FindNumber(
    uint64_t number) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, session] : sessions_) {
    if (session->number() == number) return session;
  }
  return NoSuchSession(absl::StrCat("number ", number));
}

void SessionManager::set_on_ended(
    std::function<void(const Session&)> on_ended) {
  absl::MutexLock lock(&ended_mutex_);
  on_ended_ = std::move(on_ended);
}

void SessionManager::SayEnded(const Session& session) const {
  absl::MutexLock lock(&ended_mutex_);
  if (on_ended_) on_ended_(session);
}

absl::StatusOr<std::shared_ptr<Session>> SessionManager::Take(
    absl::string_view name) {
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(std::string(name));
    if (found == sessions_.end()) return NoSuchSession(name);
    session = std::move(found->second);
    sessions_.erase(found);
    Forget(*session);
  }
  SayEnded(*session);
  return session;
}

absl::Status SessionManager::Close(absl::string_view name) {
  TENSORD_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Take(name));
  session->Close();
  return absl::OkStatus();
}

absl::Status SessionManager::Close(absl::string_view name,
                                   std::function<void()> closed) {
  TENSORD_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Take(name));
  {
    const std::lock_guard lock(closing_mutex_);
    leaving_.push_back({std::move(session), std::move(closed)});
  }
  closes_.notify_all();
  return absl::OkStatus();
}

std::vector<std::shared_ptr<Session>> SessionManager::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<Session>> sessions;
  for (const auto& [name, session] : sessions_) sessions.push_back(session);
  return sessions;
}

std::vector<std::shared_ptr<Session>> SessionManager::Largest(
    size_t most) const {
  using Held = std::pair<int64_t, std::shared_ptr<Session>>;
  std::vector<Held> held;  // as of now: it may change while they are compared
  for (auto& session : List()) {
    const int64_t bytes = session->memory()->used_bytes();
    held.emplace_back(bytes, std::move(session));
  }
  const size_t count = std::min(held.size(), most);
  std::ranges::partial_sort(held, held.begin() + count, std::ranges::greater(),
                            &Held::first);
  std::vector<std::shared_ptr<Session>> largest;
  for (size_t i = 0; i < count; ++i) largest.push_back(held[i].second);
  return largest;
}

int64_t SessionManager::session_count() const {
  absl::MutexLock lock(&mutex_);
  return std::ssize(sessions_);
}

int64_t SessionManager::tensor_count() const {
  absl::MutexLock lock(&mutex_);
  int64_t count = 0;
  for (const auto& [name, session] : sessions_) {
    count += session->tensor_count();
  }
  return count;
}

void SessionManager::Forget(const Session& session) {
  const auto holder = holders_.find(session.options().holder);
  if (--holder->second == 0) holders_.erase(holder);
  const auto tenant = tenants_.find(session.options().tenant);
  if (--tenant->second == 0) tenants_.erase(tenant);
}

void SessionManager::CloseSessions() {
  // By the monotonic clock, as leases are.
  auto reaped = Session::Clock::now();
  for (bool ends = false; !ends;) {
    std::vector<Leaving> leaving;
    {
      std::unique_lock lock(closing_mutex_);
      closes_.wait_until(lock, reaped + kReapInterval,
                         [this] { return closing_ || !leaving_.empty(); });
      leaving.swap(leaving_);
      ends = closing_;
    }
    for (Leaving& one : leaving) {
      one.session->Close();
      one.session.reset();
      one.closed();
    }
    if (Session::Clock::now() < reaped + kReapInterval) continue;
    CloseExpired();
    reaped = Session::Clock::now();
  }
}

void SessionManager::CloseExpired() {
  std::vector<std::shared_ptr<Session>> expired;
  {
    absl::MutexLock lock(&mutex_);
    const auto now = Session::Clock::now();
    std::erase_if(sessions_, [&](const auto& entry) {
      if (!entry.second->IsExpired(now)) return false;
      expired.push_back(entry.second);
      return true;
    });
    for (const auto& session : expired) Forget(*session);
  }
  for (const auto& session : expired) {
    SayEnded(*session);
    session->Close();
    on_expired_(*session);
  }
}

}  // namespace tensord::server
