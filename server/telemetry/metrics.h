// What the server has done since its start, under the names by which it is
// scraped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace tensord::server {

/// How often something ended with each status code.
///
/// Threads  safe for concurrent use.
class Outcomes {
 public:
  /// Counts in `family`, under `labels` and the label `code`.
  Outcomes(prometheus::Family<prometheus::Counter>& family,
           prometheus::Labels labels)
      : family_(family), labels_(std::move(labels)) {}

  void Count(absl::StatusCode code);

 private:
  static constexpr size_t kCodes = 17;

  prometheus::Family<prometheus::Counter>& family_;
  const prometheus::Labels labels_;
  std::array<std::atomic<prometheus::Counter*>, kCodes> counters_ = {};
};

/// Where an operation's time goes. Together they are all of it.
enum class Phase {
  kPlan,      // until it is in the device's queue: read, checked, planned
  kQueue,     // until the device begins with it
  kKernel,    // of the device
  kTransfer,  // copies in and out, and the response; all of an upload
};
inline constexpr int kPhaseCount = 4;
/// "plan", "queue", "kernel" or "transfer".
absl::string_view NameOf(Phase phase);

/// (Phase); nothing: it was not reached.
using PhaseTimes = std::array<std::optional<absl::Duration>, kPhaseCount>;

/// How long the phases of operations of one kind took.
///
/// Threads  safe for concurrent use.
class Phases {
 public:
  /// Counts in `family`, under the labels `operation` and `phase`.
  Phases(prometheus::Family<prometheus::Histogram>& family,
         std::string operation)
      : family_(family), operation_(std::move(operation)) {}

  void Observe(const PhaseTimes& times);

 private:
  prometheus::Family<prometheus::Histogram>& family_;
  const std::string operation_;
  std::array<std::atomic<prometheus::Histogram*>, kPhaseCount> phases_ = {};
};

/// Threads  safe for concurrent use.
class Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;

  /// A call has begun; Rpc::Complete() follows.
  void BeginCall() { in_flight_.Increment(); }
  /// Files that say who asks, of kind `what`, were read again.
  void CountReload(absl::string_view what, bool is_taken);
  /// Such files will be read again: their counts are there, at 0, so that the
  /// first change of one is seen as such.
  void ExpectReloads(absl::string_view what);
  /// A connection was not taken: the limit in `total`, or of its `peer`.
  void RefuseConnection(absl::string_view limit);
  /// What a client with shared memory asked for was refused.
  void RefuseSharedMemory(absl::string_view reason);
  /// What there is of it now.
  void ShowSharedMemory(int64_t connections, int64_t regions, int64_t bytes);
  /// Connections to gRPC that live.
  prometheus::Gauge& connections() { return connections_; }
  /// Spans of traces came to an end: "sent" to the collector, "refused" by it,
  /// or "dropped", as too many waited for it.
  void CountSpans(absl::string_view result, int64_t count);
  /// A call or operation ends with an error of that reason.
  void Reject(absl::string_view reason);

  /// The calls of one rpc.
  ///
  /// Lifetime  that of the Metrics.
  class Rpc {
   public:
    Rpc(Metrics& metrics, const std::string& name);
    void Complete(absl::StatusCode code, absl::Duration took);

   private:
    prometheus::Gauge& in_flight_;
    Outcomes outcomes_;
    prometheus::Histogram& seconds_;
  };
  /// `name` as in the contract, e.g. "Contract".
  Rpc& OfRpc(absl::string_view name);

  /// The operations of one kind.
  ///
  /// Lifetime  that of the Metrics.
  class Operation {
   public:
    Operation(Metrics& metrics, std::string name);
    const std::string& name() const { return name_; }
    void Complete(absl::StatusCode code, const PhaseTimes& times) {
      outcomes_.Count(code);
      phases_.Observe(times);
    }

   private:
    const std::string name_;
    Outcomes outcomes_;
    Phases phases_;
  };
  /// E.g. of "contract".
  Operation& OfOperation(absl::string_view name);

  Phases& uploads() { return uploads_; }
  Phases& downloads() { return downloads_; }

  /// Which tenants are counted by themselves beside "default"; all others are
  /// counted together. What was counted of one that is no more is forgotten.
  void SetTenants(const std::vector<std::string>& names);
  /// A call of that tenant has ended; an operation has used a device, for
  /// nothing if it failed.
  void CountRequest(absl::string_view tenant);
  void CountDeviceTime(absl::string_view tenant, absl::Duration time,
                       bool is_wasted);

  struct TenantTotals {
    std::string name;
    int64_t requests;
    double device_seconds;
  };
  /// By name, "other" last.
  std::vector<TenantTotals> tenants() const;

  prometheus::Counter& expired_sessions() { return expired_sessions_; }

  prometheus::Counter& uploaded_bytes() { return uploaded_bytes_; }
  prometheus::Counter& downloaded_bytes() { return downloaded_bytes_; }

  /// Count by operation and code.
  std::map<std::pair<std::string, std::string>, int64_t> operations() const;

  prometheus::Registry& registry() { return registry_; }

 private:
  struct Tenant {
    prometheus::Counter* requests;
    prometheus::Counter* device_seconds;
  };

  prometheus::Counter& ReloadsOf(absl::string_view what, bool is_taken);
  Tenant NewTenant(const std::string& name);
  /// That of all others together where `name` is none.
  const Tenant& OfTenant(absl::string_view name) const
      ABSL_SHARED_LOCKS_REQUIRED(tenants_mutex_);

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& request_seconds_;
  prometheus::Family<prometheus::Counter>& operations_;
  prometheus::Family<prometheus::Histogram>& operation_seconds_;
  prometheus::Family<prometheus::Counter>& rejected_;
  prometheus::Family<prometheus::Counter>& reloads_;
  prometheus::Family<prometheus::Counter>& refused_connections_;
  prometheus::Family<prometheus::Counter>& shared_memory_refusals_;
  prometheus::Family<prometheus::Counter>& spans_;
  prometheus::Family<prometheus::Counter>& tenant_requests_;
  prometheus::Family<prometheus::Counter>& tenant_device_seconds_;
  prometheus::Gauge& in_flight_;
  prometheus::Gauge& connections_;
  prometheus::Gauge& shared_memory_connections_;
  prometheus::Gauge& shared_memory_regions_;
  prometheus::Gauge& shared_memory_bytes_;
  prometheus::Counter& expired_sessions_;
  prometheus::Counter& wasted_device_seconds_;
  prometheus::Counter& uploaded_bytes_;
  prometheus::Counter& downloaded_bytes_;
  Phases uploads_;
  Phases downloads_;
  const Tenant other_tenants_;
  absl::Mutex mutex_;
  std::map<std::string, std::unique_ptr<Rpc>, std::less<>> rpcs_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<Operation>, std::less<>>
      known_operations_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, prometheus::Counter*, std::less<>> reasons_
      ABSL_GUARDED_BY(mutex_);
  mutable absl::Mutex tenants_mutex_;
  absl::flat_hash_map<std::string, Tenant> tenants_
      ABSL_GUARDED_BY(tenants_mutex_);
};

}  // namespace tensord::server
