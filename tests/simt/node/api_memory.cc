// cudaMalloc, cudaMallocHost and their kin.
#include "tests/simt/node/node.h"
#include "tests/simt/report.h"

using tensord::simt::ApiCall;
using tensord::simt::CallKind;
using tensord::simt::DeviceCall;
using tensord::simt::Node;
using tensord::simt::NodeMemory;

namespace {

constexpr int kNoDevice = -2;  // cudaInvalidDeviceId

}  // namespace

extern "C" {

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return DeviceCall([=](const Node& node, int device) {
    if (free == nullptr || total == nullptr) return cudaErrorInvalidValue;
    const int64_t bytes = node.memory.device_bytes();
    *total = static_cast<size_t>(bytes);
    *free =
        static_cast<size_t>(bytes - node.memory.device_bytes_in_use(device));
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  return DeviceCall([=](Node& node, int device) {
    if (devPtr == nullptr) return cudaErrorInvalidValue;
    const cudaError_t fault = node.faults.Count(CallKind::kDeviceAllocation);
    if (fault != cudaSuccess) return node.Fail(device, fault);
    *devPtr = nullptr;
    if (size == 0) return cudaSuccess;
    *devPtr = node.memory.AllocateOnDevice(device, size);
    return *devPtr == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

cudaError_t cudaFree(void* devPtr) {
  return DeviceCall([=](Node& node, int) {
    if (devPtr == nullptr) return cudaSuccess;
    const std::optional<int> owner = node.memory.DeviceOf(devPtr);
    if (!owner.has_value()) return cudaErrorInvalidValue;
    const cudaError_t error = node.streams.DeviceError(*owner);
    if (error != cudaSuccess) return error;
    node.streams.DrainDevice(*owner);
    node.memory.FreeOnDevice(devPtr);
    return node.streams.DeviceError(*owner);
  });
}

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  return DeviceCall([=](Node& node, int device) {
    constexpr unsigned int kKnownFlags = cudaHostAllocPortable |
                                         cudaHostAllocMapped |
                                         cudaHostAllocWriteCombined;
    if (pHost == nullptr || (flags & ~kKnownFlags) != 0) {
      return cudaErrorInvalidValue;
    }
    const cudaError_t fault = node.faults.Count(CallKind::kHostAllocation);
    if (fault != cudaSuccess) return node.Fail(device, fault);
    *pHost = size == 0 ? nullptr : node.memory.AllocateOnHost(size);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  return DeviceCall([=](Node& node, int device) {
    constexpr unsigned int kKnownFlags =
        cudaHostRegisterPortable | cudaHostRegisterMapped;
    if (ptr == nullptr || size == 0 || (flags & ~kKnownFlags) != 0) {
      return cudaErrorInvalidValue;
    }
    const cudaError_t fault = node.faults.Count(CallKind::kHostAllocation);
    if (fault != cudaSuccess) return node.Fail(device, fault);
    return node.memory.Register(ptr, size)
               ? cudaSuccess
               : cudaErrorHostMemoryAlreadyRegistered;
  });
}

cudaError_t cudaHostUnregister(void* ptr) {
  return ApiCall([=](Node& node) {
    const std::optional<size_t> bytes = node.memory.RegisteredBytes(ptr);
    if (!bytes.has_value()) return cudaErrorHostMemoryNotRegistered;
    if (node.streams.IsHostMemoryInUse(ptr, *bytes)) {
      tensord::simt::Report(
          "cudaHostUnregister() of memory that a queued copy still needs");
    }
    node.memory.Unregister(ptr);
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* ptr) {
  return ApiCall([=](const Node& node) {
    if (attributes == nullptr || ptr == nullptr) return cudaErrorInvalidValue;
    const NodeMemory::Range range = node.memory.Locate(ptr, 1);
    void* const pointer = const_cast<void*>(ptr);
    if (range.place == NodeMemory::Place::kDevice) {
      *attributes = {cudaMemoryTypeDevice, range.device, pointer, nullptr};
    } else if (node.memory.IsPinned(ptr)) {
      *attributes = {cudaMemoryTypeHost, 0, pointer, pointer};
    } else {
      *attributes = {cudaMemoryTypeUnregistered, kNoDevice, nullptr, pointer};
    }
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* ptr) {
  return ApiCall([=](Node& node) {
    if (ptr == nullptr) return cudaSuccess;
    const std::optional<size_t> bytes = node.memory.PinnedBytes(ptr);
    if (!bytes.has_value()) return cudaErrorInvalidValue;
    if (node.streams.IsHostMemoryInUse(ptr, *bytes)) {
      tensord::simt::Report(
          "cudaFreeHost() of memory that a queued copy still needs");
      return cudaErrorInvalidValue;  // kept, so that the copy does no harm
    }
    node.memory.FreeOnHost(ptr);
    return cudaSuccess;
  });
}

}  // extern "C"
