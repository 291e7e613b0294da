// The file of tenants: whose certificates are whose, who has how much, and who
// does what concerns all.
//
//   [operators]
//   certificates = ["chief"]
//   users = ["root"]
//
//   [tenant.chemistry]
//   certificates = ["worker-1", "spiffe://cluster/chemistry"]
//   operators = ["lead"]
//   users = ["alice", 1001]
//   operator_users = ["bob"]
//   weight = 3
//   priority = 5
//   sessions = 100
//   device_bytes = "40GiB"
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

/// What is one tenant's.
struct TenantShares {
  /// Names of certificates, common names or URIs: of users, and of operators.
  std::vector<std::string> certificates;
  std::vector<std::string> operators;
  /// Users of this machine, whose calls come over Unix sockets: the same.
  std::vector<uid_t> users;
  std::vector<uid_t> operator_users;
  double weight = 1;  // of its share of a device's time
  /// Highest priority of its sessions, and most of them at a time; none: as the
  /// server has it for all.
  std::optional<int> priority;
  std::optional<int64_t> sessions;
  /// The same of memory, of objects and of time; how each is meant says
  /// server/engine/tenant_account.h, under the same name.
  std::optional<int64_t> device_bytes;
  std::optional<int64_t> reserved_bytes;
  std::optional<int64_t> host_bytes;
  std::optional<int64_t> tensors;
  std::optional<int64_t> queued;
  std::optional<int64_t> running;
  std::optional<int64_t> staging_bytes;
  std::optional<int64_t> search_seconds;
};

/// Operators of no tenant in particular: what is theirs is the tenant
/// `default`'s.
struct Operators {
  std::vector<std::string> certificates;
  std::vector<uid_t> users;
};

struct TenantsFile {
  std::map<std::string, TenantShares, std::less<>> tenants;  // by name
  Operators operators;

  /// Whether anybody in it is a user of this machine.
  bool NamesUsers() const;
};

/// What a file's text says. `path` is for messages.
/// Errors  INVALID_ARGUMENT, reason TENANTS_MALFORMED: path, line, what was
///         wanted.
absl::StatusOr<TenantsFile> ParseTenants(const std::string& path,
                                         absl::string_view text);

}  // namespace tensord::server
