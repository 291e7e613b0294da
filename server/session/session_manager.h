// Opens, finds and closes sessions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/engine/engine.h"
#include "server/session/session.h"

namespace tensord::server {

struct SessionLimits {
  int64_t max_sessions = 1024;
  absl::Duration default_lease = absl::Seconds(60);
  absl::Duration max_lease = absl::Hours(24);
  /// Default and most memory of one session; 0: all that its device has.
  int64_t quota_bytes = 0;
  int max_priority = 9;
};

/// What OpenSession asks for; zero and empty mean the default.
struct OpenRequest {
  std::string job;
  absl::Duration lease;
  int64_t memory_quota_bytes = 0;
  std::string device;
  int priority = 0;
  std::string peer;  // who asks
};

/// Threads   safe for concurrent use; a thread of its own closes sessions whose
///           lease has run out.
/// Lifetime  the engine must outlive it.
class SessionManager {
 public:
  /// `on_expired` is told of every session that ran out, on that thread.
  SessionManager(Engine& engine, const SessionLimits& limits,
                 std::function<void(const Session&)> on_expired);
  /// Closes all sessions.
  ~SessionManager();

  /// Errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED as OpenSession in the proto.
  absl::StatusOr<std::shared_ptr<Session>> Open(const OpenRequest& request);

  /// The session of that name; its lease starts anew.
  /// Errors  NOT_FOUND, reason SESSION_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<Session>> Find(absl::string_view name);

  /// Errors  as Find.
  absl::Status Close(absl::string_view name);

  const SessionLimits& limits() const { return limits_; }
  int64_t session_count() const;
  int64_t tensor_count() const;

 private:
  void CloseExpired();

  Engine& engine_;
  const SessionLimits limits_;
  const std::function<void(const Session&)> on_expired_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_
      ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread reaper_;
};

}  // namespace tensord::server
