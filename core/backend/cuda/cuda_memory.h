// Memory of a GPU, and of the host for copies to and from it.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/backend.h"
#include "core/backend/cuda/cuda_device.h"
#include "core/memory/memory_resource.h"

namespace tensord::core {

/// Memory of the device. Slow, and it waits for the device: put a pool on top.
class CudaMemory final : public MemoryResource {
 public:
  explicit CudaMemory(CudaDevice& device) : device_(device) {}

  /// Errors  RESOURCE_EXHAUSTED, reason DEVICE_MEMORY_EXHAUSTED: bytes asked,
  ///         free and in all. UNAVAILABLE: the device is lost.
  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Deallocate(void* pointer, int64_t bytes) override;
  absl::Status Clear(void* pointer, int64_t bytes) override;

 private:
  CudaDevice& device_;
};

/// Host memory that the device can copy from and to by itself.
class PinnedMemory final : public MemoryResource {
 public:
  explicit PinnedMemory(CudaDevice& device) : device_(device) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Deallocate(void* pointer, int64_t bytes) override;
  absl::Status Clear(void* pointer, int64_t bytes) override;

 private:
  CudaDevice& device_;
};

/// As Backend::Pin(). Slow: the system fixes every page in its place.
absl::StatusOr<std::unique_ptr<PinnedRange>> PinHostMemory(CudaDevice& device,
                                                           void* start,
                                                           int64_t bytes);

}  // namespace tensord::core
