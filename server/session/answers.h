// What calls were answered that are to be carried out at most once.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/host_memory.h"

namespace tensord::server {

/// Remembers the answers of a session's calls by the ids that their client gave
/// them, the last ones, as many as the session's limits of HostUse::kAnswers
/// say.
///
/// Threads  safe for concurrent use.
class Answers {
 public:
  explicit Answers(std::shared_ptr<HostLedger> ledger)
      : ledger_(std::move(ledger)) {}

  /// A call begins; what one of that id was answered before. Nothing: carry it
  /// out, End() is due. `request` says all of what is asked.
  ///
  /// Errors  ABORTED, reason REQUEST_UNDER_WAY: one of that id has not ended.
  ///         INVALID_ARGUMENT, reason REQUEST_ID_REUSED: it asked for something
  ///         else. RESOURCE_EXHAUSTED: as HostLedger::Take().
  absl::StatusOr<std::optional<std::string>> Begin(absl::string_view id,
                                                   absl::string_view request);
  /// A call ends with an answer or, without one, has to be forgotten.
  void End(absl::string_view id, std::optional<std::string> answer);

 private:
  struct Call {
    size_t request_hash;
    std::optional<std::string> answer;  // none: it is under way
    HostHold hold;
  };

  /// False: there is no answer to forget.
  bool ForgetOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<HostLedger> ledger_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Call> calls_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> answered_ ABSL_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace tensord::server
