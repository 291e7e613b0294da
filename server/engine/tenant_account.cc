#include "server/engine/tenant_account.h"

namespace tensord::server {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

}  // namespace

TenantAccount::TenantAccount(std::string name,
                             std::shared_ptr<HostLedger> server)
    : name_(std::move(name)),
      host_memory_(HostLedger::OfTenant(name_, std::move(server))),
      searches_(name_) {}

void TenantAccount::Apply(const TenantQuotas& quotas, OnDevice& on) {
  on.memory.SetQuota({.limit_bytes = quotas.device_bytes.value_or(kUnlimited),
                      .reserved_bytes = quotas.reserved_bytes.value_or(0)});
  on.staging.SetQuota(
      {.limit_bytes = quotas.staging_bytes.value_or(kUnlimited)});
  on.regions.SetQuota(
      {.limit_bytes = quotas.staging_bytes.value_or(kUnlimited)});
  on.queue->queued_limit = quotas.queued.value_or(kUnlimited);
  on.queue->running_limit = quotas.running.value_or(kUnlimited);
}

void TenantAccount::SetQuotas(const TenantQuotas& quotas) {
  absl::MutexLock lock(&mutex_);
  quotas_ = quotas;
  host_memory_->SetQuotas(quotas.tensors.value_or(kUnlimited),
                          quotas.host_bytes.value_or(kUnlimited));
  searches_.SetLimit(quotas.search_seconds.value_or(kUnlimited));
  for (const auto& [device, on] : devices_) Apply(quotas, *on);
}

TenantAccount::OnDevice& TenantAccount::On(Device& device) {
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<OnDevice>& on = devices_[&device];
  if (on == nullptr) {
    on.reset(new OnDevice{.memory = {device.shared_memory(), name_},
                          .staging = {device.shared_staging(), name_},
                          .regions = {device.shared_regions(), name_},
                          .queue = std::make_shared<QueueShare>(name_)});
    Apply(quotas_, *on);
  }
  return *on;
}

std::vector<TenantAccount::Use> TenantAccount::uses(absl::Time now) const {
  std::vector<Use> uses;
  const auto add = [&](absl::string_view quota, const std::string& device,
                       double used, const std::optional<int64_t>& limit) {
    if (limit) uses.push_back({quota, device, used, *limit});
  };
  absl::MutexLock lock(&mutex_);
  add("host_bytes", "", host_memory_->used_bytes(), quotas_.host_bytes);
  add("tensors", "", host_memory_->used(HostUse::kTensors).count,
      quotas_.tensors);
  add("search_seconds", "", absl::ToDoubleSeconds(searches_.used(now)),
      quotas_.search_seconds);
  for (const auto& [device, on] : devices_) {
    const std::string& name = device->info().name;
    add("device_bytes", name, on->memory.used_bytes(), quotas_.device_bytes);
    add("reserved_bytes", name, on->memory.used_bytes(),
        quotas_.reserved_bytes);
    add("staging_bytes", name, on->staging.used_bytes(), quotas_.staging_bytes);
    add("queued", name, on->queue->queued, quotas_.queued);
    add("running", name, on->queue->running, quotas_.running);
  }
  return uses;
}

}  // namespace tensord::server
