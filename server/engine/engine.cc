#include "server/engine/engine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/base/status.h"
#include "core/plan/planner.h"

namespace tensord::server {
namespace {

int64_t MemoryLimit(const core::Backend& backend,
                    const EngineOptions& options) {
  return options.memory_limit_bytes > 0 ? options.memory_limit_bytes
                                        : backend.info().memory_bytes / 4 * 3;
}

}  // namespace

Device::Device(std::unique_ptr<core::Backend> backend,
               std::unique_ptr<core::Stream> stream,
               const EngineOptions& options)
    : backend_(std::move(backend)),
      limit_(backend_->memory(), MemoryLimit(*backend_, options),
             absl::StrCat("memory of ", backend_->info().name)),
      pool_(limit_, core::PoolOptions{}),
      tracking_(pool_),
      worker_(std::move(stream), options.queue_limit) {}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(
    const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(options));
  std::unique_ptr<core::Backend> cpu =
      core::CreateCpuBackend({.thread_count = options.cpu_threads});
  TENSORD_ASSIGN_OR_RETURN(std::unique_ptr<core::Stream> stream,
                           cpu->CreateStream());
  engine->devices_.push_back(
      std::make_unique<Device>(std::move(cpu), std::move(stream), options));
  return engine;
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
    const Device& device, const core::PlanKey& key) {
  return plans_.GetOrMake(
      key, [&] { return core::MakePlan(device.backend(), key); });
}

std::string PlanDevice(const Device& device) {
  return absl::StrCat(device.info().name, " ", device.info().architecture);
}

}  // namespace tensord::server
