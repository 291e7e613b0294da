#include "server/engine/quota.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

constexpr absl::string_view kPayload = "tensord/quota";

}  // namespace

absl::Status QuotaExceeded(const UsedQuota& quota, int64_t asked,
                           absl::string_view reason) {
  const bool helps = quota.retry_after.has_value();
  absl::Status status = core::ResourceExhausted(
      reason, "tenant ", quota.tenant, ": asked for ", asked, " more of ",
      quota.quota, ", ", quota.used, " are in use, its limit is ", quota.limit,
      helps ? absl::StrCat("; retry in ",
                           absl::FormatDuration(*quota.retry_after))
            : "; give some back, and retry");
  const int64_t retry_ns =
      helps ? absl::ToInt64Nanoseconds(*quota.retry_after) : -1;
  status.SetPayload(kPayload,
                    absl::Cord(absl::StrCat(quota.quota, " ", quota.limit, " ",
                                            quota.used, " ", retry_ns)));
  return status;
}

std::optional<UsedQuota> QuotaOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(*payload), ' ');
  UsedQuota quota{.tenant = "", .quota = parts[0], .retry_after = {}};
  int64_t retry_ns = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &quota.limit) ||
      !absl::SimpleAtoi(parts[2], &quota.used) ||
      !absl::SimpleAtoi(parts[3], &retry_ns)) {
    return std::nullopt;
  }
  if (retry_ns >= 0) quota.retry_after = absl::Nanoseconds(retry_ns);
  return quota;
}

}  // namespace tensord::server
