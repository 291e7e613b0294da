#include "server/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/base/status.h"
#include "core/executor/copy_bandwidth.h"
#include "core/executor/measure.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/planner.h"
#include "server/engine/control_groups.h"
#include "server/engine/host_memory.h"
#include "server/engine/module_loader.h"

namespace tensord::server {
namespace {

/// As given, or one a core, of those that a control group pays for.
int ThreadCount(const EngineOptions& options) {
  const std::optional<double> quota = CoreQuota();
  const auto cores = static_cast<double>(std::thread::hardware_concurrency());
  if (options.cpu_threads > 0 || !quota || *quota >= cores) {
    return options.cpu_threads;
  }
  return static_cast<int>(std::ceil(*quota));
}

constexpr char kCudaModule[] = "libtensord_cuda.so";

/// Transfers give staging memory back after each chunk or so.
constexpr absl::Duration kStagingReturns = absl::Milliseconds(100);

int64_t MemoryLimit(const core::Backend& backend,
                    const EngineOptions& options) {
  if (options.memory_limit_bytes > 0) return options.memory_limit_bytes;
  return DefaultMemoryLimit(backend.info().memory_bytes,
                            backend.info().uses_host_memory);
}

int64_t StagingLimit(const core::Backend& backend,
                     const EngineOptions& options) {
  return backend.info().uses_host_memory ? 0 : options.staging_limit_bytes;
}

int64_t BandwidthBytes(const core::Backend& backend,
                       const EngineOptions& options) {
  return std::min(
      options.bandwidth_bytes / (backend.info().uses_host_memory ? 4 : 1),
      MemoryLimit(backend, options) / 8);
}

/// The device and the libraries of its kernels: plans, and times that kernels
/// took, hold for these alone.
std::string PlanDeviceOf(const core::DeviceInfo& info) {
  std::string text = absl::StrCat(info.name, " ", info.architecture, " ",
                                  info.model, " ", info.thread_count);
  for (const auto& [key, value] : info.properties) {
    if (key == "blas" || key == "cublaslt" || key == "cusolver") {
      absl::StrAppend(&text, " ", key, " ", value);
    }
  }
  return text.substr(0, core::kMaxKeyNameBytes);
}

absl::StatusOr<const core::BackendModule*> CudaModule(
    const EngineOptions& options) {
  if (options.linked_cuda != nullptr) return options.linked_cuda;
  return LoadBackendModule(options.cuda_module.empty()
                               ? DefaultModulePath(kCudaModule)
                               : options.cuda_module);
}

}  // namespace

Device::Device(std::unique_ptr<core::Backend> backend, core::DeviceInfo info,
               std::unique_ptr<core::Stream> stream,
               const EngineOptions& options)
    : backend_(std::move(backend)),
      info_(std::move(info)),
      plan_device_(PlanDeviceOf(info_)),
      memory_(backend_->memory(),
              {.what = absl::StrCat("memory of ", info_.name),
               .limit_bytes = MemoryLimit(*backend_, options),
               .clears = options.clears_memory,
               .new_is_clean = info_.uses_host_memory,
               .quota = "device_bytes",
               .retry_after = {}},
              options),
      // Of staging memory nobody reads what they have not written.
      staging_(backend_->staging_memory(),
               {.what = absl::StrCat("staging memory of ", info_.name),
                .limit_bytes = StagingLimit(*backend_, options),
                .quota = "staging_bytes",
                .retry_after = kStagingReturns},
               options),
      regions_limit_(backend_->staging_memory(),
                     StagingLimit(*backend_, options) / 2,
                     absl::StrCat("shared memory for ", info_.name)),
      regions_(regions_limit_,
               {.what = absl::StrCat("shared memory for ", info_.name),
                .limit_bytes = StagingLimit(*backend_, options) / 2,
                .quota = "staging_bytes",
                .retry_after = {}}),
      longest_operation_(options.longest_operation),
      worker_(std::move(stream), [this] { return backend_->CreateStream(); },
              {.queue_limit = options.queue_limit,
               .is_synchronous = !info_.is_asynchronous,
               .weights = options.weights}) {}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(
    const EngineOptions& options) {
  TENSORD_RETURN_IF_ERROR(CheckHostMemory());
  std::unique_ptr<Engine> engine(new Engine(options));
  if (options.devices.is_automatic) {
    TENSORD_RETURN_IF_ERROR(engine->AddAll(options));
  }
  for (const DeviceSelection::Item& item : options.devices.items) {
    TENSORD_RETURN_IF_ERROR(item.kind == "cuda"
                                ? engine->AddCuda(options, item.ordinal)
                                : engine->AddCpu(options));
  }
  const bool has_gpu = std::any_of(
      engine->devices_.begin(), engine->devices_.end(),
      [](const auto& device) { return !device->info().uses_host_memory; });
  if (options.requires_gpu && !has_gpu) {
    return core::Error(absl::StatusCode::kUnavailable, "GPU_REQUIRED",
                       absl::StrCat("a GPU is required, and there is none: ",
                                    engine->omissions_.empty()
                                        ? "only other devices were named"
                                        : engine->omissions_.front()));
  }
  return engine;
}

absl::Status Engine::AddAll(const EngineOptions& options) {
  const absl::Status added = AddCuda(options, DeviceSelection::kAll);
  const bool has_library = core::ReasonOf(added) != kModuleNotLoaded;
  // A library that was named is wanted.
  if (!options.cuda_module.empty() && !has_library) return added;
  if (!added.ok()) omissions_.emplace_back(added.message());
  if (has_library && devices_.empty()) {
    missing_gpu_ = omissions_.empty() ? "no GPU is there" : omissions_.front();
  }
  return AddCpu(options);
}

absl::Status Engine::AddCpu(const EngineOptions& options) {
  return Add(core::CreateCpuBackend({.thread_count = ThreadCount(options),
                                     .memory_bytes = HostMemoryBytes()}),
             options);
}

absl::Status Engine::AddCuda(const EngineOptions& options, int ordinal) {
  TENSORD_ASSIGN_OR_RETURN(const core::BackendModule* const module,
                           CudaModule(options));
  int first = ordinal;
  int last = ordinal;
  if (ordinal == DeviceSelection::kAll) {
    TENSORD_ASSIGN_OR_RETURN(const int count, module->count_devices());
    first = 0;
    last = count - 1;
  }
  EngineOptions own = options;
  if (own.staging_limit_bytes == 0) {
    const auto& items = options.devices.items;
    const auto named =
        std::count_if(items.begin(), items.end(),
                      [](const auto& item) { return item.kind == "cuda"; });
    own.staging_limit_bytes =
        HostMemoryBytes() / 8 / std::max<int64_t>({named, last - first + 1, 1});
  }
  for (int i = first; i <= last; ++i) {
    absl::StatusOr<std::unique_ptr<core::Backend>> backend = module->create(i);
    const absl::Status added =
        backend.ok() ? Add(*std::move(backend), own) : backend.status();
    if (added.ok()) continue;
    if (!options.devices.is_automatic) return added;
    omissions_.emplace_back(added.message());
  }
  return absl::OkStatus();
}

absl::Status Engine::Add(std::unique_ptr<core::Backend> backend,
                         const EngineOptions& options) {
  TENSORD_ASSIGN_OR_RETURN(std::unique_ptr<core::Stream> stream,
                           backend->CreateStream());
  core::DeviceInfo info = backend->info();
  const int64_t bytes = BandwidthBytes(*backend, options);
  if (bytes > 0) {
    const auto bandwidth = core::MeasureCopyBandwidth(*backend, bytes, *stream);
    if (bandwidth.ok()) {
      info.properties.emplace_back("copy_gb_per_s",
                                   absl::StrCat(std::llround(*bandwidth)));
    } else if (!backend->health().ok()) {
      return backend->health();
    } else {
      omissions_.push_back(
          absl::StrCat("the copy bandwidth of ", info.name,
                       " is not known: ", bandwidth.status().message()));
    }
  }
  devices_.push_back(std::make_unique<Device>(
      std::move(backend), std::move(info), std::move(stream), options));
  return absl::OkStatus();
}

Device::Trimmed Device::Trim() {
  const auto trim = [](core::PoolResource& pool) {
    const int64_t before = pool.reserved_bytes();
    pool.Trim();
    return std::max<int64_t>(0, before - pool.reserved_bytes());
  };
  return {.memory_bytes = trim(memory_.pool),
          .staging_bytes = trim(staging_.pool)};
}

absl::Status Engine::health() const {
  for (const auto& device : devices_) {
    TENSORD_RETURN_IF_ERROR(device->health());
  }
  return absl::OkStatus();
}

absl::StatusOr<Device*> Engine::FindDevice(absl::string_view name) const {
  if (name.empty()) return devices_.front().get();
  for (const auto& device : devices_) {
    if (device->info().name == name) return device.get();
  }
  return core::InvalidArgument(
      "DEVICE_NOT_FOUND", "there is no device '", name, "', there are ",
      absl::StrJoin(devices_, ", ", [](std::string* out, const auto& device) {
        absl::StrAppend(out, device->info().name);
      }));
}

absl::StatusOr<core::PlanCache::Lookup> Engine::PlanFor(
    const Device& device, const core::PlanKey& key, absl::string_view job) {
  const core::PlanAsker asker{job, &device.backend()};
  core::PlanKey predicted = key;
  if (key.selection == core::Selection::kMeasure) {
    if (auto plan = plans_.Find(key, asker)) return {{std::move(plan), true}};
    predicted.selection = core::Selection::kHeuristic;
  }
  return plans_.GetOrMake(
      predicted, [&] { return core::MakePlan(device.backend(), predicted); },
      asker);
}

absl::StatusOr<core::PlanCache::Lookup> Engine::MeasuredPlanFor(
    const Device& device, const core::PlanKey& key, absl::string_view job,
    const core::AnyOperands& operands, core::MemoryResource& memory,
    core::Stream& stream) {
  // What was chosen with too little memory is for this caller alone.
  std::optional<core::Plan> own;
  const auto measure = [&]() -> absl::StatusOr<core::Plan> {
    TENSORD_ASSIGN_OR_RETURN(
        core::MeasuredPlan measured,
        core::MeasurePlan(device.backend(), key, operands, memory, stream));
    if (measured.is_complete) return std::move(measured.plan);
    own = std::move(measured.plan);
    return absl::CancelledError("not for everybody");
  };
  auto lookup = plans_.GetOrTryToMake(key, measure, {job, &device.backend()});
  if (!own) return lookup;
  return {{std::make_shared<const core::Plan>(*std::move(own)), false}};
}

std::shared_ptr<const core::Plan> Engine::NextPlanToTry(
    const Device& device, const core::PlanKey& key) {
  return plans_.NextToTry(
      key, [&] { return core::ListPlans(device.backend(), key); });
}

}  // namespace tensord::server
