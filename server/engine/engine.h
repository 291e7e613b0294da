// Owns the devices of a node: backends, memory, plans and queues.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/backend/backend.h"
#include "core/backend/backend_module.h"
#include "core/executor/executor.h"
#include "core/memory/limiting_resource.h"
#include "core/memory/pool_resource.h"
#include "core/memory/tracking_resource.h"
#include "core/plan/plan_cache.h"
#include "server/engine/device_selection.h"
#include "server/engine/device_worker.h"

namespace tensord::server {

struct EngineOptions {
  DeviceSelection devices;
  /// The shared library that makes "cuda" devices; "": where it is installed.
  std::string cuda_module;
  /// What makes them instead of a library. Must outlive the Engine.
  const core::BackendModule* linked_cuda = nullptr;
  /// Threads for CPU kernels; 0: one a core.
  int cpu_threads = 0;
  /// Device memory that the server may use; 0: three quarters of the device's.
  int64_t memory_limit_bytes = 0;
  int64_t queue_limit = 1024;  // operations of one session that may wait
  int64_t plan_cache_entries = 65536;
};

/// A device with its memory and its queue.
///
/// Memory comes from the backend, through a limit, a pool that keeps it for
/// reuse, and a counter: memory(). Host memory for copies to and from the
/// device comes through a pool alone: staging_memory().
///
/// Threads  safe for concurrent use.
/// Owner    the Engine.
class Device {
 public:
  Device(std::unique_ptr<core::Backend> backend,
         std::unique_ptr<core::Stream> stream, const EngineOptions& options);

  const core::DeviceInfo& info() const { return backend_->info(); }
  const core::Backend& backend() const { return *backend_; }
  core::MemoryResource& memory() { return tracking_; }
  core::MemoryResource& staging_memory() { return staging_pool_; }
  /// As core::Backend::health.
  absl::Status health() const { return backend_->health(); }
  /// A stream for transfers, beside the worker's.
  absl::StatusOr<std::unique_ptr<core::Stream>> CreateStream() {
    return backend_->CreateStream();
  }
  DeviceWorker& worker() { return worker_; }

  int64_t memory_limit_bytes() const { return limit_.limit_bytes(); }
  int64_t memory_reserved_bytes() const { return pool_.reserved_bytes(); }
  core::MemoryStatistics memory_statistics() const {
    return tracking_.statistics();
  }

 private:
  const std::unique_ptr<core::Backend> backend_;
  core::LimitingResource limit_;
  core::PoolResource pool_;
  core::TrackingResource tracking_;
  core::PoolResource staging_pool_;
  DeviceWorker worker_;
};

/// Threads   safe for concurrent use.
/// Lifetime  outlives sessions, tensors and plans.
class Engine {
 public:
  /// Errors  UNAVAILABLE: a device or a library that was named could not be
  ///         opened.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(
      const EngineOptions& options);

  /// The default device first.
  std::span<const std::unique_ptr<Device>> devices() const { return devices_; }

  /// Why devices that were not named are not there, a sentence each.
  std::span<const std::string> omissions() const { return omissions_; }

  /// OK, or the error with which the first lost device was lost.
  absl::Status health() const;

  /// The device of that name; the first one for "".
  /// Errors  INVALID_ARGUMENT, reason DEVICE_NOT_FOUND: lists the devices.
  absl::StatusOr<Device*> FindDevice(absl::string_view name) const;

  /// The plan of `key` on `device`, from the cache or made now. A plan that is
  /// to be measured, and has not been, goes by predictions, as its selection
  /// says. Errors  as core::MakePlan.
  absl::StatusOr<core::PlanCache::Lookup> PlanFor(const Device& device,
                                                  const core::PlanKey& key);

  /// The plan of `key`, from the cache or measured now with `operands`, of
  /// which d is scratch memory. On the thread that launches the device's work.
  /// Errors  as core::MeasurePlan.
  absl::StatusOr<core::PlanCache::Lookup> MeasuredPlanFor(
      const Device& device, const core::PlanKey& key,
      const core::AnyOperands& operands, core::MemoryResource& memory,
      core::Stream& stream);

  core::PlanCacheStatistics plan_cache_statistics() const {
    return plans_.statistics();
  }

 private:
  explicit Engine(const EngineOptions& options)
      : plans_(options.plan_cache_entries) {}

  absl::Status AddCpu(const EngineOptions& options);
  /// Adds GPU `ordinal`, or all.
  absl::Status AddCuda(const EngineOptions& options, int ordinal);
  absl::Status Add(std::unique_ptr<core::Backend> backend,
                   const EngineOptions& options);

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::string> omissions_;
  core::PlanCache plans_;
};

/// PlanKey::device of `device`.
std::string PlanDevice(const Device& device);

}  // namespace tensord::server
