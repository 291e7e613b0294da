// Who watches what the server does, while they do.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/telemetry/activity.h"

namespace tensord::server {

/// Threads  safe for concurrent use.
class Timelines {
 public:
  /// Of a recording, that are not taken yet.
  static constexpr size_t kMostActivities = 1 << 14;

  /// What has ended since it was begun, and is not taken yet.
  ///
  /// Lifetime  the Timelines outlive it.
  class Recording {
   public:
    Recording(Timelines& timelines, std::string request_id, std::string tenant)
        : timelines_(timelines),
          request_id_(std::move(request_id)),
          tenant_(std::move(tenant)) {}
    ~Recording();
    Recording(const Recording&) = delete;

    ActivityQueue& activities() { return activities_; }
    /// The call that it is about has ended.
    bool has_ended() const { return activities_.is_closed(); }

   private:
    friend Timelines;

    void Add(const Activity& activity);

    Timelines& timelines_;
    const std::string request_id_;  // "": all calls
    const std::string tenant_;      // "": of all
    ActivityQueue activities_{kMostActivities};
  };

  /// Of all calls, or of that with the id alone; of all tenants, or of that
  /// alone: others may have calls of the same id.
  /// Errors  RESOURCE_EXHAUSTED, reason TOO_MANY_RECORDINGS.
  absl::StatusOr<std::unique_ptr<Recording>> Record(std::string request_id,
                                                    std::string tenant = "");

  /// Whether anybody wants Add().
  bool is_recording() const {
    return is_recording_.load(std::memory_order_relaxed);
  }
  void Add(const Activity& activity);

 private:
  std::atomic<bool> is_recording_ = false;
  absl::Mutex mutex_;
  std::vector<Recording*> recordings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
