// What whoever runs a server sees of its sessions and calls, and has it do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/credentials.h"
#include "tensord/element_type.h"
#include "tensord/remote_tensor.h"
#include "tensord/server.h"

namespace tensord {

/// A session as operators know it: by number, as its name is the key to it.
struct SessionState {
  int64_t number = 0;
  std::string tenant;
  std::string job;
  std::string peer;  // who opened it
  std::string device;
  int priority = 0;
  absl::Duration age;
  absl::Duration idle;  // since it did more than to stay alive; 0 while it does
  absl::Duration lease;
  absl::Duration lease_left;
  int64_t tensor_count = 0;
  int64_t memory_used_bytes = 0;
  int64_t memory_quota_bytes = 0;
  int64_t queued_operations = 0;
  int64_t running_operations = 0;
};

/// A call of a session that has not ended.
struct RunningCall {
  std::string request_id;
  std::string rpc;  // e.g. `Contract`
  int64_t session_number = 0;
  std::string tenant;
  absl::Duration elapsed;
};

struct LargeTensor {
  std::string id;  // within its session
  int64_t session_number = 0;
  std::string tenant;
  std::string device;
  ElementType element_type = ElementType::kFloat32;
  std::vector<int64_t> extents;
  int64_t bytes = 0;  // that it has, or will have; 0 for views
  bool is_view = false;
  TensorState state = TensorState::kEmpty;
};

struct Evicted {
  std::vector<int64_t> session_numbers;
  int64_t memory_bytes = 0;  // that they held
};

struct TrimmedDevice {
  std::string device;
  int64_t memory_bytes = 0;
  int64_t staging_bytes = 0;
};

/// What was given back to the system.
struct Trimmed {
  std::vector<TrimmedDevice> devices;
  int64_t heap_bytes = 0;  // of the process itself
};

struct ServerSetting {
  std::string key;
  std::string value;   // in TOML; "": it is not set
  std::string origin;  // e.g. `default`, `FILE:LINE`
  std::vector<std::string> values;
};

struct ReloadedFiles {
  std::string what;  // e.g. `tokens`
  std::vector<std::string> paths;
  std::string error;  // why what was there before is kept; "": it is not
};

/// A server, in an operator's hands. Each call takes `deadline` at most.
///
/// Threads  safe for concurrent use.
/// Errors   those of AdminService; PERMISSION_DENIED, reason OPERATORS_ONLY,
/// for
///          whoever is none.
class Operator {
 public:
  /// `address` is `host:port` or `unix:/path`. Does not connect yet.
  explicit Operator(std::string_view address,
                    absl::Duration deadline = absl::Seconds(60),
                    const Credentials& credentials = {});

  absl::StatusOr<ServerStats> Stats() const;
  /// All sessions, or those of a tenant, by number.
  absl::StatusOr<std::vector<SessionState>> Sessions(
      std::string_view tenant = "") const;
  /// Up to `most` that hold most memory.
  absl::StatusOr<std::vector<SessionState>> LargestSessions(int most) const;
  /// Calls that run, of all sessions or one, the oldest first: a thousand at
  /// most.
  absl::StatusOr<std::vector<RunningCall>> Operations(
      std::optional<int64_t> session_number = std::nullopt) const;
  /// Up to `most` tensors, of all sessions or one, the largest first.
  absl::StatusOr<std::vector<LargeTensor>> Tensors(
      int64_t most, std::optional<int64_t> session_number = std::nullopt) const;

  /// Both return how many calls were asked to end.
  absl::StatusOr<int64_t> CancelRequest(std::string_view request_id) const;
  absl::StatusOr<int64_t> CancelSession(int64_t number) const;
  absl::StatusOr<Evicted> EvictSession(int64_t number) const;
  /// Sessions of a tenant that have been idle as long.
  absl::StatusOr<Evicted> EvictIdle(std::string_view tenant,
                                    absl::Duration idle) const;
  absl::StatusOr<Trimmed> Trim() const;
  /// The process ends; calls have `timeout`, or what its options say.
  absl::Status Drain(std::optional<absl::Duration> timeout) const;

  absl::StatusOr<std::vector<ServerSetting>> Config() const;
  absl::StatusOr<std::vector<ReloadedFiles>> Reload() const;
  /// The least level that is logged.
  absl::StatusOr<std::string> LogLevel() const;
  /// Returns the one before.
  absl::StatusOr<std::string> SetLogLevel(std::string_view level) const;

 private:
  std::shared_ptr<internal::Channels> channels_;
};

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
  /// Only what this tenant does; empty: all do.
  std::string tenant;
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
