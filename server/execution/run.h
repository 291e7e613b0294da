// A request in flight: steps on tensors of a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/pooled.h"
#include "core/device/device.h"
#include "server/engine/device_worker.h"
#include "server/engine/engine.h"
#include "server/execution/inline_contents.h"
#include "server/execution/operand_use.h"
#include "server/execution/step_runner.h"
#include "server/session/session.h"

namespace tensord::server {

/// What a run has done.
struct RunReport {
  int64_t operation_count = 0;         // that ran, in all slices
  int64_t folded_operation_count = 0;  // that did not, as values were kept
  double flops = 0;
  int64_t peak_bytes = 0;  // of intermediate results
  int64_t kept_bytes = 0;
  int64_t gathered_bytes = 0;         // of packed copies of views
  int64_t kept_extent = 0;            // of an SVD, see core::Truncation
  std::vector<int64_t> kept_extents;  // of a program, as its kept_extents
  bool is_replayed = false;           // queued at once, as it had been recorded
};

/// What a run and its steps share.
///
/// Threads  one after the other, as the run's.
struct RunState : core::Pooled {
  RunState(Engine& engine, std::shared_ptr<Session> asking)
      : session(std::move(asking)), runner(engine, *session) {}
  ~RunState() { End(); }

  /// Ends the uses of all tensors.
  void End();

  const std::shared_ptr<Session> session;
  /// Inputs, then results; those of one operation lie in here.
  absl::InlinedVector<OperandUse, 4> uses;
  size_t first_result = 0;  // of `uses`
  InlineInputs inline_inputs;
  StepRunner runner;
  double predicted_nanoseconds = 0;  // for all steps
  bool is_brief = false;             // with all that is around them
  StoredTensor::WriteResult result = StoredTensor::WriteResult::kUntouched;
  RunReport report;
};

/// When a run was made, and begun and ended on its device.
struct RunTimes {
  absl::Time made;
  absl::Time begun;
  absl::Time ended;
  /// Of the time between: copying views in and out, as far as the thread that
  /// launches does that itself.
  absl::Duration copying;
};

/// What a run computes when its operands are in place. Methods are called in
/// this order. Destroyed when nothing is under way.
class Steps {
 public:
  virtual ~Steps() = default;

  /// Decides what is left to do; nothing is queued yet. May be called again, as
  /// Allocate().
  virtual void Plan(RunState&) {}
  /// Whether anything that will be queued reads operand number `i`.
  virtual bool IsReadNow(const RunState& state, size_t i) const {
    return state.uses[i].is_read();
  }
  /// Takes memory; that of the operands is there.
  /// Errors  RESOURCE_EXHAUSTED; INVALID_ARGUMENT: operands overlap.
  virtual absl::Status Allocate(RunState& state) = 0;
  /// Queues what comes before the first step.
  virtual absl::Status Begin(RunState& state, core::Stream& stream) = 0;
  /// Queues steps: all, or as many as should go without others having a turn.
  /// Returns  whether all are queued.
  virtual absl::StatusOr<bool> Queue(RunState& state, core::Stream& stream) = 0;
  /// Nobody is to rely on what the steps compute, though some may be under way.
  virtual void Discard() {}
  /// All has ended well, and nothing is under way.
  virtual void Complete() = 0;
};

/// The job of a request on its device: brings operands to where kernels read
/// them, queues steps, and brings results to where they belong. Destroying it
/// before its launch takes back what was announced.
///
/// Threads  each step may be on another thread, one after the other.
class Run final : public DeviceWorker::Job, public core::Pooled {
 public:
  /// Announces the uses of `state`, in the order of the session's requests.
  /// Errors  as OperandUse::Announce(). Nothing has changed then.
  static absl::StatusOr<std::unique_ptr<Run>> Make(
      std::unique_ptr<RunState> state, std::unique_ptr<Steps> steps);

  /// OK when it should end before `deadline`, and not take longer than `most`.
  ///
  /// Errors  RESOURCE_EXHAUSTED, reason OPERATION_TOO_LONG. DEADLINE_EXCEEDED,
  ///         reason DEADLINE_TOO_SHORT: by predictions, which may be wrong, it
  ///         would take more than twice the time left. RESOURCE_EXHAUSTED,
  ///         reason QUEUE_TOO_LONG: in the device's queue it would wait for too
  ///         long.
  absl::Status Admit(absl::Duration most, absl::Time deadline) const;

  /// Queues steps, all or some.
  ///
  /// Errors  FAILED_PRECONDITION: an operation before this one, which should
  ///         have written an input, failed and left it without contents.
  ///         INVALID_ARGUMENT: an output overlaps an input.
  ///         RESOURCE_EXHAUSTED. CANCELLED: it was stopped. INTERNAL.
  ///         Complete() is due all the same.
  Outcome Launch(core::Stream& stream) override;

  /// Ends it. Results are READY afterwards; on failure they are INVALID if
  /// writing had begun and as before otherwise; new ones are gone.
  void Complete(const absl::Status& status,
                const DeviceWorker::Times& times) override;

  /// New results that the server has named.
  std::vector<std::shared_ptr<StoredTensor>> unnamed_results() const;

  const RunReport& report() const { return state_->report; }
  const StepRunner& runner() const { return state_->runner; }
  absl::Span<const OperandUse> results() const {
    return absl::MakeConstSpan(state_->uses).subspan(state_->first_result);
  }
  /// Of a run that never began: both now.
  RunTimes times() const;

 private:
  using WriteResult = StoredTensor::WriteResult;

  Run(std::unique_ptr<RunState> state, std::unique_ptr<Steps> steps);

  /// Takes memory.
  absl::Status Prepare();
  /// Queues what comes before the first step.
  absl::Status Begin(core::Stream& stream);
  absl::StatusOr<bool> LaunchPart(core::Stream& stream);
  /// Whether what queues copies makes them.
  bool CopiesItself() const;

  const std::unique_ptr<RunState> state_;
  std::unique_ptr<Steps> steps_;  // null when completed
  RunTimes times_;
  bool has_queued_ = false;
};

}  // namespace tensord::server
