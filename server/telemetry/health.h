// Whether the server can be used, as those hear who watch it.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tensord::server {

/// Threads  safe for concurrent use.
class Health {
 public:
  enum class Phase { kStarting, kServing, kDraining };

  void Enter(Phase phase);
  /// What who watches should know although the server can be used, in a line.
  void Note(std::string remark);
  /// A device is lost, for good.
  void LoseDevice(const absl::Status& why);

  /// OK, or why new calls should go elsewhere, in a line.
  absl::Status readiness() const;
  /// What Note() was told; "" by itself.
  std::string remark() const;
  /// OK, or why the process should be started anew.
  absl::Status liveness() const;

 private:
  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStarting;
  absl::Status device_ ABSL_GUARDED_BY(mutex_);
  std::string remark_ ABSL_GUARDED_BY(mutex_);
};

/// Tells systemd, or whoever else set $NOTIFY_SOCKET, a state such as "READY=1"
/// or "STOPPING=1". Where nobody did, it does nothing.
void NotifyServiceManager(absl::string_view state);

}  // namespace tensord::server
