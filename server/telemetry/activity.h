// What became of calls, for those who want to know of each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/trace_context.h"

namespace tensord::server {

/// A call, or an operation of a stream, that has ended.
struct Activity {
  TraceContext trace;
  bool is_of_stream = false;
  std::string rpc;        // "Contract"
  std::string operation;  // "contract"; "": it is none
  std::string kernel;     // "": none ran
  std::string device;     // of the session; "": there is none
  std::string tenant;
  uint64_t session = 0;  // its number; 0: none
  std::string request_id;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string reason;  // of the error
  absl::Time begun;
  absl::Duration took;
  PhaseTimes phases;  // one after the other
};

/// How many spans of a trace it is: its own and one of each phase.
int64_t SpanCount(const Activity& activity);

/// Takes activities until they are fetched, never waiting for that.
///
/// Threads  safe for concurrent use.
class ActivityQueue {
 public:
  explicit ActivityQueue(size_t limit) : limit_(limit) {}

  /// False, and one more is dropped: as many as the limit wait already.
  bool Add(Activity activity);
  /// Nobody waits in Take() any more.
  void Close();

  /// Up to `most`, oldest first. Waits until there are so many, until `wait` is
  /// over or Close().
  std::vector<Activity> Take(size_t most, absl::Duration wait);

  bool is_closed() const;
  int64_t dropped_count() const { return dropped_count_; }

 private:
  const size_t limit_;
  std::atomic<int64_t> dropped_count_ = 0;
  mutable absl::Mutex mutex_;
  std::deque<Activity> waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server
