// A call as gRPC's C interface has it.
#pragma once

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/rpc/transport/tag.h"

namespace tensord::rpc {

using grpc::ByteBuffer;

/// What gRPC knows of a call, and what it does for it. The C++ interface would
/// copy what a call comes with and what it is answered, and would tell its end
/// apart from its answer's: a seventh of what a short call costs.
///
/// Each operation delivers its tag once, to the queue that the call was asked
/// for with. What it is given lasts until then.
///
/// Threads  one at a time; those const, any while the call goes on.
class WireCall {
 public:
  WireCall();
  ~WireCall();
  WireCall(const WireCall&) = delete;

  /// Asks `server` for the next call, which is to live at `queue`; its tag
  /// comes by `accepting`, not ok if there are no more. Of the registered
  /// `method` or, if that is null, of any that is not registered.
  void Await(grpc_server* server, void* method,
             grpc::ServerCompletionQueue& queue,
             grpc::ServerCompletionQueue& accepting, void* tag);

  // What is known of one that has come.
  /// As clients name the method; "" of registered ones.
  absl::string_view method() const;
  std::chrono::system_clock::time_point deadline() const;
  /// Whether the deadline has passed.
  bool is_late() const;
  /// Of the client's metadata; nothing: it has none of this key.
  std::optional<absl::string_view> Find(absl::string_view key) const;
  void ForEach(absl::string_view key,
               absl::FunctionRef<void(absl::string_view value)> visit) const;
  /// How many entries the client's metadata has.
  size_t entry_count() const { return metadata_.count; }
  /// gRPC's name of who is at the other end; of no use once it was cancelled.
  std::string peer() const;
  std::shared_ptr<const grpc::AuthContext> auth_context() const;
  /// Calls of one connection have the same.
  const void* connection() const;

  /// Goes with the first message, or with the end. `key` is static.
  void AddInitialMetadata(absl::string_view key, absl::string_view value);
  /// Goes with the end. `key` is static.
  void AddTrailingMetadata(absl::string_view key, absl::string_view value);

  // Operations, of each kind one at a time.
  void Receive(ByteBuffer& to, void* tag);
  /// What has to be done when its tag has come, `ok` or not. False: there is no
  /// message any more, or none that is taken.
  bool TakeReceived(bool ok);
  /// Whether a message was compressed. Nobody knows how much it would become,
  /// so it is not taken.
  bool has_compressed() const { return has_compressed_; }
  /// Of a call without a message: whether the client has broken it off.
  bool has_failed() const;
  /// With `more`, it may wait for the next one.
  void Send(grpc_byte_buffer* message, bool more, void* tag);
  /// The last: sends `message`, unless that is null, and `status`. Unless
  /// AwaitEnd() came before, it is also that, and is always ok.
  void Finish(grpc_byte_buffer* message, const grpc::Status& status, void* tag);
  /// Its tag comes when gRPC is done with the call.
  void AwaitEnd(void* tag);
  /// Whether somebody awaits that.
  bool awaits_end() const { return awaits_end_; }
  /// After the end: whether the client may not have heard how it went.
  bool was_cancelled() const { return was_cancelled_ != 0; }

  /// Ends it, past what waits to be sent.
  void Cancel(const grpc::Status& status);

 private:
  using Metadata = absl::InlinedVector<grpc_metadata, 1>;
  /// As gRPC makes a ByteBuffer of what it has received.
  struct Receiving : grpc::internal::CallOpRecvMessage<ByteBuffer> {
    using CallOpRecvMessage::AddOp;
    using CallOpRecvMessage::FinishOp;
  };

  static void Add(Metadata& to, absl::string_view key, absl::string_view value);
  /// Fills `op` in unless it was sent.
  size_t AddInitialMetadataTo(grpc_op* op);
  void AddEndTo(grpc_op* op);
  void Start(const grpc_op* ops, size_t count, void* tag);

  grpc_call* call_ = nullptr;
  grpc_call_details details_;
  grpc_metadata_array metadata_;  // the client's
  Metadata initial_;
  Metadata trailing_;
  Receiving receiving_;
  grpc_byte_buffer** received_ = nullptr;  // of receiving_
  bool has_compressed_ = false;
  bool sent_initial_ = false;
  bool awaits_end_ = false;
  int was_cancelled_ = 0;  // gRPC's bool
};

}  // namespace tensord::rpc
