// What the server has done since its start, under the names by which it is
// scraped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
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

/// Threads  safe for concurrent use.
class Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;

  /// The calls of one rpc.
  ///
  /// Lifetime  that of the Metrics.
  class Rpc {
   public:
    Rpc(Metrics& metrics, const std::string& name);
    void Complete(absl::StatusCode code, absl::Duration took);

   private:
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
    void Complete(absl::StatusCode code) { outcomes_.Count(code); }

   private:
    const std::string name_;
    Outcomes outcomes_;
  };
  /// E.g. of "contract".
  Operation& OfOperation(absl::string_view name);

  prometheus::Counter& uploaded_bytes() { return uploaded_bytes_; }
  prometheus::Counter& downloaded_bytes() { return downloaded_bytes_; }

  /// Count by operation and code.
  std::map<std::pair<std::string, std::string>, int64_t> operations() const;

  prometheus::Registry& registry() { return registry_; }

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& request_seconds_;
  prometheus::Family<prometheus::Counter>& operations_;
  prometheus::Counter& uploaded_bytes_;
  prometheus::Counter& downloaded_bytes_;
  absl::Mutex mutex_;
  std::map<std::string, std::unique_ptr<Rpc>, std::less<>> rpcs_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<Operation>, std::less<>>
      known_operations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
