// Programs that are executed again and again.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/device/device.h"
#include "core/notation/program/lanes.h"
#include "core/plan/plan.h"
#include "server/execution/program/step_queue.h"

namespace tensord::server {

/// What executions of one program keep for later ones: how its steps are spread
/// over streams, and, from the second execution with the same addresses on,
/// the recording of all of it, which is then queued at once.
///
/// Threads  safe for concurrent use.
class Replays {
 public:
  /// Most steps, counted in all slices, of programs that are queued this way.
  static constexpr int64_t kMostSteps = 256;

  /// Queues all steps of `placed`, or those from block `first_block` on; true
  /// when that was by way of a recording.
  ///
  /// Requires  `stream` is asynchronous; always the same program, of kMostSteps
  ///           or less.
  /// Errors    as core::Execute().
  absl::StatusOr<bool> Queue(const PlacedProgram& placed, size_t first_block,
                             core::Stream& stream);

 private:
  /// An execution, and what can be queued in its place.
  struct Replay {
    std::vector<std::byte*> addresses;  // (tensor), and that of the scratch
    std::vector<std::shared_ptr<const core::Plan>> plans;  // (key)
    size_t first_block = 0;
    std::unique_ptr<core::Recording> recording;
    bool cannot_be_recorded = false;
  };
  /// How the steps of each block are spread over streams when they have these
  /// plans.
  struct Spread {
    std::vector<std::shared_ptr<const core::Plan>> plans;
    std::vector<std::vector<core::LaneStep>> lanes;
  };

  absl::Status QueueSteps(const PlacedProgram& placed, size_t first_block,
                          core::Stream& stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Makes the recording; none when the device cannot record that.
  absl::Status Record(const PlacedProgram& placed, core::Stream& stream,
                      Replay& replay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::list<Replay> replays_ ABSL_GUARDED_BY(mutex_);  // used last in front
  Spread spread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
