// Who asks.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensord::server {

enum class Role {
  kUser,
  kOperator,  // may also do what concerns other tenants
};

/// Somebody that the server knows, by a certificate, a token or a JWT. What
/// belongs to a tenant is seen by that tenant alone.
///
/// Threads  safe for concurrent use.
class Identity {
 public:
  /// Everybody, where nothing says who somebody is.
  Identity() = default;
  Identity(std::string tenant, Role role, std::string name,
           absl::Time expires = absl::InfiniteFuture())
      : tenant_(std::move(tenant)),
        role_(role),
        name_(std::move(name)),
        expires_(expires) {}
  /// `first`, as long as `second` is valid, too.
  Identity(const std::shared_ptr<const Identity>& first,
           std::shared_ptr<const Identity> second)
      : tenant_(first->tenant()),
        role_(first->role()),
        name_(first->name()),
        first_(first),
        second_(std::move(second)) {}

  const std::string& tenant() const { return tenant_; }
  Role role() const { return role_; }
  /// For the log: "token 1a2b3c4d", "certificate worker-1", "jwt alice" or
  /// "anybody".
  const std::string& name() const { return name_; }

  /// Whether what proved it still does.
  bool IsValid() const {
    return !is_revoked_.load(std::memory_order_relaxed) &&
           (expires_ == absl::InfiniteFuture() || absl::Now() < expires_) &&
           (first_ == nullptr || (first_->IsValid() && second_->IsValid()));
  }
  void Revoke() const { is_revoked_.store(true, std::memory_order_relaxed); }

 private:
  const std::string tenant_ = "default";
  const Role role_ = Role::kOperator;
  const std::string name_ = "anybody";
  const absl::Time expires_ = absl::InfiniteFuture();
  const std::shared_ptr<const Identity> first_, second_;  // or both null
  mutable std::atomic<bool> is_revoked_ = false;
};

}  // namespace tensord::server
