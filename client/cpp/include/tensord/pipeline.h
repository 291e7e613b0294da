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
/// Threads   one at a time, its Pipeline and the Pipeline's others included.
/// Lifetime  may outlive the Pipeline.
class PendingTensor {
 public:
  PendingTensor(PendingTensor&&) noexcept;
  PendingTensor& operator=(PendingTensor&&) noexcept;
  ~PendingTensor();

  /// Waits for the operation. Gives its result to the first call; when nobody
  /// takes a new tensor, it leaves the server.
  ///
  /// Errors  those of the operation, or of the pipeline if that ended before
  /// it.
  ///         FAILED_PRECONDITION: taken before.
  absl::StatusOr<RemoteTensor> Await();

 private:
  friend class Pipeline;

  PendingTensor(std::shared_ptr<internal::OperationStream> stream,
                std::shared_ptr<internal::PendingResult> result);

  std::shared_ptr<internal::OperationStream> stream_;
  std::shared_ptr<internal::PendingResult> result_;
};

/// Operations of one session that are on their way together. They take effect
/// in the order in which they were added; adding waits for none of them, but
/// for the server to take more.
///
/// ```
/// const ContractOptions to_t = {.execution = {.output = &t}};
/// Pipeline pipeline = session.StartPipeline();
/// pipeline.Contract({a, "ik"}, {b, "kj"}, "ij", to_t);
/// auto sum = pipeline.Reduce(BinaryOperator::kAdd, {t, "ij"}, "j");
/// absl::Status done = pipeline.Finish();
/// ```
///
/// An operation names the tensors that exist when it is added. So what a later
/// one reads is written to an `output` that was created before; a new tensor
/// can be read once PendingTensor::Await() has given it.
///
/// One that fails does not end the pipeline. Later ones that need what it
/// should have written fail too, or find what was there before.
///
/// Without Finish() the end of a Pipeline cancels it: operations that have not
/// begun never do.
///
/// Threads   one at a time.
/// Lifetime  tensors that an operation names outlive it; views of the caller's
///           memory, the call that adds it. Keeps the session open.
/// Errors    of adding come with PendingTensor::Await(), too. `deadline` in the
///           options of an operation is INVALID_ARGUMENT.
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
