// One request to run a program: from names to results in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/executor/executor.h"
#include "core/plan/plan.h"
#include "server/engine/engine.h"
#include "server/session/inline_contents.h"
#include "server/session/program/kept_values.h"
#include "server/session/program/prepared_program.h"
#include "server/session/program/program_request.h"
#include "server/session/program/step_queue.h"
#include "server/session/session.h"

namespace tensord::server {

/// What a program has done, or would do.
struct ProgramReport {
  int64_t operation_count = 0;         // that ran, in all slices
  int64_t folded_operation_count = 0;  // that did not, as values were kept
  double flops = 0;
  int64_t peak_bytes = 0;
  int64_t kept_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t plan_cache_hits = 0;
  int64_t plan_count = 0;
  int64_t gathered_bytes = 0;
  bool is_replayed = false;  // queued at once, as it had been recorded
};

/// The operands that a request names or carries.
struct FoundOperands {
  /// Null for scalars and inline tensors.
  std::vector<std::shared_ptr<StoredTensor>> tensors;
  std::vector<core::TensorDesc> descs;        // as they are read and written
  std::vector<core::NamedOperand> described;  // for lowering
};

/// Inline operands need data only where `has_data`.
/// Errors  NOT_FOUND; INVALID_ARGUMENT.
absl::StatusOr<FoundOperands> FindOperands(
    const Session& session, absl::Span<const ProgramOperandRequest> operands,
    bool has_data);

/// A program in flight, as Operation is for one operation.
///
/// Threads  each step may be on another thread, one after the other.
class ProgramRun {
 public:
  /// `operands` are like those `program` was made with, in the same order, and
  /// `found` is what FindOperands() found of them. Of `outputs` names of
  /// tensors and whether they are inline count.
  ///
  /// Errors  NOT_FOUND, FAILED_PRECONDITION for tensors; INVALID_ARGUMENT:
  ///         OUTPUT_OVERLAPS_INPUT, OUTPUT_NOT_INJECTIVE, INLINE_TOO_LARGE;
  ///         those of planning. Nothing has changed then.
  static absl::StatusOr<std::unique_ptr<ProgramRun>> Prepare(
      Engine& engine, std::shared_ptr<Session> session,
      std::shared_ptr<const PreparedProgram> program,
      absl::Span<const ProgramOperandRequest> operands, FoundOperands found,
      absl::Span<const ProgramOutputRequest> outputs, int64_t max_inline_bytes);

  ProgramRun(const ProgramRun&) = delete;
  ~ProgramRun();

  /// Queues operations: all, or as many as should go without others having a
  /// turn; then IsUnfinished(), and the next call goes on. Errors  as
  /// Operation::Launch().
  absl::Status Launch(core::Stream& stream);
  bool IsUnfinished() const {
    return has_queued_ && next_.block < program().blocks.size();
  }
  bool CanLaunchAgain() const { return !has_queued_; }
  /// Ends the program, as Operation::Complete().
  void Complete(const absl::Status& status);

  const ProgramReport& report() const { return report_; }
  const core::Program& program() const { return program_->program(); }

  /// A tensor that the program has made.
  struct Output {
    std::shared_ptr<StoredTensor> tensor;
    bool is_inline = false;
    bool is_named = false;  // by the client
    InlineOutput contents;
  };
  const std::vector<Output>& outputs() const { return outputs_; }

 private:
  using WriteResult = StoredTensor::WriteResult;

  /// A tensor that the program reads or writes.
  struct Operand {
    std::shared_ptr<StoredTensor> tensor;  // null for scalars
    core::TensorDesc desc;
    bool is_read = false;
    bool is_written = false;
    bool is_copied = false;  // a view that is used by way of a packed copy
    core::Buffer copy;
    bool read_announced = false;
    bool write_announced = false;
  };

  ProgramRun(std::shared_ptr<Session> session,
             std::shared_ptr<const PreparedProgram> program);

  absl::Status TakeOperands(absl::Span<const ProgramOperandRequest> operands,
                            FoundOperands found, int64_t max_inline_bytes);
  absl::Status TakeOutputs(absl::Span<const ProgramOutputRequest> outputs,
                           int64_t max_inline_bytes);
  absl::Status TakePlans(Engine& engine);
  /// OK when what is written shares no element with other operands.
  absl::Status CheckOverlaps() const;
  absl::Status Announce();
  absl::Status CheckReady() const;
  /// Finds out whether what is computed of constants alone has to be.
  void LookForKept();
  /// Whether anything that is to be queued reads `operand`, number `i`.
  bool IsReadNow(size_t i) const;
  absl::Status Allocate();
  absl::Status QueueInputs(core::Stream& stream);
  /// Takes memory, and queues what comes before the first operation.
  absl::Status Begin(core::Stream& stream);
  /// Counts what is going to run.
  void CountWork();
  absl::Status LaunchPart(core::Stream& stream);
  /// What it has computed of constants is not to be relied on.
  void DiscardKept();
  PlacedProgram Placed() const;
  /// Queues operations, all or as many as a turn has.
  absl::Status QueueSteps(core::Stream& stream);
  absl::Status QueueResults(core::Stream& stream);
  /// Address of the first element of tensor `t` of the program.
  std::byte* AddressOf(int32_t t) const;
  void End();

  const std::shared_ptr<Session> session_;
  const std::shared_ptr<const PreparedProgram> program_;
  std::vector<Operand> operands_;
  std::vector<Output> outputs_;
  std::vector<std::shared_ptr<const core::Plan>> plans_;  // (key)
  InlineInputs inline_inputs_;
  core::Buffer arena_;
  std::shared_ptr<const core::Buffer> scratch_;
  std::vector<std::byte*> addresses_;  // (tensor of the program)
  StepPosition next_;                  // to be queued
  bool folds_ = false;                 // computes what is to be kept
  KeptValues::Sources sources_;        // of that
  uint64_t computation_number_ = 0;    // of that; 0: not begun
  bool has_queued_ = false;
  bool outputs_announced_ = false;
  WriteResult result_ = WriteResult::kUntouched;
  ProgramReport report_;
};

}  // namespace tensord::server
