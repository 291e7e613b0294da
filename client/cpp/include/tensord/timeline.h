// What a server does while somebody looks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/credentials.h"

namespace tensord {

namespace internal {
class Channels;
}

/// A call, or an operation of a stream, that has ended.
struct Activity {
  std::string rpc;            // e.g. `Contract`
  std::string operation;      // e.g. `contract`; empty: it computed nothing
  bool is_of_stream = false;  // one of the operations of `rpc`
  std::string kernel;
  std::string device;  // empty: it had no session; so here
  std::string tenant;
  uint64_t session_number = 0;
  std::string request_id;
  std::string trace_id;  // empty: it is part of no trace
  std::string code;      // e.g. `OK`
  absl::Time begun;
  absl::Duration took;
  // Where that went, one after the other; nothing: it was not reached.
  std::optional<absl::Duration> plan;
  std::optional<absl::Duration> queue;
  std::optional<absl::Duration> kernel_time;
  std::optional<absl::Duration> transfer;
};

struct TimelineOptions {
  absl::Duration duration = absl::Seconds(5);
  /// Only the call with this `x-request-id`, and no longer than until it has
  /// ended; empty: all.
  std::string request_id;
};

/// The timeline of a server.
///
/// Threads  safe for concurrent use.
/// Errors   those of TraceService.
class Timeline {
 public:
  /// `address` is `host:port` or `unix:/path`. Does not connect yet.
  explicit Timeline(std::string_view address,
                    const Credentials& credentials = {});

  /// Gives what ends to `take`, in that order. `begun` is called before, when
  /// nothing is missed any more. Returns how many were lost, as they were taken
  /// too slowly.
  absl::StatusOr<int64_t> Record(
      const TimelineOptions& options, const std::function<void()>& begun,
      const std::function<void(const Activity&)>& take) const;

 private:
  std::shared_ptr<internal::Channels> channels_;
};

}  // namespace tensord
