// What a server is, what it does, and whether it serves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/credentials.h"
#include "tensord/plan.h"
#include "tensord/remote_tensor.h"

namespace tensord {

namespace internal {
class Channels;
}

struct DeviceInfo {
  std::string name;   // e.g. `cpu:0`
  std::string model;  // e.g. the processor's brand
  std::string architecture;
  int thread_count = 0;
  int64_t memory_bytes = 0;  // that the server may use
  std::map<std::string, std::string> properties;
  std::vector<std::string> kernels;  // by operation, in the planner's order
};

struct Limits {
  int64_t max_chunk_bytes = 0;
  int64_t max_inline_bytes = 0;
  int64_t max_message_bytes = 0;
  int max_modes = 0;
  absl::Duration max_lease;  // of whose tenant asks
  int64_t max_sessions = 0;
  int64_t max_sessions_per_peer = 0;  // of one identity, user or address
  int64_t session_quota_bytes = 0;
  int64_t max_tensors = 0;  // of a session, empty ones and views too
  /// How long a transfer waits for a client that does nothing.
  absl::Duration transfer_idle;
  int32_t max_view_stages = 0;
  int64_t max_queued_operations = 0;
  int64_t max_stream_operations = 0;
  // Of programs.
  int64_t max_program_bytes = 0;  // of their notation
  int64_t max_program_statements = 0;
  int max_program_labels = 0;       // of a tensor
  int max_program_depth = 0;        // of parentheses
  int64_t max_program_factors = 0;  // of a term; operands of a product
  absl::Duration max_search;        // PathOptions.time_budget
  int max_optimal_operands = 0;     // that PathMethod::kOptimal takes
  int max_symbolic_operands = 0;    // of a product with PathOptions.costs
  int64_t max_programs = 0;         // prepared ones of a session
};

struct ServerInfo {
  std::string version;
  std::vector<DeviceInfo> devices;
  Limits limits;
};

struct DeviceStats {
  std::string device;
  int64_t memory_used_bytes = 0;
  int64_t memory_peak_bytes = 0;
  int64_t memory_reserved_bytes = 0;
  int64_t memory_limit_bytes = 0;
  // Pinned host memory for transfers; 0 where the device's memory is the
  // host's.
  int64_t staging_used_bytes = 0;
  int64_t staging_peak_bytes = 0;
  int64_t staging_reserved_bytes = 0;
  int64_t staging_limit_bytes = 0;
  int64_t queued_operations = 0;
  int64_t executed_operations = 0;
  absl::Duration busy;
  std::string model;
  bool is_up = true;
};

struct OperationStats {
  std::string operation;
  std::string code;  // e.g. `OK`, `INVALID_ARGUMENT`
  int64_t count = 0;
};

struct PlanCacheStats {
  int64_t entry_count = 0;
  int64_t hit_count = 0;
  int64_t miss_count = 0;
  int64_t eviction_count = 0;
};

/// What is kept in host memory beside the contents of tensors.
struct HostMemoryStats {
  std::string use;  // e.g. `tensors`, `requests`
  int64_t count = 0;
  int64_t count_limit = 0;
  int64_t used_bytes = 0;
};

/// Of one tenant, or of `other`: all that have no place of their own.
struct TenantStats {
  std::string tenant;
  int64_t session_count = 0;
  int64_t tensor_count = 0;
  int64_t memory_used_bytes = 0;
  int64_t request_count = 0;
  absl::Duration device_time;
};

struct ServerStats {
  absl::Duration uptime;
  int64_t session_count = 0;
  int64_t tensor_count = 0;
  std::vector<DeviceStats> devices;
  std::vector<OperationStats> operations;
  PlanCacheStats plan_cache;
  int64_t uploaded_bytes = 0;
  int64_t downloaded_bytes = 0;
  std::vector<HostMemoryStats> host_memory;
  int64_t host_memory_limit_bytes = 0;  // of all of it together
  std::string version;
  std::string state;  // `ready`, or why new calls should go elsewhere
  std::vector<TenantStats> tenants;
};

/// As the standard health service says. Numbered as there.
enum class Health { kUnknown = 0, kServing = 1, kNotServing = 2 };

/// A tensor that tenants may read.
struct SharedTensor {
  std::string share;  // what Session::OpenShared() takes
  std::vector<std::string> tenants;
};

/// A server that is asked without a session.
///
/// Threads  safe for concurrent use.
class Server {
 public:
  /// `address` is `host:port` or `unix:/path`. Does not connect yet: the first
  /// call does. Each call takes `deadline` at most.
  explicit Server(std::string_view address,
                  absl::Duration deadline = absl::Seconds(60),
                  const Credentials& credentials = {});

  absl::StatusOr<ServerInfo> Info() const;
  absl::StatusOr<ServerStats> Stats() const;
  absl::StatusOr<Health> CheckHealth() const;

  /// The tensors of a session. Only who opened it knows its name,
  /// `sessions/{session}`.
  absl::StatusOr<std::vector<TensorInfo>> List(std::string_view session) const;

  /// The plans of a session.
  absl::StatusOr<std::vector<PlanInfo>> Plans(std::string_view session) const;

  /// The kernels of a device, in the order in which the planner asks them; ""
  /// is the server's first.
  absl::StatusOr<std::vector<KernelInfo>> Kernels(
      std::string_view device = "") const;

  /// The tensor `sessions/{session}/tensors/{tensor}`.
  absl::StatusOr<TensorInfo> Describe(std::string_view tensor) const;

  /// Deletes tensors of one session, by such names. Returns how many.
  /// Errors  that of the first that could not be deleted; the others are gone.
  absl::StatusOr<int64_t> Delete(std::span<const std::string> tensors) const;

  /// As RemoteTensor::Share() and Unshare(), by the tensor's name.
  absl::StatusOr<SharedTensor> Share(
      const std::string& tensor, std::span<const std::string> tenants) const;
  /// Returns who may still read it.
  absl::StatusOr<std::vector<std::string>> Unshare(
      const std::string& tensor, std::span<const std::string> tenants) const;

 private:
  std::shared_ptr<internal::Channels> channels_;
};

/// How large tensors get to the server and back.
enum class Transport {
  kAuto,          // by shared memory where that is possible
  kSharedMemory,  // by that, or the session is not opened
  kGrpc,
};

/// One thing that it takes, and whether it is so.
struct SharedMemoryCheck {
  std::string what;     // "socket"
  absl::Status status;  // of what was not looked at: CANCELLED
  std::string found;    // for people, where it is so
};

/// What Session::CheckSharedMemory() finds.
struct SharedMemoryReport {
  std::vector<SharedMemoryCheck> checks;  // each needs those before it
  /// Of an array up and down again; 0: it was not measured.
  double shared_bytes_per_second = 0;
  double grpc_bytes_per_second = 0;

  /// The first status that is not OK.
  absl::Status status() const {
    for (const SharedMemoryCheck& check : checks) {
      if (!check.status.ok()) return check.status;
    }
    return absl::OkStatus();
  }
};

}  // namespace tensord
