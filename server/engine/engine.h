// Owns the devices of a node: backends, memory, plans and queues.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/backend/backend.h"
#include "core/backend/backend_module.h"
#include "core/executor/executor.h"
#include "core/memory/limiting_resource.h"
#include "core/memory/pool_resource.h"
#include "core/memory/tracking_resource.h"
#include "core/plan/plan_cache.h"
#include "server/engine/device_selection.h"
#include "server/engine/device_worker.h"
#include "server/engine/shared_memory.h"

namespace tensord::server {

struct EngineOptions {
  DeviceSelection devices;
  /// The shared library that makes "cuda" devices; "": where it is installed.
  std::string cuda_module;
  /// A server without a GPU is of no use.
  bool requires_gpu = false;
  /// What makes them instead of a library. Must outlive the Engine.
  const core::BackendModule* linked_cuda = nullptr;
  /// Threads for CPU kernels; 0: one a core.
  int cpu_threads = 0;
  /// Device memory that the server may use; 0: DefaultMemoryLimit().
  int64_t memory_limit_bytes = 0;
  /// Host memory for copies to and from each device that has its own, half as
  /// much again for regions of clients; 0: an eighth of the host's for all of
  /// them.
  int64_t staging_limit_bytes = 0;
  /// Size of each of the two buffers of the bandwidth test; a quarter in host
  /// memory, and at most an eighth of what the server may use. 0: no test.
  int64_t bandwidth_bytes = 0;
  int64_t queue_limit = 1024;  // operations of one session that may wait
  /// What is predicted to take longer is refused.
  absl::Duration longest_operation = absl::Hours(1);
  std::map<std::string, double> weights;  // of jobs that share a device
  /// Clears memory that goes from one tenant to another.
  bool clears_memory = false;
  int64_t plan_cache_entries = 65536;
  int64_t plan_cache_bytes = int64_t{256} << 20;
  /// Makes what stands between the memory of a device and all that takes some;
  /// for tests of what is left when it refuses.
  std::function<std::unique_ptr<core::MemoryResource>(core::MemoryResource&)>
      memory_filter;
};

/// A device with its memory and its queue.
///
/// Memory comes from the backend, through a limit, a pool that keeps it for
/// reuse, and a counter: memory(). Tenants have shares of that. So does host
/// memory for copies to and from the device: staging_memory(), of which there
/// is none where the device's memory is the host's.
///
/// Threads  safe for concurrent use.
/// Owner    the Engine.
class Device {
 public:
  /// `info` is the backend's, with what is known beyond it.
  Device(std::unique_ptr<core::Backend> backend, core::DeviceInfo info,
         std::unique_ptr<core::Stream> stream, const EngineOptions& options);

  const core::DeviceInfo& info() const { return info_; }
  const core::Backend& backend() const { return *backend_; }
  /// PlanKey::device: all of the device that plans and their times depend on.
  const std::string& plan_device() const { return plan_device_; }
  core::MemoryResource& memory() { return memory_.tracking; }
  core::MemoryResource& staging_memory() { return staging_.tracking; }
  SharedMemory& shared_memory() { return memory_.shared; }
  SharedMemory& shared_staging() { return staging_.shared; }
  /// What clients bring of the host's memory, to be pinned beside staging
  /// memory, so that transfers always have that; none where the device's
  /// memory is the host's.
  SharedMemory& shared_regions() { return regions_; }
  /// As core::Backend::health.
  absl::Status health() const { return backend_->health(); }
  /// A stream for transfers, beside the worker's.
  absl::StatusOr<std::unique_ptr<core::Stream>> CreateStream() {
    return backend_->CreateStream();
  }
  /// As core::Backend has it.
  absl::StatusOr<std::unique_ptr<core::PinnedRange>> Pin(void* start,
                                                         int64_t bytes) {
    return backend_->Pin(start, bytes);
  }
  /// As core::Backend has them, on the worker's stream.
  absl::Status Gather(const core::GatherSteps& steps,
                      const core::GatherOperands& operands,
                      core::Stream& stream) {
    return backend_->Gather(steps, operands, stream);
  }
  absl::Status Scatter(const core::GatherSteps& steps,
                       const core::ScatterOperands& operands,
                       core::Stream& stream) {
    return backend_->Scatter(steps, operands, stream);
  }
  absl::Status Fill(const core::FillOperands& operands, core::Stream& stream) {
    return backend_->Fill(operands, stream);
  }
  absl::Status Copy(const core::CopyOperands& operands, core::Stream& stream) {
    return backend_->Copy(operands, stream);
  }
  DeviceWorker& worker() { return worker_; }
  absl::Duration longest_operation() const { return longest_operation_; }

  int64_t memory_limit_bytes() const { return memory_.limit.limit_bytes(); }
  int64_t memory_reserved_bytes() const {
    return memory_.pool.reserved_bytes();
  }
  core::MemoryStatistics memory_statistics() const {
    return memory_.tracking.statistics();
  }

  /// What was given back, in bytes.
  struct Trimmed {
    int64_t memory_bytes = 0;
    int64_t staging_bytes = 0;
  };
  /// Gives back what is kept for reuse and nobody uses.
  Trimmed Trim();

  int64_t staging_limit_bytes() const { return staging_.limit.limit_bytes(); }
  int64_t regions_limit_bytes() const { return regions_limit_.limit_bytes(); }
  int64_t staging_reserved_bytes() const {
    return staging_.pool.reserved_bytes();
  }
  core::MemoryStatistics staging_statistics() const {
    return staging_.tracking.statistics();
  }

 private:
  struct MeteredMemory {
    MeteredMemory(core::MemoryResource& upstream,
                  const SharedMemory::Options& sharing,
                  const EngineOptions& options)
        : limit(upstream, sharing.limit_bytes, sharing.what),
          pool(limit, core::PoolOptions{},
               [this](void* slab, int64_t bytes) {
                 shared.Forget(slab, bytes);
               }),
          filter(options.memory_filter ? options.memory_filter(pool) : nullptr),
          tracking(filter == nullptr ? static_cast<core::MemoryResource&>(pool)
                                     : *filter),
          shared(tracking, sharing) {}
    ~MeteredMemory() { pool.Trim(); }  // before `shared` goes

    core::LimitingResource limit;
    core::PoolResource pool;
    std::unique_ptr<core::MemoryResource> filter;  // often null
    core::TrackingResource tracking;
    SharedMemory shared;
  };

  const std::unique_ptr<core::Backend> backend_;
  const core::DeviceInfo info_;
  const std::string plan_device_;
  MeteredMemory memory_;
  MeteredMemory staging_;
  core::LimitingResource regions_limit_;
  SharedMemory regions_;
  const absl::Duration longest_operation_;
  DeviceWorker worker_;
};

/// Threads   safe for concurrent use.
/// Lifetime  outlives sessions, tensors and plans.
class Engine {
 public:
  /// Errors  UNAVAILABLE: a device or a library that was named could not be
  ///         opened. UNAVAILABLE, reason GPU_REQUIRED: there is none, and why.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(
      const EngineOptions& options);

  /// The default device first.
  std::span<const std::unique_ptr<Device>> devices() const { return devices_; }

  /// Why devices that nobody named are not there, or were not measured; a
  /// sentence each.
  std::span<const std::string> omissions() const { return omissions_; }

  /// Why a server that was built for GPUs has none; "" where it has one, was
  /// built for none, or was told which devices to use.
  const std::string& missing_gpu() const { return missing_gpu_; }

  /// OK, or the error with which the first lost device was lost.
  absl::Status health() const;

  /// The device of that name; the first one for "".
  /// Errors  INVALID_ARGUMENT, reason DEVICE_NOT_FOUND: lists the devices.
  absl::StatusOr<Device*> FindDevice(absl::string_view name) const;

  /// The plan of `key` on `device`, from the cache or made now: by predictions,
  /// as its selection then says, if it is to be measured and has not been.
  /// Errors  as core::MakePlan.
  absl::StatusOr<core::PlanCache::Lookup> PlanFor(const Device& device,
                                                  const core::PlanKey& key,
                                                  absl::string_view job);

  /// The plan of `key`, from the cache or measured now with `operands`, of
  /// which d is scratch memory. On the thread that launches the device's work.
  /// Null while another caller measures it: that may have given way to this
  /// one, and would wait for it.
  /// Errors  as core::MeasurePlan.
  absl::StatusOr<core::PlanCache::Lookup> MeasuredPlanFor(
      const Device& device, const core::PlanKey& key, absl::string_view job,
      const core::AnyOperands& operands, core::MemoryResource& memory,
      core::Stream& stream);

  /// The plan to run, and take the time of, in place of the one that PlanFor()
  /// gave for a key with INCREMENTAL selection; null when there is none to try.
  /// The time, or the failure, goes to plans().
  std::shared_ptr<const core::Plan> NextPlanToTry(const Device& device,
                                                  const core::PlanKey& key);

  core::PlanCache& plans() { return plans_; }

 private:
  explicit Engine(const EngineOptions& options)
      : plans_({.entry_limit = options.plan_cache_entries,
                .byte_limit = options.plan_cache_bytes}) {}

  /// Adds what `--devices=auto` stands for.
  absl::Status AddAll(const EngineOptions& options);
  absl::Status AddCpu(const EngineOptions& options);
  /// Adds GPU `ordinal`, or all.
  absl::Status AddCuda(const EngineOptions& options, int ordinal);
  absl::Status Add(std::unique_ptr<core::Backend> backend,
                   const EngineOptions& options);

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::string> omissions_;
  std::string missing_gpu_;
  core::PlanCache plans_;
};

}  // namespace tensord::server
