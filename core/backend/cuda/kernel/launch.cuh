// Launching kernels.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tensord::core::cuda {

/// How many threads run a kernel.
struct Grid {
  uint32_t blocks = 1;
  uint32_t threads = 1;  // of a block
  int64_t shared_bytes = 0;
};

/// A thread for each of `count` indices, or for several when there are many.
template <typename Index>
Grid GridOf(Index count, uint32_t threads) {
  constexpr Index kMaxBlocks = 1 << 16;
  return {.blocks = static_cast<uint32_t>(
              std::min((count + threads - 1) / threads, kMaxBlocks)),
          .threads = threads};
}

/// Calls visit(index) for the indices below `count` of a thread of GridOf().
template <typename Index, typename Visitor>
__device__ __forceinline__ void ForEachIndex(Index count, Visitor&& visit) {
  const Index step = Index{gridDim.x} * blockDim.x;
  // No sum leaves uint32_t: steps are at most 2^26.
  for (Index index = Index{blockIdx.x} * blockDim.x + threadIdx.x;
       index < count; index += step) {
    visit(index);
  }
}

// Shared memory that a kernel may have without asking.
inline constexpr int64_t kDefaultSharedBytes = 48 << 10;

/// Lets `kernel` have shared memory of `bytes` a block. What it is allowed is
/// the same for all: as much as a block of the selected device can have, so
/// that nobody takes it from a launch on another thread.
template <typename... Parameters>
cudaError_t AllowShared(void (*kernel)(Parameters...), int64_t bytes) {
  if (bytes <= kDefaultSharedBytes) return cudaSuccess;
  int device = 0, most = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) {
    return error;
  }
  if (const cudaError_t error = cudaDeviceGetAttribute(
          &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
      error != cudaSuccess) {
    return error;
  }
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              most);
}

/// Queues `kernel` on `stream`.
template <typename... Parameters, typename... Arguments>
cudaError_t Launch(const Grid& grid, cudaStream_t stream,
                   void (*kernel)(Parameters...), Arguments&&... arguments) {
  const cudaError_t allowed = AllowShared(kernel, grid.shared_bytes);
  if (allowed != cudaSuccess) return allowed;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid.blocks);
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = static_cast<size_t>(grid.shared_bytes);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel,
                            std::forward<Arguments>(arguments)...);
}

}  // namespace tensord::core::cuda
