// A connection to Redis whose every wait is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

struct redisContext;

namespace tensord::server {

/// What Redis answered, of the kinds that are needed here.
struct RedisReply {
  enum class Kind { kNothing, kNumber, kText, kList };

  Kind kind = Kind::kNothing;
  int64_t number = 0;
  std::string text;
  std::vector<std::string> list;  // of texts
};

/// Threads  used by one thread at a time.
class RedisConnection {
 public:
  /// `address` is HOST:PORT or unix:/PATH. Connecting, and each wait for an
  /// answer, take `timeout` at most.
  ///
  /// Errors  UNAVAILABLE, reason REDIS_UNREACHABLE. INVALID_ARGUMENT, reason
  ///         ADDRESS_MALFORMED.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(
      const std::string& address, const std::string& password,
      absl::Duration timeout);
  ~RedisConnection();

  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// Sends a command and waits for its answer.
  ///
  /// Errors  UNAVAILABLE, reason REDIS_UNREACHABLE: the connection is of no use
  ///         any more; reason REDIS_REFUSED: Redis answered with an error, and
  ///         the connection goes on.
  absl::StatusOr<RedisReply> Command(absl::Span<const absl::string_view> words);

  /// Of the socket.
  int descriptor() const;

 private:
  explicit RedisConnection(redisContext* context) : context_(context) {}

  redisContext* context_;
};

}  // namespace tensord::server
