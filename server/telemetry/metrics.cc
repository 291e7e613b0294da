#include "server/telemetry/metrics.h"

#include <algorithm>
#include <functional>

namespace tensord::server {
namespace {

/// From an empty call to a long computation.
prometheus::Histogram::BucketBoundaries SecondsBuckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
          0.25,   0.5,     1,      2.5,   5,      10,    30,   60,    300};
}

/// From a small operation's least phase to a long one.
prometheus::Histogram::BucketBoundaries PhaseBuckets() {
  return {0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01,
          0.03,    0.1,     0.3,    1,      3,     10,    60};
}

constexpr const char* kPhaseNames[kPhaseCount] = {"plan", "queue", "kernel",
                                                  "transfer"};

// Reasons are words of the code, and not many; should one ever have something
// else in it, it is not counted by itself.
constexpr size_t kMostReasons = 300;

template <typename Build>
auto& Named(Build build, const char* name, const char* help,
            prometheus::Registry& registry) {
  return build.Name(name).Help(help).Register(registry);
}

/// What `map` has of `key`, or what `make` makes.
template <typename Value, typename Make>
Value& FindOrMake(
    std::map<std::string, std::unique_ptr<Value>, std::less<>>& map,
    absl::string_view key, const Make& make) {
  auto found = map.find(key);
  if (found == map.end()) found = map.emplace(key, make()).first;
  return *found->second;
}

}  // namespace

absl::string_view NameOf(Phase phase) {
  return kPhaseNames[static_cast<int>(phase)];
}

void Outcomes::Count(absl::StatusCode code) {
  std::atomic<prometheus::Counter*>& counter =
      counters_[static_cast<size_t>(code)];
  prometheus::Counter* known = counter.load(std::memory_order_acquire);
  if (known == nullptr) {
    prometheus::Labels labels = labels_;
    labels.emplace("code", absl::StatusCodeToString(code));
    known = &family_.Add(labels);  // the same one for the same labels
    counter.store(known, std::memory_order_release);
  }
  known->Increment();
}

void Phases::Observe(const PhaseTimes& times) {
  for (int i = 0; i < kPhaseCount; ++i) {
    if (!times[i]) continue;
    prometheus::Histogram* known = phases_[i].load(std::memory_order_acquire);
    if (known == nullptr) {
      known =
          &family_.Add({{"operation", operation_}, {"phase", kPhaseNames[i]}},
                       PhaseBuckets());  // the same one for the same labels
      phases_[i].store(known, std::memory_order_release);
    }
    known->Observe(absl::ToDoubleSeconds(*times[i]));
  }
}

Metrics::Metrics()
    : requests_(Named(prometheus::BuildCounter(), "tensord_requests_total",
                      "Calls that have ended, by rpc and status code.",
                      registry_)),
      request_seconds_(
          Named(prometheus::BuildHistogram(), "tensord_request_seconds",
                "How long calls took, in seconds, by rpc.", registry_)),
      operations_(Named(prometheus::BuildCounter(), "tensord_operations_total",
                        "Operations that have ended, those of streams "
                        "included, by operation and status code.",
                        registry_)),
      operation_seconds_(
          Named(prometheus::BuildHistogram(), "tensord_operation_seconds",
                "Where the time of operations, uploads and downloads went, in "
                "seconds, by operation and phase; the phases together are all "
                "of it.",
                registry_)),
      rejected_(Named(prometheus::BuildCounter(), "tensord_rejected_total",
                      "Calls, and operations of streams, that ended with an "
                      "error, by its reason.",
                      registry_)),
      reloads_(Named(prometheus::BuildCounter(), "tensord_reloads_total",
                     "Times that changed files were read again, by what they "
                     "hold and whether that was taken or the old one kept.",
                     registry_)),
      refused_connections_(
          Named(prometheus::BuildCounter(), "tensord_connections_refused_total",
                "Connections that were closed at once as there were too many, "
                "in total or of their peer.",
                registry_)),
      shared_memory_refusals_(Named(
          prometheus::BuildCounter(), "tensord_shared_memory_refusals_total",
          "What clients with shared memory asked for and were refused, by "
          "reason.",
          registry_)),
      spans_(Named(prometheus::BuildCounter(), "tensord_trace_spans_total",
                   "Spans of traces that were sent to the collector, refused "
                   "by it, or dropped, as too many waited.",
                   registry_)),
      tenant_requests_(Named(prometheus::BuildCounter(),
                             "tensord_tenant_requests_total",
                             "Calls that have ended, by tenant.", registry_)),
      tenant_device_seconds_(Named(
          prometheus::BuildCounter(), "tensord_tenant_device_seconds_total",
          "Seconds of devices that operations took, by tenant.", registry_)),
      in_flight_(Named(prometheus::BuildGauge(), "tensord_requests_in_flight",
                       "Calls that have begun and not ended.", registry_)
                     .Add({})),
      connections_(Named(prometheus::BuildGauge(), "tensord_connections",
                         "Connections to gRPC, as of some seconds ago.",
                         registry_)
                       .Add({})),
      shared_memory_connections_(
          Named(prometheus::BuildGauge(), "tensord_shared_memory_connections",
                "Connections of clients that bring shared memory.", registry_)
              .Add({})),
      shared_memory_regions_(
          Named(prometheus::BuildGauge(), "tensord_shared_memory_regions",
                "Regions of clients that are mapped.", registry_)
              .Add({})),
      shared_memory_bytes_(Named(prometheus::BuildGauge(),
                                 "tensord_shared_memory_bytes",
                                 "Bytes of those regions.", registry_)
                               .Add({})),
      expired_sessions_(Named(prometheus::BuildCounter(),
                              "tensord_sessions_expired_total",
                              "Sessions whose lease has run out.", registry_)
                            .Add({})),
      wasted_device_seconds_(
          Named(prometheus::BuildCounter(),
                "tensord_wasted_device_seconds_total",
                "Seconds of devices that went to operations which failed, or "
                "were cancelled meanwhile.",
                registry_)
              .Add({})),
      uploaded_bytes_(Named(prometheus::BuildCounter(),
                            "tensord_upload_bytes_total",
                            "Bytes of tensors received by uploads.", registry_)
                          .Add({})),
      downloaded_bytes_(Named(prometheus::BuildCounter(),
                              "tensord_download_bytes_total",
                              "Bytes of tensors sent by downloads.", registry_)
                            .Add({})),
      uploads_(operation_seconds_, "upload"),
      downloads_(operation_seconds_, "download"),
      other_tenants_(NewTenant("other")) {
  for (const char* result : {"sent", "refused", "dropped"}) {
    CountSpans(result, 0);  // what is asked for is there from the start
  }
  SetTenants({});
}

void Metrics::CountReload(absl::string_view what, bool is_taken) {
  ReloadsOf(what, is_taken).Increment();
}

void Metrics::ExpectReloads(absl::string_view what) {
  for (const bool is_taken : {true, false}) ReloadsOf(what, is_taken);
}

prometheus::Counter& Metrics::ReloadsOf(absl::string_view what, bool is_taken) {
  return reloads_.Add(
      {{"what", std::string(what)}, {"result", is_taken ? "taken" : "kept"}});
}

void Metrics::RefuseConnection(absl::string_view limit) {
  refused_connections_.Add({{"limit", std::string(limit)}}).Increment();
}

void Metrics::RefuseSharedMemory(absl::string_view reason) {
  shared_memory_refusals_.Add({{"reason", std::string(reason)}}).Increment();
}

void Metrics::ShowSharedMemory(int64_t connections, int64_t regions,
                               int64_t bytes) {
  shared_memory_connections_.Set(static_cast<double>(connections));
  shared_memory_regions_.Set(static_cast<double>(regions));
  shared_memory_bytes_.Set(static_cast<double>(bytes));
}

void Metrics::CountSpans(absl::string_view result, int64_t count) {
  spans_.Add({{"result", std::string(result)}})
      .Increment(static_cast<double>(count));
}

void Metrics::Reject(absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  auto found = reasons_.find(reason);
  if (found == reasons_.end()) {
    const std::string name(reasons_.size() < kMostReasons ? reason : "OTHER");
    found = reasons_.emplace(name, &rejected_.Add({{"reason", name}})).first;
  }
  found->second->Increment();
}

Metrics::Tenant Metrics::NewTenant(const std::string& name) {
  return {&tenant_requests_.Add({{"tenant", name}}),
          &tenant_device_seconds_.Add({{"tenant", name}})};
}

void Metrics::SetTenants(const std::vector<std::string>& names) {
  absl::flat_hash_map<std::string, Tenant> tenants;
  absl::MutexLock lock(&tenants_mutex_);
  const auto keep = [&](const std::string& name) {
    const auto before = tenants_.find(name);
    tenants.emplace(
        name, before == tenants_.end() ? NewTenant(name) : before->second);
  };
  keep("default");
  for (const std::string& name : names) keep(name);
  for (const auto& [name, tenant] : tenants_) {
    if (tenants.contains(name)) continue;
    tenant_requests_.Remove(tenant.requests);
    tenant_device_seconds_.Remove(tenant.device_seconds);
  }
  tenants_ = std::move(tenants);
}

const Metrics::Tenant& Metrics::OfTenant(absl::string_view name) const {
  const auto found = tenants_.find(name);
  return found == tenants_.end() ? other_tenants_ : found->second;
}

void Metrics::CountRequest(absl::string_view tenant) {
  absl::ReaderMutexLock lock(&tenants_mutex_);
  OfTenant(tenant).requests->Increment();
}

void Metrics::CountDeviceTime(absl::string_view tenant, absl::Duration time,
                              bool is_wasted) {
  const double seconds = absl::ToDoubleSeconds(time);
  if (is_wasted) wasted_device_seconds_.Increment(seconds);
  absl::ReaderMutexLock lock(&tenants_mutex_);
  OfTenant(tenant).device_seconds->Increment(seconds);
}

std::vector<Metrics::TenantTotals> Metrics::tenants() const {
  std::vector<TenantTotals> totals;
  const auto add = [&](const std::string& name, const Tenant& tenant) {
    totals.push_back({name, static_cast<int64_t>(tenant.requests->Value()),
                      tenant.device_seconds->Value()});
  };
  {
    absl::ReaderMutexLock lock(&tenants_mutex_);
    for (const auto& [name, tenant] : tenants_) add(name, tenant);
  }
  std::ranges::sort(totals, {}, &TenantTotals::name);
  add("other", other_tenants_);
  return totals;
}

Metrics::Rpc::Rpc(Metrics& metrics, const std::string& name)
    : in_flight_(metrics.in_flight_),
      outcomes_(metrics.requests_, {{"rpc", name}}),
      seconds_(
          metrics.request_seconds_.Add({{"rpc", name}}, SecondsBuckets())) {}

void Metrics::Rpc::Complete(absl::StatusCode code, absl::Duration took) {
  in_flight_.Decrement();
  outcomes_.Count(code);
  seconds_.Observe(absl::ToDoubleSeconds(took));
}

Metrics::Rpc& Metrics::OfRpc(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  return FindOrMake(rpcs_, name, [&] {
    return std::make_unique<Rpc>(*this, std::string(name));
  });
}

Metrics::Operation::Operation(Metrics& metrics, std::string name)
    : name_(std::move(name)),
      outcomes_(metrics.operations_, {{"operation", name_}}),
      phases_(metrics.operation_seconds_, name_) {}

Metrics::Operation& Metrics::OfOperation(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  return FindOrMake(known_operations_, name, [&] {
    return std::make_unique<Operation>(*this, std::string(name));
  });
}

std::map<std::pair<std::string, std::string>, int64_t> Metrics::operations()
    const {
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const prometheus::MetricFamily& family : operations_.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::pair<std::string, std::string> key;
      for (const auto& label : metric.label) {
        (label.name == "code" ? key.second : key.first) = label.value;
      }
      counts[key] = static_cast<int64_t>(metric.counter.value);
    }
  }
  return counts;
}

}  // namespace tensord::server
