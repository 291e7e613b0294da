// What a load has to reach.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/load/statistics.h"

namespace tensord::load {

/// E.g. `p99<10ms`, `errors<1%`, `goodput>=100`, or of one operation of the mix
/// `small:p50<=2ms`.
struct Objective {
  enum class Metric {
    kLatency,     // at `quantile`, in seconds
    kErrors,      // in number
    kErrorShare,  // of what was meant to be sent
    kGoodput,     // calls a second
  };

  std::string text;       // as it was given
  std::string operation;  // ""; of all together
  Metric metric = Metric::kLatency;
  double quantile = 0;    // 0 to 1
  bool is_upper = true;   // `<` rather than `>`
  bool is_strict = true;  // `<` rather than `<=`
  double bound = 0;
};

/// How an objective was met.
struct Judgement {
  /// In the unit of the metric; infinite: the calls at the quantile failed, or
  /// were not sent.
  double got = 0;
  bool met = false;
};

/// Errors  INVALID_ARGUMENT: says what is there and what is wanted.
absl::StatusOr<Objective> ParseObjective(const std::string& text);

/// How `counts`, which are of the operation that is meant, meet an objective.
/// Calls that failed, were not sent or were not waited for count as slower than
/// all others.
Judgement Judge(const Objective& objective, const Counts& counts,
                absl::Duration measured);

/// How long a call may take to count for the goodput: what the most lenient
/// upper bound of a latency says; infinite without one.
absl::Duration GoodWithin(const std::vector<Objective>& objectives,
                          const std::string& operation);

}  // namespace tensord::load
