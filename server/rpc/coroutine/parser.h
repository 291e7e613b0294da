// Makes messages of what clients send.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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
  /// Whether others would notice that a message goes which has taken `bytes`.
  static bool IsLarge(int64_t bytes) { return bytes > kSmallBytes; }
  /// Has a large one go elsewhere, where `hold` counts it until then.
  void Discard(Call& call,
               std::unique_ptr<google::protobuf::MessageLite> message,
               server::HostHold hold);

 private:
  static constexpr int64_t kSmallBytes = int64_t{4} << 20;

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
    if (!Parser::IsLarge(bytes_)) return;
    parser_.Discard(call_, std::make_unique<M>(std::move(message_)),
                    std::move(hold_));
  }

  /// Either of Parser's, to be awaited. A short message needs no coroutine.
  /// Requires  called once.
  auto Parse(grpc::ByteBuffer& wire) {
    struct Parsing {
      Incoming& to;
      grpc::ByteBuffer& wire;
      std::optional<absl::Status> parsed = std::nullopt;
      std::optional<Task<absl::Status>> parses = std::nullopt;

      bool await_ready() {
        parsed = to.parser_.ParseShort(wire, Shape(), to.message_, to.bytes_);
        return parsed.has_value();
      }
      bool await_suspend(std::coroutine_handle<> waiter) {
        parses.emplace(to.parser_.ParseLong(to.call_, wire, Shape(),
                                            to.message_, to.bytes_, to.hold_));
        return parses->await_suspend(waiter);
      }
      absl::Status await_resume() {
        return parses ? parses->await_resume() : *std::move(parsed);
      }
    };
    return Parsing{*this, wire};
  }

  const M& operator*() const { return message_; }
  const M* operator->() const { return &message_; }
  /// What it takes in memory, at most.
  int64_t bytes() const { return bytes_; }

 private:
  static const wire::MessageShape& Shape() {
    static const wire::MessageShape& shape =
        wire::MessageShape::Of(*M::descriptor());
    return shape;
  }

  Parser& parser_;
  Call& call_;
  M message_;
  int64_t bytes_ = 0;
  /// Of a long one, beside what counts it for its session.
  server::HostHold hold_;
};

}  // namespace tensord::rpc
