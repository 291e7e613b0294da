// cudaGetDevice..., cudaDevice..., versions, occupancy.
#include <algorithm>
#include <cstring>

#include "tests/simt/device_limits.h"
#include "tests/simt/node/node.h"

using tensord::simt::ApiCall;
using tensord::simt::CallKind;
using tensord::simt::DeviceCall;
using tensord::simt::kDefaultSharedBytes;
using tensord::simt::kL2CacheBytes;
using tensord::simt::kMaxBlocksPerMultiprocessor;
using tensord::simt::kMaxThreadsPerBlock;
using tensord::simt::kMaxThreadsPerMultiprocessor;
using tensord::simt::kMemoryBusBits;
using tensord::simt::kOptInSharedBytes;
using tensord::simt::kReservedSharedBytes;
using tensord::simt::kSharedBytesPerMultiprocessor;
using tensord::simt::kWarpThreads;
using tensord::simt::Node;

namespace {

constexpr int kVersion = 13000;
constexpr int kClockKilohertz = 1'980'000;
constexpr int kFirstPciBus = 0x1b;

int PciBus(int device) { return kFirstPciBus + device; }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return ApiCall([=](const Node& node) {
    if (count == nullptr) return cudaErrorInvalidValue;
    if (node.desc.device_count == 0) return cudaErrorNoDevice;
    *count = node.desc.device_count;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return ApiCall([=](const Node& node) {
    if (!node.IsDevice(device)) return cudaErrorInvalidDevice;
    tensord::simt::SetCurrentDevice(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return ApiCall([=](const Node&) {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = tensord::simt::CurrentDevice();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return ApiCall([=](const Node& node) {
    if (prop == nullptr) return cudaErrorInvalidValue;
    if (!node.IsDevice(device)) return cudaErrorInvalidDevice;
    *prop = {};
    const size_t length =
        std::min(node.desc.device_name.size(), sizeof(prop->name) - 1);
    std::memcpy(prop->name, node.desc.device_name.data(), length);
    prop->totalGlobalMem = static_cast<size_t>(node.desc.memory_bytes);
    prop->major = node.desc.compute_capability_major;
    prop->minor = node.desc.compute_capability_minor;
    prop->multiProcessorCount = node.desc.multiprocessor_count;
    prop->pciBusID = PciBus(device);
    prop->memoryBusWidth = kMemoryBusBits;
    prop->l2CacheSize = kL2CacheBytes;
    prop->maxThreadsPerMultiProcessor = kMaxThreadsPerMultiprocessor;
    prop->sharedMemPerBlockOptin = kOptInSharedBytes;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr,
                                   int device) {
  return ApiCall([=](const Node& node) {
    if (value == nullptr) return cudaErrorInvalidValue;
    if (!node.IsDevice(device)) return cudaErrorInvalidDevice;
    switch (attr) {
      case cudaDevAttrMaxThreadsPerBlock: *value = kMaxThreadsPerBlock; break;
      case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = kDefaultSharedBytes;
        break;
      case cudaDevAttrWarpSize: *value = kWarpThreads; break;
      case cudaDevAttrClockRate: *value = kClockKilohertz; break;
      case cudaDevAttrMultiProcessorCount:
        *value = node.desc.multiprocessor_count;
        break;
      case cudaDevAttrPciBusId: *value = PciBus(device); break;
      case cudaDevAttrPciDeviceId: *value = 0; break;
      case cudaDevAttrMemoryClockRate:
        *value = node.desc.memory_clock_kilohertz;
        break;
      case cudaDevAttrGlobalMemoryBusWidth: *value = kMemoryBusBits; break;
      case cudaDevAttrL2CacheSize: *value = kL2CacheBytes; break;
      case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = kMaxThreadsPerMultiprocessor;
        break;
      case cudaDevAttrPciDomainId: *value = 0; break;
      case cudaDevAttrComputeCapabilityMajor:
        *value = node.desc.compute_capability_major;
        break;
      case cudaDevAttrComputeCapabilityMinor:
        *value = node.desc.compute_capability_minor;
        break;
      case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = kSharedBytesPerMultiprocessor;
        break;
      case cudaDevAttrCanUseHostPointerForRegisteredMem: *value = 1; break;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = kOptInSharedBytes;
        break;
      case cudaDevAttrReservedSharedMemoryPerBlock:
        *value = kReservedSharedBytes;
        break;
      default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device,
                                    int peerDevice) {
  return ApiCall([=](const Node& node) {
    if (canAccessPeer == nullptr) return cudaErrorInvalidValue;
    if (!node.IsDevice(device) || !node.IsDevice(peerDevice)) {
      return cudaErrorInvalidDevice;
    }
    *canAccessPeer = node.desc.can_access_peers && device != peerDevice;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  return DeviceCall([=](Node& node, int device) {
    if (flags != 0) return cudaErrorInvalidValue;
    if (!node.IsDevice(peerDevice) || peerDevice == device) {
      return cudaErrorInvalidDevice;
    }
    if (!node.desc.can_access_peers) return cudaErrorPeerAccessUnsupported;
    const tensord::simt::DeviceSet peer = tensord::simt::SetOf(peerDevice);
    if ((node.peers[device] & peer) != 0) {
      return cudaErrorPeerAccessAlreadyEnabled;
    }
    node.peers[device] |= peer;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return DeviceCall([](Node& node, int device) {
    const cudaError_t fault = node.faults.Count(CallKind::kSynchronization);
    if (fault != cudaSuccess) return node.Fail(device, fault);
    node.streams.DrainDevice(device);
    return node.streams.DeviceError(device);
  });
}

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  // Without a driver there is no error but version 0.
  const cudaError_t error = ApiCall([=](const Node&) {
    if (driverVersion == nullptr) return cudaErrorInvalidValue;
    *driverVersion = kVersion;
    return cudaSuccess;
  });
  if (error != cudaErrorInsufficientDriver) return error;
  tensord::simt::SetLastError(cudaSuccess);
  *driverVersion = 0;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  if (runtimeVersion == nullptr) return cudaErrorInvalidValue;
  *runtimeVersion = kVersion;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* numBlocks, const void* func, int blockSize, size_t dynamicSMemSize) {
  return DeviceCall([=](Node& node, int device) {
    if (numBlocks == nullptr || blockSize <= 0) return cudaErrorInvalidValue;
    if (func == nullptr) return cudaErrorInvalidDeviceFunction;
    *numBlocks = 0;
    if (blockSize > kMaxThreadsPerBlock ||
        dynamicSMemSize > node.SharedMemoryLimit(device, func)) {
      return cudaSuccess;
    }
    const int warps = (blockSize + kWarpThreads - 1) / kWarpThreads;
    const auto shared_bytes =
        static_cast<int>(dynamicSMemSize) + kReservedSharedBytes;
    *numBlocks =
        std::min({kMaxBlocksPerMultiprocessor,
                  kMaxThreadsPerMultiprocessor / (warps * kWarpThreads),
                  kSharedBytesPerMultiprocessor / shared_bytes});
    return cudaSuccess;
  });
}

}  // extern "C"
