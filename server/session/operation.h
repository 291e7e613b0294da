// One request to compute: from names and labels to a result in place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/executor/executor.h"
#include "core/plan/plan.h"
#include "server/engine/engine.h"
#include "server/session/inline_contents.h"
#include "server/session/operation_request.h"
#include "server/session/session.h"

namespace tensord::server {

/// What an Operation has found out and done.
struct OperationReport {
  absl::string_view kernel;
  bool plan_cache_hit = false;
  int64_t workspace_bytes = 0;
  int64_t gathered_bytes = 0;  // of packed copies of views
};

/// An operation in flight. Prepare() finds and validates everything and
/// announces reads and writes, in the order of arrival; Launch() queues the
/// computation, in the same order; Complete() ends it when the device is done.
/// Destroying it before Launch() takes the announcements back.
///
/// `max_inline_bytes` bounds the inline operands together, and an inline
/// result.
///
/// Threads  each step may be on another thread, one after the other.
class Operation {
 public:
  /// Errors  every error that the request itself can have, and NOT_FOUND,
  ///         FAILED_PRECONDITION for its tensors; UNAVAILABLE: the device is
  ///         lost. Nothing has changed then.
  static absl::StatusOr<std::unique_ptr<Operation>> Prepare(
      Engine& engine, std::shared_ptr<Session> session,
      const OperationRequest& request, int64_t max_inline_bytes);

  /// A request as it is planned.
  struct Planned {
    OperationTensors tensors;
    core::TensorDesc output;  // of d, also when it is new
    core::PlanKey key;
  };
  /// What Prepare() does before it asks for a plan, without announcing anything
  /// or needing contents; inline operands need no data.
  /// Errors  every error that the request itself can have, and NOT_FOUND.
  static absl::StatusOr<Planned> Plan(Session& session,
                                      const OperationRequest& request);

  Operation(const Operation&) = delete;
  ~Operation();

  /// Queues the computation.
  ///
  /// Errors  FAILED_PRECONDITION: an operation before this one, which should
  ///         have written an input, failed and left it without contents.
  ///         INVALID_ARGUMENT: d overlaps an input. RESOURCE_EXHAUSTED.
  ///         INTERNAL. Complete() is due all the same.
  absl::Status Launch(core::Stream& stream);

  /// True while nothing is under way: Launch() that failed may be called again.
  bool CanLaunchAgain() const { return !has_queued_; }
  /// Whether Launch() takes times of kernels.
  bool WantsDeviceAlone() const {
    return to_measure_.has_value() || to_tune_.has_value();
  }

  /// Ends the operation. `status` is what Launch() returned or, if that was OK,
  /// what the device's work ended with; nothing is under way any more. The
  /// output is READY afterwards; on failure it is INVALID if writing had begun
  /// and as before otherwise; a new one is gone.
  void Complete(const absl::Status& status);

  const OperationReport& report() const { return report_; }
  const StoredTensor& output() const { return *d_; }
  bool output_is_inline() const { return output_is_inline_; }
  /// The bytes of an inline output. Requires  Complete(OK) before.
  std::string InlineResult() const;

 private:
  using TensorRef = std::shared_ptr<StoredTensor>;
  /// An input that is read, its read announced.
  struct Input {
    TensorRef tensor;  // null when not read
    core::TensorDesc desc;
    bool is_copied = false;  // a view that is read by way of a packed copy
    core::Buffer copy;
  };

  Operation(Engine& engine, std::shared_ptr<Session> session);

  /// What an input is read from, its read announced. `input` has all but
  /// the tensor of an inline operand.
  absl::StatusOr<Input> Announce(const InputRequest& request, Input input);
  /// Takes the memory of packed copies of views; may be called again.
  absl::Status AllocateCopies();
  /// Takes the memory that Launch() needs beside; may be called again.
  absl::Status Allocate();
  /// Brings inputs to where the kernel reads them.
  absl::Status QueueInputs(core::Stream& stream);
  /// Brings the result from where the kernel writes it to its view.
  absl::Status QueueOutput(core::Stream& stream);
  /// Ends every announced read and write; a new output that was not written
  /// goes.
  void End();
  /// The addresses and factors of this execution, for the operation of `desc_`,
  /// with `d` at that address.
  core::AnyOperands Operands(std::byte* d) const;
  /// OK when all of d, at that address, may be written while the inputs are
  /// read.
  absl::Status CheckAliasing(const core::AnyOperands& operands,
                             std::byte* d) const;
  /// True when both are views of one storage, or it and a view, and known to
  /// share no element.
  bool IsDisjointFromOutput(const Input& input) const;
  /// Replaces the plan by one that has been measured, if that is asked for.
  absl::Status Measure(core::Stream& stream);
  /// Replaces the plan by one that is to be tried, if there is one. Takes the
  /// memory that it needs.
  absl::Status TryNext();
  /// Runs the plan and, when it is tried, takes its time.
  absl::Status Run(const core::AnyOperands& operands, core::Stream& stream);

  Engine& engine_;
  const std::shared_ptr<Session> session_;
  core::AnyDesc desc_;
  core::Scalar alpha_, beta_, gamma_;
  OutputFrame frame_;
  Input a_, b_, c_;
  TensorRef d_;
  bool d_is_copied_ = false;  // a view that is written by way of a packed copy
  core::Buffer d_copy_;
  std::shared_ptr<const core::Buffer> scratch_;  // null when none is needed
  InlineInputs inline_inputs_;
  InlineOutput inline_result_;
  bool has_queued_ = false;
  bool d_announced_ = false;
  bool d_is_new_ = false;
  bool output_is_inline_ = false;
  StoredTensor::WriteResult result_ = StoredTensor::WriteResult::kUntouched;
  std::shared_ptr<const core::Plan> plan_;
  std::shared_ptr<const PreparedPlan> prepared_;  // null: not prepared before
  std::optional<core::PlanKey> to_measure_;       // until that is done
  std::optional<core::PlanKey> to_tune_;  // until there is nothing to try
  OperationReport report_;
};

}  // namespace tensord::server
