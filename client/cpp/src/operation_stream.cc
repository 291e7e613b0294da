#include "client/cpp/src/operation_stream.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/errors.h"

namespace tensord::internal {
namespace {

/// 128 random bits.
std::string RandomPrefix() {
  std::random_device random;
  std::string prefix = "pipeline-";
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&prefix, absl::Hex(random(), absl::kZeroPad8));
  }
  return prefix;
}

// Requests that go at once: their responses are soon there.
constexpr int64_t kSoonAnswered = 8;
// Those that wait to go together are no more than that.
constexpr int kMostWaiting = 16;
constexpr size_t kMostWaitingBytes = size_t{64} << 10;

bool HasOutcome(const v1::ExecuteStreamResponse& response) {
  return response.has_result() ||
         (response.has_error() && response.error().code() != 0);
}

}  // namespace

OperationStream::OperationStream(std::shared_ptr<Connection> connection,
                                 absl::Time deadline)
    : connection_(std::move(connection)),
      deadline_(deadline),
      id_prefix_(RandomPrefix()) {}

std::string OperationStream::NewTensorId() {
  return absl::StrCat(id_prefix_, "-", id_count_++);
}

std::shared_ptr<PendingResult> OperationStream::Send(
    v1::ExecuteStreamRequest request, std::string unclaimed) {
  TakeWhatHasCome();
  if (outcome_.has_value()) {
    return Refuse(outcome_->ok()
                      ? Error(absl::StatusCode::kFailedPrecondition,
                              "PIPELINE_FINISHED", "the pipeline is finished")
                      : *outcome_);
  }
  auto result = std::make_shared<PendingResult>();
  result->unclaimed = std::move(unclaimed);
  results_.push_back(result);
  const size_t bytes = request.ByteSizeLong();
  if (bytes >= kMostWaitingBytes) Flush();  // a message has its limit
  waiting_bytes_ += bytes;
  *waiting_.add_batch() = std::move(request);
  if (std::ssize(results_) <= kSoonAnswered ||
      waiting_.batch_size() >= kMostWaiting ||
      waiting_bytes_ >= kMostWaitingBytes) {
    Flush();
  }
  return result;
}

void OperationStream::Flush() {
  if (waiting_.batch().empty()) return;
  if (!call_) {
    call_.emplace(connection_->channels(), connection_->channels().calls(),
                  "/tensord.v1.ComputeService/ExecuteStream", deadline_);
    call_->BeginRead();
  }
  AwaitWrite();
  if (outcome_.has_value()) return;
  const grpc::Slice slice(
      (waiting_.batch_size() == 1 ? waiting_.batch(0) : waiting_)
          .SerializeAsString());
  call_->BeginWrite(grpc::ByteBuffer(&slice, 1), /*last=*/false);
  writing_ = true;
  waiting_.Clear();
  waiting_bytes_ = 0;
}

std::shared_ptr<PendingResult> OperationStream::Refuse(absl::Status status) {
  auto result = std::make_shared<PendingResult>();
  result->value = std::move(status);
  results_.push_back(result);
  Settle();
  return result;
}

void OperationStream::Await(const PendingResult& result) {
  Flush();
  while (!result.value.has_value()) TakeResponses();
}

absl::Status OperationStream::Finish() {
  Flush();
  if (!call_) End(absl::OkStatus());  // nothing was asked
  AwaitWrite();
  if (!outcome_.has_value()) call_->BeginHalfClose();
  while (!outcome_.has_value()) TakeResponses();
  return first_error_.ok() ? *outcome_ : first_error_;
}

void OperationStream::Cancel() {
  if (!call_) End(absl::CancelledError("the pipeline was cancelled"));
  if (!outcome_.has_value()) call_->Cancel();
  while (!outcome_.has_value()) TakeResponses();
}

void OperationStream::TakeWhatHasCome() {
  while (call_ && !outcome_.has_value() && call_->HasRead()) TakeResponses();
}

void OperationStream::AwaitWrite() {
  while (writing_ && !outcome_.has_value()) {
    if (call_->AwaitWrite()) {
      writing_ = false;
    } else {  // A response came first, or the call is over.
      TakeResponses();
    }
  }
}

void OperationStream::TakeResponses() {
  grpc::ByteBuffer message;
  if (!call_->AwaitRead(message)) {
    End(call_->Finish());
    return;
  }
  call_->BeginRead();
  v1::ExecuteStreamResponse response;
  grpc::ProtoBufferReader reader(&message);
  const bool is_understood =
      response.ParseFromZeroCopyStream(&reader) &&
      (response.batch().empty()
           ? Take(response)
           : std::ranges::all_of(response.batch(), [this](const auto& one) {
               return Take(one);
             }));
  if (!is_understood) {
    call_->Cancel();
    while (call_->AwaitRead(message)) call_->BeginRead();
    (void)call_->Finish();  // CANCELLED; what was wrong says more.
    End(Error(absl::StatusCode::kInternal, "RESPONSE_MALFORMED",
              absl::StrCat("response ", response_count_,
                           " of the pipeline says nothing that was asked")));
    return;
  }
  Settle();
}

bool OperationStream::Take(const v1::ExecuteStreamResponse& response) {
  Settle();
  if (!HasOutcome(response) || response.index() != response_count_ ||
      results_.empty()) {
    return false;
  }
  ++response_count_;
  PendingResult& result = *results_.front();
  if (response.has_error()) {
    result.value = FromProto(response.error());
  } else {
    result.value =
        RemoteTensor(connection_, FromProto(response.result().tensor()),
                     /*owns=*/!result.unclaimed.empty(),
                     FromProto(response.result().report()));
  }
  return true;
}

void OperationStream::End(const absl::Status& outcome) {
  outcome_ = outcome;
  waiting_.Clear();
  for (const auto& result : results_) {
    if (result->value.has_value()) continue;
    result->value = outcome.ok()
                        ? Error(absl::StatusCode::kInternal, "RESPONSE_MISSING",
                                "the pipeline ended without a response")
                        : outcome;
    // It may have been computed, without anyone hearing of it.
    if (!result->unclaimed.empty()) connection_->Discard(result->unclaimed);
  }
  Settle();
}

void OperationStream::Settle() {
  while (!results_.empty() && results_.front()->value.has_value()) {
    const absl::Status& status = results_.front()->value->status();
    if (first_error_.ok()) first_error_ = status;
    results_.pop_front();
  }
}

}  // namespace tensord::internal
