// One call of ExecuteStream and the results that are still to come.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/src/connection.h"
#include "client/cpp/src/raw_call.h"
#include "tensord/remote_tensor.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::internal {

struct PendingResult {
  /// Full name of the tensor to come when nobody else will delete it; else "".
  std::string unclaimed;
  std::optional<absl::StatusOr<RemoteTensor>> value;
  bool is_taken = false;  // the tensor
};

/// Takes in responses whenever it waits for anything, so that a full connection
/// moves again. When many are to come, requests wait for others to go with
/// them, until anything is awaited or Flush() is called.
///
/// Threads  one at a time.
class OperationStream {
 public:
  OperationStream(std::shared_ptr<Connection> connection, absl::Time deadline);
  OperationStream(const OperationStream&) = delete;

  Connection& connection() { return *connection_; }

  /// A tensor id that no other tensor has. An output that is named by the
  /// client can be deleted also when its response is lost.
  std::string NewTensorId();

  /// Sends a request. `unclaimed` is that of PendingResult.
  std::shared_ptr<PendingResult> Send(v1::ExecuteStreamRequest request,
                                      std::string unclaimed);
  /// Takes the place of a request that could not be made.
  std::shared_ptr<PendingResult> Refuse(absl::Status status);

  /// Sends what waits.
  void Flush();

  /// Post  `result` has a value.
  void Await(const PendingResult& result);

  /// Waits for all results. Gives the first error among them, or that of the
  /// call.
  absl::Status Finish();

  /// Post  every result has a value.
  void Cancel();

 private:
  /// Takes the responses in that have come.
  void TakeWhatHasCome();
  void AwaitWrite();
  /// Waits for a message of responses, or the end of the call.
  void TakeResponses();
  /// False: it says nothing that was asked.
  bool Take(const v1::ExecuteStreamResponse& response);
  void End(const absl::Status& outcome);
  /// Forgets results at the front that have a value, but for the first error.
  void Settle();

  const std::shared_ptr<Connection> connection_;
  const absl::Time deadline_;
  /// Begins with the first request: the server waits only so long for that.
  std::optional<RawCall> call_;
  const std::string id_prefix_;
  int64_t id_count_ = 0;
  v1::ExecuteStreamRequest waiting_;  // a batch
  size_t waiting_bytes_ = 0;
  bool writing_ = false;
  int64_t response_count_ = 0;
  std::deque<std::shared_ptr<PendingResult>>
      results_;  // in the order of adding
  absl::Status first_error_;
  std::optional<absl::Status> outcome_;  // of the call, once it is over
};

}  // namespace tensord::internal
