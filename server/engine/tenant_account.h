// What one tenant uses, and may use.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/engine/engine.h"
#include "server/engine/fair_turns.h"
#include "server/engine/host_memory.h"
#include "server/engine/search_budget.h"
#include "server/engine/shared_memory.h"

namespace tensord::server {

/// Most that a tenant may have; none: as much as all may. Those of memory and
/// queues hold for each device.
struct TenantQuotas {
  std::optional<int64_t> device_bytes;
  std::optional<int64_t> reserved_bytes;  // that others cannot take
  std::optional<int64_t> host_bytes;      // as HostUse has it, of all uses
  std::optional<int64_t> tensors;
  std::optional<int64_t> queued;          // operations that wait
  std::optional<int64_t> running;         // operations at a time
  std::optional<int64_t> staging_bytes;   // and as much of regions
  std::optional<int64_t> search_seconds;  // as SearchBudget has it

  bool operator==(const TenantQuotas&) const = default;
};

/// Between what each session of a tenant has and what all have together.
///
/// Threads   safe for concurrent use.
/// Lifetime  shared by the tenant's sessions and by their memory; devices
///           outlive it.
class TenantAccount {
 public:
  /// What it has of one device.
  struct OnDevice {
    SharedMemory::Share memory;
    SharedMemory::Share staging;
    SharedMemory::Share regions;
    const std::shared_ptr<QueueShare> queue;
  };

  /// `server` counts what all tenants keep in the host's memory; or null.
  TenantAccount(std::string name, std::shared_ptr<HostLedger> server);

  const std::string& name() const { return name_; }
  /// From now on; what it has it keeps.
  void SetQuotas(const TenantQuotas& quotas);

  OnDevice& On(Device& device);
  const std::shared_ptr<HostLedger>& host_memory() const {
    return host_memory_;
  }
  SearchBudget& searches() { return searches_; }

  /// One quota that is set, and what of it is used.
  struct Use {
    absl::string_view quota;
    std::string device;  // "": all
    double used;
    int64_t limit;
  };
  std::vector<Use> uses(absl::Time now) const;

 private:
  static void Apply(const TenantQuotas& quotas, OnDevice& on);

  const std::string name_;
  const std::shared_ptr<HostLedger> host_memory_;
  SearchBudget searches_;
  mutable absl::Mutex mutex_;
  TenantQuotas quotas_ ABSL_GUARDED_BY(mutex_);
  std::map<Device*, std::unique_ptr<OnDevice>> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
