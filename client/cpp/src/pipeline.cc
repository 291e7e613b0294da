#include "tensord/pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/errors.h"
#include "client/cpp/src/operation_stream.h"
#include "client/cpp/src/requests.h"

namespace tensord {

using internal::ElementwiseOperands;
using internal::MakeRequest;
using internal::OperationStream;
using internal::PendingResult;

PendingTensor::PendingTensor(std::shared_ptr<OperationStream> stream,
                             std::shared_ptr<PendingResult> result)
    : stream_(std::move(stream)), result_(std::move(result)) {}
PendingTensor::PendingTensor(PendingTensor&&) noexcept = default;
PendingTensor& PendingTensor::operator=(PendingTensor&&) noexcept = default;
PendingTensor::~PendingTensor() = default;

absl::StatusOr<RemoteTensor> PendingTensor::Await() {
  stream_->Await(*result_);
  absl::StatusOr<RemoteTensor>& value = *result_->value;
  if (!value.ok()) return value.status();
  if (std::exchange(result_->is_taken, true)) {
    return internal::Error(absl::StatusCode::kFailedPrecondition,
                           "RESULT_TAKEN",
                           "the result of the operation was taken before");
  }
  return *std::move(value);
}

Pipeline::Pipeline(std::shared_ptr<OperationStream> stream)
    : stream_(std::move(stream)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;

Pipeline& Pipeline::operator=(Pipeline&& other) noexcept {
  if (this == &other) return *this;
  if (stream_ != nullptr) stream_->Cancel();
  stream_ = std::move(other.stream_);
  return *this;
}

Pipeline::~Pipeline() {
  if (stream_ != nullptr) stream_->Cancel();
}

template <typename Request>
PendingTensor Pipeline::Add(absl::StatusOr<Request> request,
                            const ExecutionOptions& options) {
  if (request.ok() && options.deadline.has_value()) {
    request = internal::InvalidArgument(
        "DEADLINE_NOT_APPLICABLE",
        "an operation of a pipeline has a deadline, wanted in the options of "
        "the pipeline only");
  }
  if (!request.ok()) {
    return PendingTensor(stream_, stream_->Refuse(request.status()));
  }
  std::string unclaimed;
  if (options.output == nullptr) {
    v1::Output& d = *request->mutable_d();
    if (d.tensor_id().empty()) d.set_tensor_id(stream_->NewTensorId());
    unclaimed = absl::StrCat(stream_->connection().session().name, "/tensors/",
                             d.tensor_id());
  }
  auto result = stream_->Send(
      internal::Wrap<v1::ExecuteStreamRequest>(*std::move(request)),
      std::move(unclaimed));
  return PendingTensor(stream_, std::move(result));
}

PendingTensor Pipeline::Permute(const Operand& a, const Modes& d,
                                const PermuteOptions& options) {
  return Add(MakeRequest(stream_->connection(), a, d, options),
             options.execution);
}

PendingTensor Pipeline::Elementwise(const Operand& a, BinaryOperator op_ac,
                                    const Operand& c, const Modes& d,
                                    const ElementwiseOptions& options) {
  const ElementwiseOperands operands{.a = a, .c = c, .op_abc = op_ac};
  return Add(MakeRequest(stream_->connection(), operands, d, options),
             options.execution);
}

PendingTensor Pipeline::Elementwise(const Operand& a, BinaryOperator op_ab,
                                    const Operand& b, BinaryOperator op_abc,
                                    const Operand& c, const Modes& d,
                                    const ElementwiseOptions& options) {
  const ElementwiseOperands operands{
      .a = a, .b = &b, .c = c, .op_ab = op_ab, .op_abc = op_abc};
  return Add(MakeRequest(stream_->connection(), operands, d, options),
             options.execution);
}

PendingTensor Pipeline::Reduce(BinaryOperator op, const Operand& a,
                               const Modes& d, const ReduceOptions& options) {
  return Add(MakeRequest(stream_->connection(), op, a, d, options),
             options.execution);
}

PendingTensor Pipeline::Contract(const Operand& a, const Operand& b,
                                 const Modes& d,
                                 const ContractOptions& options) {
  return Add(MakeRequest(stream_->connection(), a, b, d, options),
             options.execution);
}

PendingTensor Pipeline::Solve(const Operand& a, const Operand& b,
                              const Modes& d, const SolveOptions& options) {
  return Add(MakeRequest(stream_->connection(), a, &b, d, options),
             options.execution);
}

PendingTensor Pipeline::Invert(const Operand& a, const Modes& d,
                               const SolveOptions& options) {
  return Add(MakeRequest(stream_->connection(), a, nullptr, d, options),
             options.execution);
}

PendingTensor Pipeline::Expm(const Operand& a, const Modes& d,
                             const SolveOptions& options) {
  return Add(MakeExponentialRequest(stream_->connection(), a, d, options),
             options.execution);
}

void Pipeline::Flush() { stream_->Flush(); }

absl::Status Pipeline::Finish() { return stream_->Finish(); }

}  // namespace tensord
