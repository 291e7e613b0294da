#include "server/telemetry/metrics.h"

#include <functional>

namespace tensord::server {
namespace {

/// From an empty call to a long computation.
prometheus::Histogram::BucketBoundaries SecondsBuckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
          0.25,   0.5,     1,      2.5,   5,      10,    30,   60,    300};
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

Metrics::Metrics()
    : requests_(prometheus::BuildCounter()
                    .Name("tensord_requests_total")
                    .Help("Calls that have ended, by rpc and status code.")
                    .Register(registry_)),
      request_seconds_(prometheus::BuildHistogram()
                           .Name("tensord_request_seconds")
                           .Help("How long calls took, by rpc.")
                           .Register(registry_)),
      operations_(prometheus::BuildCounter()
                      .Name("tensord_operations_total")
                      .Help("Operations that have ended, those of streams "
                            "included, by operation and status code.")
                      .Register(registry_)),
      uploaded_bytes_(prometheus::BuildCounter()
                          .Name("tensord_upload_bytes_total")
                          .Help("Bytes of tensors received by uploads.")
                          .Register(registry_)
                          .Add({})),
      downloaded_bytes_(prometheus::BuildCounter()
                            .Name("tensord_download_bytes_total")
                            .Help("Bytes of tensors sent by downloads.")
                            .Register(registry_)
                            .Add({})) {}

Metrics::Rpc::Rpc(Metrics& metrics, const std::string& name)
    : outcomes_(metrics.requests_, {{"rpc", name}}),
      seconds_(
          metrics.request_seconds_.Add({{"rpc", name}}, SecondsBuckets())) {}

void Metrics::Rpc::Complete(absl::StatusCode code, absl::Duration took) {
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
      outcomes_(metrics.operations_, {{"operation", name_}}) {}

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
