// What calls end with that go beyond their tenant's share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord::server {

inline constexpr absl::string_view kTenantQuotaExceeded =
    "TENANT_QUOTA_EXCEEDED";

/// A quota of a tenant that does not hold what was asked for.
struct UsedQuota {
  std::string tenant;
  std::string quota;  // its key in the file of tenants
  int64_t limit = 0;
  int64_t used = 0;
  /// When asking again may help; none: when something was given back.
  std::optional<absl::Duration> retry_after;
};

/// RESOURCE_EXHAUSTED, with all of that. `asked` is how much more was asked
/// for.
absl::Status QuotaExceeded(const UsedQuota& quota, int64_t asked,
                           absl::string_view reason = kTenantQuotaExceeded);

/// What QuotaExceeded() said, but for the tenant; nothing of other statuses.
std::optional<UsedQuota> QuotaOf(const absl::Status& status);

}  // namespace tensord::server
