#include "server/execution/run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/base/steady_time.h"

namespace tensord::server {
namespace {

/// Nanoseconds for what crosses the link between host and device, which is as
/// a rule a PCI Express of 16 lanes.
double RemoteTime(const RunState& state) {
  constexpr double kNanosecondsPerByte = 0.05;
  double bytes = 0;
  for (const OperandUse& use : state.uses) {
    bytes += static_cast<double>(use.remote_bytes(state.session->device()));
  }
  return bytes * kNanosecondsPerByte;
}

}  // namespace

void RunState::End() {
  for (OperandUse& use : uses) use.End(*session, result);
  inline_inputs.Clear();
}

Run::Run(std::unique_ptr<RunState> state, std::unique_ptr<Steps> steps)
    : Job(state->runner.takes_times()),
      state_(std::move(state)),
      steps_(std::move(steps)),
      times_{.made = core::SteadyNow(),
             .begun = absl::InfiniteFuture(),
             .ended = absl::InfiniteFuture()} {
  set_predicted(
      absl::Nanoseconds(state_->predicted_nanoseconds + RemoteTime(*state_)));
  set_is_brief(state_->is_brief);
}

absl::StatusOr<std::unique_ptr<Run>> Run::Make(std::unique_ptr<RunState> state,
                                               std::unique_ptr<Steps> steps) {
  for (OperandUse& use : state->uses) {
    TENSORD_RETURN_IF_ERROR(use.Announce());
  }
  // What kernels take across the link says nothing about others.
  const Device& device = state->session->device();
  const bool is_remote = std::ranges::any_of(
      state->uses,
      [&](const OperandUse& use) { return use.is_remote(device); });
  if (is_remote) state->runner.TakeNoTimes();
  return std::unique_ptr<Run>(new Run(std::move(state), std::move(steps)));
}

absl::Status Run::Admit(absl::Duration most, absl::Time deadline) const {
  const double seconds = absl::ToDoubleSeconds(predicted());
  if (predicted() > most) {
    return core::ResourceExhausted(
        "OPERATION_TOO_LONG",
        absl::StrFormat("%.3g s are predicted for the operation, the server's "
                        "limit is %.3g s; cut it, or ask for a higher limit",
                        seconds, absl::ToDoubleSeconds(most)));
  }
  if (deadline == absl::InfiniteFuture()) return absl::OkStatus();
  const absl::Duration left = deadline - absl::Now();
  if (predicted() > 2 * left) {
    return core::Error(
        absl::StatusCode::kDeadlineExceeded, "DEADLINE_TOO_SHORT",
        absl::StrFormat("%.3g s are predicted for the operation, %.3g s are "
                        "left until the call's deadline",
                        seconds, absl::ToDoubleSeconds(left)));
  }
  if (predicted() > left) return absl::OkStatus();
  const Session& session = *state_->session;
  const absl::Duration end =
      session.device().worker().PredictEnd(session.client(), predicted());
  if (end > left) {
    return core::ResourceExhausted(
        "QUEUE_TOO_LONG",
        absl::StrFormat(
            "the operation is predicted to end in %.3g s, behind others in the "
            "device's queue; %.3g s are left until the call's deadline; retry "
            "later",
            absl::ToDoubleSeconds(end), absl::ToDoubleSeconds(left)));
  }
  return absl::OkStatus();
}

absl::Status Run::Prepare() {
  for (const OperandUse& use : state_->uses) {
    TENSORD_RETURN_IF_ERROR(use.CheckReady());
  }
  steps_->Plan(*state_);
  for (size_t i = 0; i < state_->uses.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(state_->uses[i].Allocate(
        *state_->session, steps_->IsReadNow(*state_, i)));
  }
  TENSORD_RETURN_IF_ERROR(steps_->Allocate(*state_));
  return state_->runner.Allocate();
}

bool Run::CopiesItself() const {
  return state_->session->device().info().uses_host_memory &&
         std::ranges::any_of(state_->uses, &OperandUse::is_copied);
}

RunTimes Run::times() const {
  RunTimes times = times_;
  if (times.ended == absl::InfiniteFuture()) {
    times.begun = times.ended = core::SteadyNow();
  }
  return times;
}

absl::Status Run::Begin(core::Stream& stream) {
  Device& device = state_->session->device();
  const absl::Time begun =
      CopiesItself() ? core::SteadyNow() : absl::InfinitePast();
  TENSORD_RETURN_IF_ERROR(state_->inline_inputs.Queue(stream));
  for (size_t i = 0; i < state_->uses.size(); ++i) {
    const OperandUse& use = state_->uses[i];
    const bool reads = steps_->IsReadNow(*state_, i);
    state_->report.gathered_bytes += use.gathered_bytes(reads);
    if (reads) TENSORD_RETURN_IF_ERROR(use.QueueIn(device, stream));
  }
  if (CopiesItself()) times_.copying += core::SteadyNow() - begun;
  for (OperandUse& use : state_->uses) use.StartWrite();
  state_->result = WriteResult::kFailed;
  return steps_->Begin(*state_, stream);
}

absl::StatusOr<bool> Run::LaunchPart(core::Stream& stream) {
  if (is_stopped()) return absl::CancelledError("the operation was stopped");
  if (!has_queued_) {
    TENSORD_RETURN_IF_ERROR(Prepare());
    has_queued_ = true;
    TENSORD_RETURN_IF_ERROR(Begin(stream));
  }
  TENSORD_ASSIGN_OR_RETURN(const bool is_all, steps_->Queue(*state_, stream));
  if (!is_all) return false;
  const absl::Time begun =
      CopiesItself() ? core::SteadyNow() : absl::InfinitePast();
  for (OperandUse& use : state_->uses) {
    TENSORD_RETURN_IF_ERROR(use.QueueOut(state_->session->device(), stream));
  }
  if (CopiesItself()) times_.copying += core::SteadyNow() - begun;
  if (is_cut()) return absl::CancelledError("the operation was stopped");
  state_->result = WriteResult::kDone;
  for (OperandUse& use : state_->uses) use.Written();
  return true;
}

DeviceWorker::Job::Outcome Run::Launch(core::Stream& stream) {
  const absl::StatusOr<bool> is_all = LaunchPart(stream);
  set_wants_device_alone(state_->runner.takes_times());
  if (is_all.ok()) return {.is_part = !*is_all};
  // At once: what is launched next may look for what it has computed.
  steps_->Discard();
  return {.status = is_all.status(), .may_be_repeated = !has_queued_};
}

void Run::Complete(const absl::Status& status,
                   const DeviceWorker::Times& times) {
  times_.begun = times.begun;
  times_.ended = times.ended;
  if (!status.ok() && state_->result == WriteResult::kDone) {
    state_->result = WriteResult::kFailed;
  }
  if (status.ok()) {
    state_->runner.AddTimes();
    steps_->Complete();
  } else {
    steps_->Discard();
  }
  steps_.reset();
  state_->runner.Release();
  // Before the response, so that the next request finds everything settled.
  state_->End();
}

std::vector<std::shared_ptr<StoredTensor>> Run::unnamed_results() const {
  std::vector<std::shared_ptr<StoredTensor>> unnamed;
  for (const OperandUse& result : results()) {
    if (result.made() == OperandUse::Made::kUnnamed) {
      unnamed.push_back(result.tensor());
    }
  }
  return unnamed;
}

}  // namespace tensord::server
