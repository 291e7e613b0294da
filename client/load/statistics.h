// What came of calls.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load/histogram.h"

namespace tensord::load {

/// When a call was meant to be sent, was sent and had ended: from the beginning
/// of what is measured, so that they are negative while the load warms up.
struct CallTimes {
  absl::Duration intended;
  absl::Duration sent;
  absl::Duration ended;

  /// As someone sees it who asks at the intended time, whatever kept the call
  /// from being sent.
  absl::Duration latency() const { return ended - intended; }
};

/// What a call came to.
struct CallOutcome {
  absl::Status status;
  // What the server says of an operation.
  bool has_report = false;
  absl::Duration queued;
  absl::Duration executed;
  int64_t transferred_bytes = 0;  // of an upload or download
};

struct ErrorCount {
  int64_t count = 0;
  std::string example;  // the first message
};

/// Code and reason, e.g. `RESOURCE_EXHAUSTED` and `QUEUE_FULL`.
using ErrorKey = std::pair<std::string, std::string>;

/// Invariant  sent == ok + failed + those not waited for.
struct Counts {
  int64_t sent = 0;
  int64_t ok = 0;
  int64_t failed = 0;
  int64_t not_sent = 0;  // too many were under way already
  int64_t in_time = 0;   // ok, and ended while it was measured
  int64_t good = 0;      // of those: fast enough
  int64_t transferred_bytes = 0;
  Histogram latency;   // of those that are ok
  Histogram lateness;  // from the intended time to when it was sent; of all
  Histogram queued;    // on the server
  Histogram executed;  // on the device
  std::map<ErrorKey, ErrorCount> errors;

  int64_t intended() const { return sent + not_sent; }
  int64_t error_count() const { return failed + not_sent; }
  int64_t unfinished() const { return sent - ok - failed; }

  void Add(const Counts& other);
};

/// What happened from one look at the statistics to the next.
struct Interval {
  int64_t sent = 0;
  int64_t ok = 0;
  int64_t failed = 0;
  int64_t not_sent = 0;
  int64_t under_way = 0;  // at its end
  Histogram latency;
};

/// Takes down calls. Those that were meant to be sent while the load warmed up
/// are in intervals only, but for those that ended while it was measured: they
/// count for rates.
///
/// Threads  safe for concurrent use.
class Statistics {
 public:
  /// Measures for as long as `measured`. `good_within` has the latency of good
  /// calls, one for each operation.
  Statistics(absl::Duration measured, std::vector<absl::Duration> good_within)
      : good_within_(std::move(good_within)),
        counts_(good_within_.size()),
        measured_(measured) {}

  void NoteSent(int operation, absl::Duration intended);
  void NoteNotSent(int operation, absl::Duration intended);
  /// Requires  it was noted as sent.
  void NoteEnded(int operation, const CallTimes& times,
                 const CallOutcome& outcome);
  /// Measures until `measured` only.
  void CutShort(absl::Duration measured);

  /// What happened since the last call of this.
  Interval TakeInterval();

  /// By operation, as far as they are now.
  std::vector<Counts> counts() const;

 private:
  const std::vector<absl::Duration> good_within_;  // (operation)
  mutable absl::Mutex mutex_;
  std::vector<Counts> counts_ ABSL_GUARDED_BY(mutex_);  // (operation)
  Interval interval_ ABSL_GUARDED_BY(mutex_);
  int64_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration measured_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::load
