// Makes messages of what clients send.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/wire/message_shape.h"
#include "server/engine/host_memory.h"
#include "server/execution/background.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/coroutine/task.h"

namespace tensord::rpc {

/// Parses messages: what is short where it is asked to, so that they keep their
/// order, and what others would notice on threads of its own.
///
/// Threads  safe for concurrent use.
class Parser {
 public:
  /// What waits to be parsed counts in `server`, as nobody knows yet whose it
  /// is.
  explicit Parser(std::shared_ptr<server::HostLedger> server)
      : server_(std::move(server)) {}

  /// Parses `wire`, which is empty then, to `message`, which is new. Sets
  /// `bytes` to what it takes in memory at most, and copies of what is inline
  /// in it.
  ///
  /// Nothing: it is long; ParseLong() it.
  /// Errors  INVALID_ARGUMENT, reason REQUEST_MALFORMED. INVALID_ARGUMENT,
  ///         reason REQUEST_TOO_DENSE: it would take too much for what it is.
  std::optional<absl::Status> ParseShort(grpc::ByteBuffer& wire,
                                         const wire::MessageShape& shape,
                                         google::protobuf::MessageLite& message,
                                         int64_t& bytes) const;

  /// The same of a message of any length, which `hold` counts from now on.
  /// Errors  and those of HostHold::Take() and InBackground.
  Task<absl::Status> ParseLong(Call& call, grpc::ByteBuffer& wire,
                               const wire::MessageShape& shape,
                               google::protobuf::MessageLite& message,
                               int64_t& bytes, server::HostHold& hold);
  /// Has a message go that has taken `bytes`; a large one elsewhere, where
  /// `hold` counts it until then.
  void Discard(Call& call,
               std::unique_ptr<google::protobuf::MessageLite> message,
               int64_t bytes, server::HostHold hold);

 private:
  const std::shared_ptr<server::HostLedger> server_;
  server::Background threads_{/*thread_count=*/2, /*queue_limit=*/1024};
};

/// A message of a client.
///
/// Lifetime  its call and parser outlive it.
template <typename M>
class Incoming {
 public:
  Incoming(Parser& parser, Call& call) : parser_(parser), call_(call) {}
  Incoming(const Incoming&) = delete;
  ~Incoming() {
    parser_.Discard(call_, std::move(message_), bytes_, std::move(hold_));
  }

  /// Either of Parser's. Requires  called once.
  Task<absl::Status> Parse(grpc::ByteBuffer& wire) {
    static const wire::MessageShape& shape =
        wire::MessageShape::Of(*M::descriptor());
    const auto parsed = parser_.ParseShort(wire, shape, *message_, bytes_);
    if (parsed) co_return *parsed;
    co_return co_await parser_.ParseLong(call_, wire, shape, *message_, bytes_,
                                         hold_);
  }

  const M& operator*() const { return *message_; }
  const M* operator->() const { return message_.get(); }
  /// What it takes in memory, at most.
  int64_t bytes() const { return bytes_; }

 private:
  Parser& parser_;
  Call& call_;
  std::unique_ptr<M> message_ = std::make_unique<M>();
  int64_t bytes_ = 0;
  /// Of a long one, beside what counts it for its session.
  server::HostHold hold_;
};

}  // namespace tensord::rpc
