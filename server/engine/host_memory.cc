#include "server/engine/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/memory/host_resource.h"
#include "server/engine/control_groups.h"
#include "server/engine/quota.h"

namespace tensord::server {

int64_t HostMemoryBytes(const std::string& root) {
  const int64_t bytes = core::HostMemoryBytes();
  const auto limit = LeastLimit(
      root, "memory",
      [](const std::string& folder, int version) -> std::optional<double> {
        std::ifstream file(
            folder + (version == 2 ? "/memory.max" : "/memory.limit_in_bytes"));
        double limit = 0;  // "max" is none
        if (!(file >> limit) || limit <= 0) return std::nullopt;
        return limit;
      });
  return limit && *limit < static_cast<double>(bytes)
             ? static_cast<int64_t>(*limit)
             : bytes;
}

absl::Status CheckHostMemory(const std::string& root) {
  // What the process itself takes, and a little to work with.
  constexpr int64_t kLeast = int64_t{128} << 20;
  const int64_t bytes = HostMemoryBytes(root);
  if (bytes >= kLeast) return absl::OkStatus();
  return core::Error(
      absl::StatusCode::kUnavailable, "HOST_MEMORY_TOO_SMALL",
      absl::StrCat("the machine or the control group gives the process ", bytes,
                   " bytes of memory, wanted at least ", kLeast));
}

int64_t DefaultMemoryLimit(int64_t memory_bytes, bool is_host_memory) {
  constexpr int64_t kRoom = int64_t{1} << 30;
  const int64_t room = is_host_memory ? std::min(kRoom, memory_bytes / 2) : 0;
  return memory_bytes - std::max(memory_bytes / 4, room);
}

absl::string_view NameOf(HostUse use) {
  switch (use) {
    case HostUse::kTensors: return "tensors";
    case HostUse::kPlans: return "plans";
    case HostUse::kPrograms: return "programs";
    case HostUse::kRequests: return "requests";
    case HostUse::kSnapshots: return "snapshots";
    case HostUse::kAnswers: return "answers";
    case HostUse::kArriving: return "arriving";
  }
  __builtin_unreachable();
}

std::shared_ptr<HostLedger> HostLedger::OfTenant(
    const std::string& name, std::shared_ptr<HostLedger> server) {
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  HostLimits limits;
  limits.fill({kUnlimited, kUnlimited});
  auto made = std::make_shared<HostLedger>("tenant", limits, kUnlimited,
                                           std::move(server));
  made->tenant_ = name;
  return made;
}

absl::Status HostLedger::Take(HostUse use, int64_t bytes, int64_t count) {
  Add(use, {count, bytes});
  absl::Status taken = Check(use, bytes, count);
  if (!taken.ok()) Return(use, {count, bytes});
  return taken;
}

void HostLedger::Add(HostUse use, HostAmount amount) {
  Used& used = used_[static_cast<int>(use)];
  if (amount.count != 0) used.count += amount.count;
  if (amount.bytes != 0) used.bytes += amount.bytes;
  if (server_ != nullptr) server_->Add(use, amount);
}

absl::Status HostLedger::Check(HostUse use, int64_t bytes,
                               int64_t count) const {
  if (!tenant_.empty()) return CheckQuotas(use, bytes, count);
  const HostAmount now = used(use);
  const HostAmount& limit = limits_[static_cast<int>(use)];
  if (now.count > limit.count) {
    return core::ResourceExhausted(
        absl::StrCat("TOO_MANY_", absl::AsciiStrToUpper(NameOf(use))), "the ",
        owner_, " has ", now.count - count, " ", NameOf(use), ", its limit is ",
        limit.count, "; end some, or retry later");
  }
  const int64_t all_bytes = used_bytes();
  if (now.bytes > limit.bytes || all_bytes > byte_limit()) {
    const bool is_own = now.bytes > limit.bytes;
    return core::ResourceExhausted(
        "HOST_MEMORY_LIMIT", NameOf(use), " need ", bytes,
        " bytes of host memory, ", is_own ? NameOf(use) : "all", " of the ",
        owner_, " have ", (is_own ? now.bytes : all_bytes) - bytes,
        ", the limit is ", is_own ? limit.bytes : byte_limit(),
        "; end some, or retry later");
  }
  return server_ == nullptr ? absl::OkStatus()
                            : server_->Check(use, bytes, count);
}

absl::Status HostLedger::CheckQuotas(HostUse use, int64_t bytes,
                                     int64_t count) const {
  const bool adds_tensors = use == HostUse::kTensors && count > 0;
  const int64_t tensors = used(HostUse::kTensors).count;
  if (adds_tensors && tensors > tensor_limit_) {
    return QuotaExceeded({.tenant = tenant_,
                          .quota = "tensors",
                          .limit = tensor_limit_,
                          .used = tensors - count,
                          .retry_after = {}},
                         count);
  }
  const int64_t all_bytes = bytes > 0 ? used_bytes() : 0;
  if (all_bytes > byte_limit_) {
    return QuotaExceeded({.tenant = tenant_,
                          .quota = "host_bytes",
                          .limit = byte_limit_,
                          .used = all_bytes - bytes,
                          .retry_after = {}},
                         bytes);
  }
  return server_ == nullptr ? absl::OkStatus()
                            : server_->Check(use, bytes, count);
}

void HostLedger::Return(HostUse use, HostAmount amount) {
  Used& used = used_[static_cast<int>(use)];
  if (amount.count != 0) used.count -= amount.count;
  if (amount.bytes != 0) used.bytes -= amount.bytes;
  if (server_ != nullptr) server_->Return(use, amount);
}

HostAmount HostLedger::used(HostUse use) const {
  const Used& used = used_[static_cast<int>(use)];
  return {used.count, used.bytes};
}

int64_t HostLedger::used_bytes() const {
  int64_t all = 0;
  for (int i = 0; i < kHostUseCount; ++i) {
    if (static_cast<HostUse>(i) != HostUse::kArriving) all += used_[i].bytes;
  }
  return all;
}

absl::Status HostHold::Take(std::shared_ptr<HostLedger> ledger, HostUse use,
                            int64_t bytes, int64_t count) {
  TENSORD_RETURN_IF_ERROR(ledger->Take(use, bytes, count));
  *this = HostHold(std::move(ledger), use, {count, bytes});
  return absl::OkStatus();
}

void HostHold::TakeAnyway(std::shared_ptr<HostLedger> ledger, HostUse use,
                          int64_t bytes) {
  ledger->Add(use, {0, bytes});
  *this = HostHold(std::move(ledger), use, {0, bytes});
}

void HostHold::Add(int64_t bytes) {
  if (ledger_ == nullptr) return;
  ledger_->Add(use_, {0, bytes});
  amount_.bytes += bytes;
}

absl::Status HostHold::Grow(int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(ledger_->Take(use_, bytes, 0));
  amount_.bytes += bytes;
  return absl::OkStatus();
}

}  // namespace tensord::server
