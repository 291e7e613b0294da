// Operations that follow each other without anyone waiting in between.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/operations.h"
#include "tensord/remote_tensor.h"

namespace tensord {

namespace internal {
class OperationStream;
struct PendingResult;
}  // namespace internal

struct PipelineOptions {
  /// Of the whole pipeline, from its start. Absent: the session's default
  /// deadline.
  std::optional<absl::Duration> deadline;
};

/// What an operation of a Pipeline will give.
///
/// Threads   one at a time uses a Pipeline and all that it gave.
/// Lifetime  may outlive the Pipeline.
class PendingTensor {
 public:
  PendingTensor(PendingTensor&&) noexcept;
  PendingTensor& operator=(PendingTensor&&) noexcept;
  ~PendingTensor();

  /// Waits for the operation and gives its result, once. A new tensor that
  /// nobody takes leaves the server.
  ///
  /// Errors  FAILED_PRECONDITION: it was taken before. Those of the operation,
  ///         or of the pipeline if that ended first.
  absl::StatusOr<RemoteTensor> Await();

 private:
  friend class Pipeline;

  PendingTensor(std::shared_ptr<internal::OperationStream> stream,
                std::shared_ptr<internal::PendingResult> result);

  std::shared_ptr<internal::OperationStream> stream_;
  std::shared_ptr<internal::PendingResult> result_;
};

/// Operations of one session that do not wait for each other's responses. They
/// take effect in the order in which they were added. Adding waits only while
/// the server takes no more.
///
/// ```
/// const ContractOptions to_t = {.execution = {.output = &t}};
/// Pipeline pipeline = session.StartPipeline();
/// pipeline.Contract({a, "ik"}, {b, "kj"}, "ij", to_t);
/// auto sum = pipeline.Reduce(BinaryOperator::kAdd, {t, "ij"}, "j");
/// absl::Status done = pipeline.Finish();
/// ```
///
/// An operation can only name tensors that exist when it is added. To read what
/// an earlier one writes, create the `output` of that one first, or wait for it
/// by PendingTensor::Await().
///
/// One that fails does not end the pipeline. Later ones that need what it
/// should have written fail too, or find what was there before.
///
/// A Pipeline that is destroyed without Finish() is cancelled: operations that
/// have not begun do not run.
///
/// Threads   one at a time.
/// Lifetime  tensors that an operation names must outlive it. Views of the
///           caller's memory must outlive the call that adds it. Keeps the
///           session open.
/// Errors    PendingTensor::Await() has those of adding, too: INVALID_ARGUMENT
///           where the options of an operation have a `deadline`.
class Pipeline {
 public:
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  // As in Session.

  PendingTensor Permute(const Operand& a, const Modes& d,
                        const PermuteOptions& options = {});
  PendingTensor Elementwise(const Operand& a, BinaryOperator op_ac,
                            const Operand& c, const Modes& d,
                            const ElementwiseOptions& options = {});
  PendingTensor Elementwise(const Operand& a, BinaryOperator op_ab,
                            const Operand& b, BinaryOperator op_abc,
                            const Operand& c, const Modes& d,
                            const ElementwiseOptions& options = {});
  PendingTensor Reduce(BinaryOperator op, const Operand& a, const Modes& d,
                       const ReduceOptions& options = {});
  PendingTensor Contract(const Operand& a, const Operand& b, const Modes& d,
                         const ContractOptions& options = {});
  PendingTensor Solve(const Operand& a, const Operand& b, const Modes& d,
                      const SolveOptions& options = {});
  PendingTensor Invert(const Operand& a, const Modes& d,
                       const SolveOptions& options = {});
  PendingTensor Expm(const Operand& a, const Modes& d,
                     const SolveOptions& options = {});

  /// Sends what was added. While many operations are without a result, those
  /// that are added wait for a few more to travel with, or until anything is
  /// awaited.
  void Flush();

  /// Waits for all operations; nothing can be added any more.
  ///
  /// Errors  that of the first operation that failed, or that of the pipeline:
  ///         UNAVAILABLE, DEADLINE_EXCEEDED.
  absl::Status Finish();

 private:
  friend class Session;

  explicit Pipeline(std::shared_ptr<internal::OperationStream> stream);

  template <typename Request>
  PendingTensor Add(absl::StatusOr<Request> request,
                    const ExecutionOptions& options);

  std::shared_ptr<internal::OperationStream> stream_;
};

}  // namespace tensord
