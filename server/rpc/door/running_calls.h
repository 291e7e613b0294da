// The calls that run, for others than their clients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/rpc/coroutine/loop.h"
#include "server/session/session.h"

namespace tensord::rpc {

/// Calls that have not ended: those of a session, and streams of none.
///
/// Threads   safe for concurrent use.
/// Lifetime  outlives the Loops of its calls.
class RunningCalls {
 public:
  struct Shown {
    std::string request_id;
    absl::string_view rpc;
    uint64_t session = 0;
    std::string tenant;
    absl::Duration elapsed;
  };

  /// `call` is one of `session` from now on, or of none, if null, so far; from
  /// its Loop's thread, as Remove(), which is due before the call ends. Only
  /// the first session counts.
  void Add(Call& call, std::shared_ptr<const server::Session> session);
  void Remove(Call& call);

  /// Those of one session, or of all; the oldest first.
  std::vector<Shown> List(std::optional<uint64_t> session) const;

  /// Those that have calls of a request id.
  std::set<uint64_t> SessionsOf(absl::string_view request_id) const;

  /// Has calls end with `why`: those of a request id, or of a session. Returns
  /// how many.
  int64_t StopRequest(absl::string_view request_id, const absl::Status& why);
  int64_t StopSession(uint64_t session, const absl::Status& why);
  /// The same of the streams of a session that has ended; those that can answer
  /// what they have taken do so.
  int64_t StopStreams(const server::Session& session);
  /// The same of who was known when the call began, and is no more; also of
  /// streams without session.
  int64_t StopUnknown(const absl::Status& why);

 private:
  struct Running {
    uint64_t number = 0;  // no other call of this process has it
    std::shared_ptr<const server::Session> session;  // null: none so far
  };
  class Stopping;

  int64_t Stop(
      absl::FunctionRef<bool(const CallRecord&, const Running&)> is_meant,
      const absl::Status& why, bool is_session_end = false);
  bool Has(Call& call, uint64_t number) const;

  mutable absl::Mutex mutex_;
  // What does not change of their records may be read while they are here.
  absl::flat_hash_map<Call*, Running> calls_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace tensord::rpc
