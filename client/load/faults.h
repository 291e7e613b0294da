// Clients that misbehave beside a load.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/load/statistics.h"
#include "client/load/workers.h"
#include "tensord/credentials.h"

namespace tensord::load {

enum class FaultKind {
  kKillUpload,  // a process that is killed in the middle of an upload
  kSlowReader,  // a download that nobody reads
};

struct FaultSpec {
  FaultKind kind;
  int count = 4;  // at a time
};

/// E.g. "kill-upload,slow-reader=16".
///
/// Errors  INVALID_ARGUMENT: says what is there and what is wanted.
absl::StatusOr<std::vector<FaultSpec>> ParseFaults(const std::string& text);

/// What came of the faults of one kind.
struct FaultCounts {
  int64_t begun = 0;    // killed in the middle, or reading stopped
  int64_t refused = 0;  // by the server, before it came to that
  int64_t ended = 0;    // by the server, while nobody read
  std::map<ErrorKey, ErrorCount> errors;  // of those refused or ended
};

/// What they connect to.
struct FaultTarget {
  std::string address;
  std::string device;  // empty: the server's first
  Credentials credentials;
};

/// Threads of their own, each with one client after the other.
class Faults {
 public:
  Faults(const std::vector<FaultSpec>& specs, FaultTarget target);

  /// No new ones begin. False: some do not end; this must not be destroyed
  /// then.
  bool Stop();

  std::map<FaultKind, FaultCounts> counts() const;

 private:
  void KillUploads();
  void StopReading();
  void Note(FaultKind kind, const absl::Status& status,
            int64_t FaultCounts::*which);

  const FaultTarget target_;
  absl::Notification stopping_;
  mutable absl::Mutex mutex_;
  std::map<FaultKind, FaultCounts> counts_ ABSL_GUARDED_BY(mutex_);
  Workers workers_;
};

/// Uploads and kills this process in the middle. Returns an exit code if it
/// does not come to that. `Faults` runs the program for this.
int UploadAndDie(const FaultTarget& target);

/// "kill_upload" and so on.
std::string ToString(FaultKind kind);

}  // namespace tensord::load
