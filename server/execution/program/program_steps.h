// The steps of a program, and a run of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/engine.h"
#include "server/execution/program/given_operands.h"
#include "server/execution/program/kept_values.h"
#include "server/execution/program/prepared_program.h"
#include "server/execution/program/program_request.h"
#include "server/execution/program/step_queue.h"
#include "server/execution/run.h"
#include "server/session/session.h"

namespace tensord::server {

/// What a run of `program` shares with its steps, with the plans that it needs.
/// Plans of what was never planned take long; on any thread.
///
/// Errors  as StepRunner::Add().
absl::StatusOr<std::unique_ptr<RunState>> PlanProgramRun(
    Engine& engine, std::shared_ptr<Session> session,
    const PreparedProgram& program);

/// A run of `program`, of which `state` is. `operands` are like those it was
/// made with, in the same order; `found` is FindOperands() of them. `outputs`
/// say what new tensors are called and which are inline. Results are in the
/// order of the program's outputs.
///
/// Errors  NOT_FOUND, FAILED_PRECONDITION for tensors; INVALID_ARGUMENT:
///         OUTPUT_OVERLAPS_INPUT, OUTPUT_NOT_INJECTIVE, INLINE_TOO_LARGE.
///         Nothing has changed then.
absl::StatusOr<std::unique_ptr<Run>> PrepareProgramRun(
    std::unique_ptr<RunState> state,
    std::shared_ptr<const PreparedProgram> program,
    absl::Span<const ProgramOperandRequest> operands, FoundOperands found,
    absl::Span<const ProgramOutputRequest> outputs, int64_t max_inline_bytes);

/// All steps of a program, in all slices.
class ProgramSteps final : public Steps {
 public:
  explicit ProgramSteps(std::shared_ptr<const PreparedProgram> program)
      : prepared_(std::move(program)) {}

  void Plan(RunState& state) override;
  bool IsReadNow(const RunState& state, size_t i) const override;
  absl::Status Allocate(RunState& state) override;
  absl::Status Begin(RunState& state, core::Stream& stream) override;
  absl::StatusOr<bool> Queue(RunState& state, core::Stream& stream) override;
  void Discard() override;
  void Complete() override { prepared_->CountExecution(); }

 private:
  const core::Program& program() const { return prepared_->program(); }
  /// Counts what is going to run.
  void CountWork(RunReport& report) const;
  /// Address of the first element of tensor `t` of the program.
  std::byte* AddressOf(const RunState& state, int32_t t) const;
  absl::Status QueueSome(RunState& state, core::Stream& stream);

  const std::shared_ptr<const PreparedProgram> prepared_;
  core::Buffer arena_;
  std::vector<std::byte*> addresses_;  // (tensor of the program)
  StepPosition next_;                  // to be queued
  bool folds_ = false;                 // also computes the kept values
  KeptValues::Sources sources_;        // of the kept values
  uint64_t computation_number_ = 0;    // BeginComputing()'s; 0: not begun
};

}  // namespace tensord::server
